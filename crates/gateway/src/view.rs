//! Tools and calls as they are shown: one shape for tables, JSON and the HTTP interface.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use callward::core::infer::Volatile;
use callward::core::resolve::{Provenance, Resolved};
use callward::core::{
    Annotations, AuditLevel, CacheRule, Category, ConfirmRule, Field, Lifetime, RetryRule, Strength,
};
use callward::registry::Entry;
use callward::{CallPlan, Effect, LearnedLifetime, Stack, Tool};
use serde::de::IntoDeserializer;
use serde::de::value::{Error as Unknown, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::config::show_duration;

mod call;
mod events;
mod explain;
mod missing;
pub(crate) mod trail;

pub(crate) use call::{CallView, error};
pub(crate) use events::event;
pub(crate) use explain::explanation;
pub(crate) use missing::{MissingView, advised};

/// What is made of one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolView {
    /// The name clients call it by.
    pub(crate) name: String,
    /// The replica set that offers it.
    pub(crate) set: String,
    #[serde(flatten)]
    pub(crate) plan: PlanView,
    /// Who decided the effect.
    pub(crate) source: String,
    /// Why, in a sentence.
    pub(crate) reason: String,
    /// What repeated calls showed; absent if there were none, or the lifetime is not learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<EvidenceView>,
}

/// What repeated calls of a tool showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EvidenceView {
    /// How long results are served by it, in seconds.
    pub(crate) served_s: f64,
    pub(crate) repeats: u64,
    pub(crate) different: u64,
    /// Why results are not served by it, with the evidence that is missing; absent if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<String>,
}

impl EvidenceView {
    /// Describes what is learned of a tool; `None` without a repeated call.
    pub(crate) fn of(learned: &LearnedLifetime) -> Option<Self> {
        (learned.repeats > 0).then(|| Self {
            served_s: learned.served.as_secs_f64(),
            repeats: learned.repeats,
            different: learned.different,
            missing: learned.missing.clone(),
        })
    }
}

/// A plan in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanView {
    pub(crate) effect: String,
    pub(crate) safety: String,
    pub(crate) cache: String,
    pub(crate) retry: String,
    pub(crate) confirm: bool,
    /// What of each call is written to the audit log: `none`, `partial` or `full`.
    #[serde(default = "not_recorded")]
    pub(crate) recorded: String,
    /// What the tool is for.
    pub(crate) category: Category,
    /// The effective hints.
    pub(crate) annotations: Annotations,
    /// Who decided each hint.
    pub(crate) sources: BTreeMap<String, String>,
    /// Why an answer must be fresh, if it must.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) volatile: Option<VolatileView>,
    /// How many rules over the arguments may give a call another plan than the tool's own.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) argument_rules: usize,
}

/// What an older gateway leaves unsaid.
fn not_recorded() -> String {
    AuditLevel::None.as_str().to_owned()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape serde asks for"
)]
const fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Why an answer must be fresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VolatileView {
    /// `clock` or `cursor`.
    pub(crate) kind: String,
    pub(crate) reason: String,
}

impl VolatileView {
    fn of(volatile: &Volatile) -> Self {
        Self {
            kind: volatile.volatility.as_str().to_owned(),
            reason: volatile.reason().into_owned(),
        }
    }
}

impl PlanView {
    /// Describes the tool's own plan.
    pub(crate) fn of(tool: &Tool) -> Self {
        Self::with_plan(tool, tool.plan(), tool.resolved())
    }

    /// Describes one of the tool's plans.
    fn with_plan(tool: &Tool, plan: &CallPlan, resolved: &Resolved) -> Self {
        let source = |entry: &Provenance| (entry.field.to_string(), entry.source.to_string());
        Self {
            effect: plan.effect.to_string(),
            safety: plan.safety_level().to_string(),
            cache: cache_words(plan.cache),
            retry: retry_word(plan.retry).to_owned(),
            confirm: plan.confirm == ConfirmRule::Ask,
            recorded: plan.audit.level.as_str().to_owned(),
            category: Category::of(resolved),
            annotations: resolved.annotations().clone(),
            sources: resolved.all_provenance().iter().map(source).collect(),
            volatile: resolved.volatility().map(VolatileView::of),
            argument_rules: tool.refinements().rules().len(),
        }
    }

    /// Returns the effect. One that another version of the gateway has a word for, and this one has
    /// not, is taken for the worst.
    pub(crate) fn effect(&self) -> Effect {
        let word: StrDeserializer<'_, Unknown> = self.effect.as_str().into_deserializer();
        Effect::deserialize(word).unwrap_or(Effect::Destructive)
    }
}

impl ToolView {
    /// Describes the tool with its own plan.
    pub(crate) fn of(name: &str, tool: &Tool) -> Self {
        Self::with_plan(name, tool, tool.plan(), tool.resolved())
    }

    /// Describes the tool with one of its plans.
    fn with_plan(name: &str, tool: &Tool, plan: &CallPlan, resolved: &Resolved) -> Self {
        Self {
            name: name.to_owned(),
            set: tool.set().to_string(),
            plan: PlanView::with_plan(tool, plan, resolved),
            source: verdict_source(plan, resolved),
            reason: plan.reason.to_string(),
            evidence: None,
        }
    }

    /// Describes all tools of a stack, in the order clients see them.
    pub(crate) fn all(stack: &Stack) -> Vec<Self> {
        let catalogue = stack.catalogue();
        let learned = stack.learned_lifetimes();
        let view = |entry: &Arc<Entry>| {
            let tool = entry.tool();
            let seen = learned.get(&(tool.set().clone(), tool.name().clone()));
            Self {
                evidence: seen.and_then(EvidenceView::of),
                ..Self::of(entry.client_name(), tool)
            }
        };
        catalogue.entries().iter().map(view).collect()
    }
}

/// Returns how long results are kept, in a few words.
fn cache_words(rule: CacheRule) -> String {
    match rule {
        CacheRule::Store { ttl, lifetime } => format!("{}{}", up_to(lifetime), show_duration(ttl)),
        CacheRule::KeepOwn {
            lifetime: Lifetime::Learned(_),
            ..
        } => "burst (own)".into(),
        CacheRule::KeepOwn { ttl, .. } => format!("{} (own)", show_duration(ttl)),
        CacheRule::Bypass | CacheRule::Invalidate => "never".into(),
        other => other.to_string(),
    }
}

const fn up_to(lifetime: Lifetime) -> &'static str {
    match lifetime {
        Lifetime::Learned(_) => "learned:",
        _ => "",
    }
}

fn retry_word(rule: RetryRule) -> &'static str {
    match rule {
        RetryRule::Safe => "yes",
        RetryRule::OnlyUnsent => "if unsent",
        _ => "never",
    }
}

/// Returns how good the evidence for an inferred hint is.
pub(crate) const fn strength_word(strength: Strength) -> &'static str {
    match strength {
        Strength::Strong => "strong",
        Strength::Weak => "weak",
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Names the source of the hint that decided the effect.
fn verdict_source(plan: &CallPlan, resolved: &Resolved) -> String {
    let fields: &[Field] = match plan.effect {
        Effect::ReadOnly => &[Field::ReadOnly],
        Effect::Destructive => &[Field::Destructive],
        Effect::Idempotent => &[Field::Idempotent],
        Effect::Mutating => &[Field::ReadOnly, Field::Idempotent, Field::Destructive],
    };
    let decided = fields.iter().find_map(|field| resolved.provenance(*field));
    decided.map_or_else(|| "default".into(), |entry| entry.source.to_string())
}
