//! Why calls are treated as they are, as data and as prose.

use callward::core::refine::{Applied, RefinedRule};
use callward::core::resolve::Provenance;
use callward::core::{CacheRule, ConfirmRule};
use callward::{CallPlan, Candidate, Explanation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ToolView, cache_words, millis, retry_word, strength_word};

/// What would happen to a call and why: of a tool as a whole, or of one call of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExplainView {
    #[serde(flatten)]
    pub(crate) tool: ToolView,
    /// Which of the tool's plans the call gets; `None` where no call is explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<AppliedView>,
    /// The rules over the arguments, in the order they are tried.
    #[serde(default)]
    pub(crate) rules: Vec<RuleView>,
    /// What each layer would decide, in the order of the stack.
    #[serde(default)]
    pub(crate) trail: Value,
    pub(crate) route: RouteView,
    pub(crate) keep: KeepView,
    pub(crate) attempts: AttemptsView,
    pub(crate) limits: LimitsView,
    pub(crate) guards: GuardsView,
    /// Each hint with its source and reason.
    pub(crate) hints: Vec<HintView>,
    /// Contradictions that were settled towards the stricter reading.
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
    /// All of it for people.
    pub(crate) text: String,
}

/// Which of a tool's plans a call gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AppliedView {
    /// `tool`, `rule` or `strictest`.
    pub(crate) plan: String,
    /// The rule that matches, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<usize>,
    /// Why it cannot be said which rule matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<String>,
}

/// One rule over the arguments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RuleView {
    pub(crate) when: String,
    /// The hints it sets.
    pub(crate) hints: Value,
    pub(crate) effect: String,
    pub(crate) cache: String,
    pub(crate) retry: String,
    pub(crate) confirm: bool,
}

/// Which servers may get the call, those that would be asked first at the head.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RouteView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min_weight: Option<u32>,
    pub(crate) prefer: Vec<String>,
    /// What strategies find servers by that go by categories or capabilities.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// What a call costs, before a server's factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<f64>,
    /// Both of these in words.
    #[serde(default)]
    pub(crate) rule: String,
    /// What chooses among the servers that the rule admits.
    #[serde(default)]
    pub(crate) strategy: String,
    /// Who would get a call now is in the trail.
    pub(crate) servers: Vec<CandidateView>,
}

/// One server that offers the tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CandidateView {
    pub(crate) server: String,
    pub(crate) weight: u32,
    pub(crate) categories: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calls_per_minute: Option<f64>,
    pub(crate) may_take: bool,
    pub(crate) preferred: bool,
    /// What speaks against it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
    /// The same as one word, as far as the router knows of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unfit: Option<String>,
}

/// What becomes of results.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeepView {
    /// Whether anything is kept at all.
    pub(crate) enabled: bool,
    /// How long the result is kept, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl_ms: Option<u64>,
    /// The replica set whose kept results the call drops, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) invalidates: Option<String>,
    /// What the result depends on, where the operator says so; else, all of the replica set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reads: Option<Vec<String>>,
    /// What the call may change, where the operator says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) writes: Option<Vec<String>>,
}

/// How often the call is tried, and how soon again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttemptsView {
    pub(crate) max: u32,
    pub(crate) first_backoff_ms: u64,
    /// The tool to check with what a call did whose answer never came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verify_with: Option<String>,
    /// A call slower than this share of its kind, in percent, gets a second attempt at another
    /// server; absent where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hedge_percentile: Option<u32>,
}

/// Who keeps the call from its server, and when.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GuardsView {
    /// What answers a session that repeats the same failing call; absent where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) loop_guard: Option<LoopGuardView>,
    pub(crate) breaker: BreakerRuleView,
}

/// When a repeated failing call is answered in the server's place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoopGuardView {
    pub(crate) failures: u32,
    pub(crate) window_ms: u64,
}

/// When the breaker of the tool at one server opens, and what it lets through to find out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BreakerRuleView {
    /// Failures in a row; 0 if no number opens it.
    pub(crate) failures: u32,
    /// In percent of the calls of a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure_rate: Option<u32>,
    /// In percent of the calls of a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slow_rate: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slow_after_ms: Option<u64>,
    pub(crate) open_ms: u64,
    pub(crate) probes: u32,
    /// Whether the call may be a probe like any other, or only where none that is safe can be.
    pub(crate) probes_freely: bool,
}

/// Times and rates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LimitsView {
    pub(crate) attempt_timeout_ms: u64,
    /// With progress.
    pub(crate) attempt_cap_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) estimated_duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calls_per_minute: Option<f64>,
    /// Whether the tool is held to that.
    pub(crate) is_held: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calls_per_minute_of_principal: Option<f64>,
    pub(crate) restricted: bool,
}

/// One effective hint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HintView {
    pub(crate) hint: String,
    pub(crate) value: Value,
    pub(crate) source: String,
    pub(crate) reason: String,
    /// How good the evidence is, where it was inferred: `strong` or `weak`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strength: Option<String>,
}

impl ExplainView {
    pub(crate) fn of(explanation: &Explanation) -> Self {
        let (tool, plan, resolved) = (
            explanation.tool(),
            explanation.plan(),
            explanation.resolved(),
        );
        let values = serde_json::to_value(resolved.annotations()).unwrap_or_default();
        let hint = |entry: &Provenance| HintView {
            hint: entry.field.to_string(),
            value: values
                .get(entry.field.as_str())
                .cloned()
                .unwrap_or_default(),
            source: entry.source.to_string(),
            reason: entry.reason.to_string(),
            strength: entry
                .strength
                .map(|strength| strength_word(strength).into()),
        };
        Self {
            tool: ToolView::with_plan(explanation.client_name(), tool, plan, resolved),
            call: explanation.call().map(|_| AppliedView::of(explanation)),
            rules: tool
                .refinements()
                .rules()
                .iter()
                .map(RuleView::of)
                .collect(),
            trail: serde_json::to_value(explanation.trail()).unwrap_or_default(),
            route: RouteView::of(explanation),
            keep: KeepView::of(explanation),
            attempts: AttemptsView {
                max: if plan.is_retryable() {
                    explanation.max_attempts()
                } else {
                    1
                },
                first_backoff_ms: millis(plan.limits.first_backoff),
                verify_with: explanation.verifier().map(ToString::to_string),
                hedge_percentile: explanation.hedge().map(|hedge| hedge.percentile),
            },
            limits: LimitsView {
                attempt_timeout_ms: millis(plan.limits.attempt_timeout),
                attempt_cap_ms: millis(explanation.attempt_cap()),
                estimated_duration_ms: plan.limits.estimated_duration.map(millis),
                calls_per_minute: plan.limits.calls_per_minute,
                is_held: explanation.calls_per_minute().is_some(),
                calls_per_minute_of_principal: explanation.calls_per_minute_of_principal(),
                restricted: plan.limits.restricted,
            },
            guards: GuardsView::of(explanation),
            hints: resolved.all_provenance().iter().map(hint).collect(),
            warnings: resolved.warnings().to_vec(),
            text: format!("{explanation}{}", ask_note(plan)),
        }
    }
}

impl AppliedView {
    fn of(explanation: &Explanation) -> Self {
        let (plan, rule, doubt) = match explanation.applied() {
            Applied::Tool => ("tool", None, None),
            Applied::Rule(index) => ("rule", Some(index + 1), None),
            Applied::Strictest(doubt) => {
                let rules = explanation.tool().refinements();
                ("strictest", None, Some(rules.describe(doubt)))
            }
            _ => ("other", None, None),
        };
        Self {
            plan: plan.into(),
            rule,
            doubt,
        }
    }
}

impl RuleView {
    fn of(rule: &RefinedRule) -> Self {
        let plan = rule.plan();
        Self {
            when: rule.rule().when().to_string(),
            hints: serde_json::to_value(rule.rule().hints()).unwrap_or_default(),
            effect: plan.effect.to_string(),
            cache: cache_words(plan.cache),
            retry: retry_word(plan.retry).to_owned(),
            confirm: plan.confirm == ConfirmRule::Ask,
        }
    }
}

impl RouteView {
    fn of(explanation: &Explanation) -> Self {
        let plan = explanation.plan();
        let candidate = |candidate: &Candidate| CandidateView {
            server: candidate.server.to_string(),
            weight: candidate.weight.get(),
            categories: candidate.categories.clone(),
            calls_per_minute: candidate.calls_per_minute,
            may_take: candidate.may_take(plan),
            preferred: candidate.is_preferred(plan),
            trouble: candidate.trouble(),
            unfit: candidate.why_not.map(|unfit| unfit.as_str().to_owned()),
        };
        Self {
            min_weight: plan.route.min_weight,
            prefer: plan.route.prefer.iter().map(ToString::to_string).collect(),
            tags: plan.route.tags.iter().map(ToString::to_string).collect(),
            cost: plan.route.cost,
            rule: plan.route.to_string(),
            strategy: explanation.strategy().strategy().name().to_owned(),
            servers: explanation.candidates().iter().map(candidate).collect(),
        }
    }
}

impl GuardsView {
    fn of(explanation: &Explanation) -> Self {
        let breaker = explanation.breaker();
        let slow = breaker.slow_calls;
        Self {
            loop_guard: explanation.loop_guard().map(|guard| LoopGuardView {
                failures: guard.failures,
                window_ms: millis(guard.window),
            }),
            breaker: BreakerRuleView {
                failures: breaker.failures,
                failure_rate: breaker.failure_rate,
                slow_rate: slow.map(|slow| slow.rate),
                slow_after_ms: slow.map(|slow| millis(slow.after)),
                open_ms: millis(breaker.open_time),
                probes: breaker.probes,
                probes_freely: explanation.probes_freely(),
            },
        }
    }
}

impl KeepView {
    fn of(explanation: &Explanation) -> Self {
        let enabled = explanation.caches();
        let set = explanation.tool().set();
        let writes = explanation.writes();
        let (ttl, drops) = match explanation.plan().cache {
            CacheRule::Store { ttl, .. } => (Some(ttl), false),
            CacheRule::KeepOwn { ttl, .. } => (Some(ttl), true),
            CacheRule::Bypass => (None, false),
            _ => (None, true),
        };
        Self {
            enabled,
            ttl_ms: ttl.filter(|_| enabled).map(millis),
            invalidates: (enabled && drops && writes.is_none()).then(|| set.to_string()),
            reads: explanation.reads(),
            writes,
        }
    }
}

/// What a plan that asks for confirmation means today.
fn ask_note(plan: &CallPlan) -> &'static str {
    if plan.confirm == ConfirmRule::Ask {
        "\nThe plan asks for confirmation. This runtime has no approval layer yet: until it has one, \
         the client is left to ask a person before it calls. The plan is in the `_meta` of the list \
         of tools, for clients that read it.\n"
    } else {
        ""
    }
}
