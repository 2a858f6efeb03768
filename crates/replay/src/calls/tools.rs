//! The tools that a gateway would have made of recorded calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callward_cache::{CacheConfig, ToolScopes};
use callward_core::infer::{Inference, Listed};
use callward_core::{
    Annotations, CacheRule, CallPlan, Effect, Hints, Inferred, InvalidDefinition, Judgement,
    Profile, ReplicaSetId, Resolved, RuleSet, Source, Subject, Tool, ToolDefinition, ToolName,
    Trust, judge,
};

use super::{HintSource, Options};
use crate::trace::RecordedCall;

/// The tools seen so far.
#[derive(Debug)]
pub(crate) struct Tools {
    hints: HintSource,
    profile: Profile,
    listed: HashMap<String, Arc<Tool>>,
    made: HashMap<Kind, Arc<Tool>>,
}

/// The identity of a tool. A tool whose labels vary from call to call is several tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    name: String,
    effect: Option<Effect>,
    ttl_ms: Option<u64>,
}

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
    /// [`InvalidDefinition`] if the name is not valid for a tool.
    pub(crate) fn of(&mut self, call: &RecordedCall) -> Result<Arc<Tool>, InvalidDefinition> {
        if let Some(listed) = self.listed.get(call.tool.as_str()) {
            return Ok(listed.clone());
        }
        let is_recorded = self.hints == HintSource::Recorded;
        let kind = Kind {
            name: call.tool.as_str().to_owned(),
            effect: call.labelled().filter(|_| is_recorded),
            ttl_ms: call.ttl_ms.filter(|_| is_recorded),
        };
        if let Some(made) = self.made.get(&kind) {
            return Ok(made.clone());
        }
        let made = Arc::new(self.make(&kind)?);
        self.made.insert(kind, made.clone());
        Ok(made)
    }

    fn make(&self, kind: &Kind) -> Result<Tool, InvalidDefinition> {
        let tool = match kind.effect {
            Some(effect) => labelled_tool(&kind.name, effect, &self.profile)?,
            None => {
                let inferred = RuleSet::Standard.infer(&Subject::new(&kind.name));
                let silent = Annotations::default();
                judged(definition(&kind.name)?, &inferred, &silent, &self.profile)
            }
        };
        let Some(ttl) = kind.ttl_ms else {
            return Ok(tool);
        };
        let mut plan = CallPlan::clone(tool.plan());
        plan.cache = with_ttl(plan.cache, Duration::from_millis(ttl));
        let resolved = tool.resolved().clone();
        Ok(Tool::new(set(), definition(&kind.name)?, resolved, plan))
    }
}

fn definition(name: &str) -> Result<ToolDefinition, InvalidDefinition> {
    let raw = serde_json::json!({ "name": name, "inputSchema": { "type": "object" } });
    ToolDefinition::from_json(raw.to_string())
}

/// Makes a tool that declares an effect.
pub(crate) fn labelled_tool(
    name: &str,
    effect: Effect,
    profile: &Profile,
) -> Result<Tool, InvalidDefinition> {
    let hints = Annotations::default();
    let hints = match effect {
        Effect::ReadOnly => hints.with_read_only(true),
        Effect::Idempotent => hints.with_idempotent(true).with_destructive(false),
        Effect::Mutating => hints.with_read_only(false).with_destructive(false),
        Effect::Destructive => hints.with_destructive(true),
    };
    let resolved = Resolved::from_single(hints, Source::Declared);
    let plan = CallPlan::derive(&resolved, profile);
    Ok(Tool::new(set(), definition(name)?, resolved, plan))
}

/// Makes the listed tools, inferred together as those of one server.
fn listed(options: &Options) -> HashMap<String, Arc<Tool>> {
    let tools = &options.tools;
    let siblings: Vec<_> = tools
        .iter()
        .map(|tool| {
            let mut subject = Subject::new(tool.name().as_str());
            subject.description = tool.description();
            subject.input_schema = tool.input_schema();
            Listed::new(subject, tool.annotations())
        })
        .collect();
    let inferred = Inference::new(RuleSet::Standard).infer_all(&siblings);
    tools
        .iter()
        .zip(inferred)
        .map(|(tool, inferred)| {
            let made = judged(
                tool.clone(),
                &inferred,
                tool.annotations(),
                &options.profile,
            );
            (tool.name().as_str().to_owned(), Arc::new(made))
        })
        .collect()
}

fn judged(
    definition: ToolDefinition,
    inferred: &Inferred,
    declared: &Annotations,
    profile: &Profile,
) -> Tool {
    let hints = Hints::new(inferred, declared, Trust::Standard);
    let Judgement { resolved, plan, .. } = judge(&hints, profile);
    Tool::new(set(), definition, resolved, plan)
}

/// Sets the lifetime of a rule; 0 stores nothing.
const fn with_ttl(rule: CacheRule, ttl: Duration) -> CacheRule {
    match rule {
        CacheRule::Store { .. } if ttl.is_zero() => CacheRule::Bypass,
        CacheRule::Store { lifetime, .. } => CacheRule::Store { ttl, lifetime },
        CacheRule::KeepOwn { .. } if ttl.is_zero() => CacheRule::Invalidate,
        CacheRule::KeepOwn { lifetime, .. } => CacheRule::KeepOwn { ttl, lifetime },
        rule => rule,
    }
}

/// Returns the one replica set of each world.
#[expect(clippy::expect_used, reason = "a constant name, covered by tests")]
fn set() -> ReplicaSetId {
    ReplicaSetId::new("world").expect("`world` is a valid name")
}

/// Adds the scopes of tools.
pub(crate) fn with_scopes(
    mut config: CacheConfig,
    scopes: &[(ToolName, ToolScopes)],
) -> CacheConfig {
    for (tool, scopes) in scopes {
        config.scopes = config.scopes.with(set(), tool.clone(), scopes.clone());
    }
    config
}
