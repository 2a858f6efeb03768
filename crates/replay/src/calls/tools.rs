//! From a recorded call to the tool a gateway would have made of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callward_cache::{CacheConfig, ToolScopes};
use callward_core::infer::{Inference, Listed};
use callward_core::{
    Annotations, CacheRule, CallPlan, Effect, Hints, Inferred, InvalidDefinition, Judgement,
    Principal, Profile, ReplicaSetId, Resolved, RuleSet, Source, Subject, Tool, ToolDefinition,
    ToolName, Trust, judge,
};

use super::place::Place;
use super::{HintSource, Options};
use crate::trace::RecordedCall;

/// The tools that were met so far.
#[derive(Debug)]
pub(crate) struct Tools {
    hints: HintSource,
    profile: Profile,
    listed: HashMap<String, Arc<Tool>>,
    made: HashMap<Kind, Arc<Tool>>,
}

/// What tells tools apart. A tool whose labels change from call to call is several.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    name: String,
    effect: Option<Effect>,
    ttl_ms: Option<u64>,
}

struct Judged {
    resolved: Resolved,
    plan: CallPlan,
}

/// So many tools are remembered. Each can be made again, and would be the same.
const REMEMBERED: usize = 4_096;

impl Tools {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            hints: options.hints,
            profile: options.profile.clone(),
            listed: listed(options),
            made: HashMap::new(),
        }
    }

    /// Returns the tool of a call.
    ///
    /// # Errors
    ///
    /// [`InvalidDefinition`] if there can be no tool of this name.
    pub(crate) fn of(&mut self, call: &RecordedCall) -> Result<Arc<Tool>, InvalidDefinition> {
        if let Some(listed) = self.listed.get(call.tool.as_str()) {
            return Ok(listed.clone());
        }
        let by_record = self.hints == HintSource::Recorded;
        let kind = Kind {
            name: call.tool.as_str().to_owned(),
            effect: call.labelled().filter(|_| by_record),
            ttl_ms: call.ttl_ms.filter(|_| by_record),
        };
        if let Some(made) = self.made.get(&kind) {
            return Ok(made.clone());
        }
        let made = Arc::new(self.make(&kind)?);
        if self.made.len() >= REMEMBERED {
            self.made.clear();
        }
        self.made.insert(kind, made.clone());
        Ok(made)
    }

    fn make(&self, kind: &Kind) -> Result<Tool, InvalidDefinition> {
        let definition = serde_json::json!({
            "name": kind.name,
            "inputSchema": { "type": "object" },
        });
        let mut judged = match kind.effect {
            Some(effect) => {
                let resolved = Resolved::from_single(hints_of(effect), Source::Declared);
                let plan = CallPlan::derive(&resolved, &self.profile);
                Judged { resolved, plan }
            }
            None => {
                let inferred = RuleSet::Standard.infer(&Subject::new(&kind.name));
                judged(&inferred, &Annotations::default(), &self.profile)
            }
        };
        if let Some(ttl) = kind.ttl_ms {
            judged.plan.cache = kept_for(judged.plan.cache, Duration::from_millis(ttl));
        }
        let definition = ToolDefinition::from_json(definition.to_string())?;
        Ok(tool(definition, judged))
    }
}

fn tool(definition: ToolDefinition, judged: Judged) -> Tool {
    Tool::new(set(), definition, judged.resolved, judged.plan)
}

/// Judges listed tools as one server's.
fn listed(options: &Options) -> HashMap<String, Arc<Tool>> {
    let declared: Vec<_> = options
        .tools
        .iter()
        .map(ToolDefinition::annotations)
        .collect();
    let siblings: Vec<_> = options
        .tools
        .iter()
        .zip(&declared)
        .map(|(tool, declared)| {
            let mut subject = Subject::new(tool.name().as_str());
            subject.title = tool.title();
            subject.description = tool.description();
            subject.input_schema = tool.input_schema();
            Listed::new(subject, declared)
        })
        .collect();
    let inferred = Inference::new(RuleSet::Standard).infer_all(&siblings);
    options
        .tools
        .iter()
        .zip(inferred)
        .map(|(listed, inferred)| {
            let judged = judged(&inferred, listed.annotations(), &options.profile);
            let name = listed.name().as_str().to_owned();
            (name, Arc::new(tool(listed.clone(), judged)))
        })
        .collect()
}

fn judged(inferred: &Inferred, declared: &Annotations, profile: &Profile) -> Judged {
    let hints = Hints::new(inferred, declared, Trust::Standard);
    let Judgement { resolved, plan, .. } = judge(&hints, profile);
    Judged { resolved, plan }
}

fn hints_of(effect: Effect) -> Annotations {
    let hints = Annotations::default();
    match effect {
        Effect::ReadOnly => hints.with_read_only(true),
        Effect::Idempotent => hints.with_idempotent(true).with_destructive(false),
        Effect::Mutating => hints.with_read_only(false).with_destructive(false),
        Effect::Destructive => hints.with_destructive(true),
    }
}

/// Gives a rule another lifetime; without one, nothing is kept.
const fn kept_for(rule: CacheRule, ttl: Duration) -> CacheRule {
    match rule {
        CacheRule::Store { .. } if ttl.is_zero() => CacheRule::Bypass,
        CacheRule::Store { lifetime, .. } => CacheRule::Store { ttl, lifetime },
        CacheRule::KeepOwn { .. } if ttl.is_zero() => CacheRule::Invalidate,
        CacheRule::KeepOwn { lifetime, .. } => CacheRule::KeepOwn { ttl, lifetime },
        rule => rule,
    }
}

/// Returns the one replica set of each world.
#[expect(clippy::expect_used, reason = "a fixed name, and a test makes it")]
fn set() -> ReplicaSetId {
    ReplicaSetId::new("world").expect("`world` is a name")
}

/// Adds what is said about the scopes of tools.
pub(crate) fn with_scopes(
    mut config: CacheConfig,
    scopes: &[(ToolName, ToolScopes)],
) -> CacheConfig {
    for (tool, scopes) in scopes {
        config.scopes = config.scopes.with(set(), tool.clone(), scopes.clone());
    }
    config
}

/// Names the principal of a call.
pub(crate) fn principal(place: &Place) -> Principal {
    Principal::new(format!("{:032x}", place.principal))
}
