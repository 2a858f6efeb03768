//! The tools that a gateway would have made of recorded calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callward_core::infer::{Inference, Lexicon, Listed};
use callward_core::{
    Annotations, CacheRule, CallPlan, Effect, Hints, Inferred, Judgement, Profile, ReplicaSetId,
    Resolved, RuleSet, Source, Subject, Tool, ToolDefinition, ToolName, Trust, judge,
};

use super::Options;
use crate::trace::RecordedCall;

/// The tools seen so far.
#[derive(Debug)]
pub(crate) struct Tools {
    infer: bool,
    profile: Profile,
    pub(crate) listed: HashMap<ToolName, Arc<Tool>>,
    made: HashMap<Kind, Arc<Tool>>,
}

/// The identity of a tool: its name, effect and lifetime. A tool whose labels vary from call to
/// call is several tools.
type Kind = (ToolName, Option<Effect>, Option<u64>);

impl Tools {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            infer: options.infer,
            profile: options.profile.clone(),
            listed: listed(options),
            made: HashMap::new(),
        }
    }

    /// Returns the tool of a call.
    pub(crate) fn of(&mut self, call: &RecordedCall) -> Arc<Tool> {
        if let Some(listed) = self.listed.get(&call.tool) {
            return listed.clone();
        }
        let effect = call.labelled().filter(|_| !self.infer);
        let ttl_ms = call.ttl_ms.filter(|_| !self.infer);
        let kind = (call.tool.clone(), effect, ttl_ms);
        let made = self.made.entry(kind);
        made.or_insert_with_key(|kind| Arc::new(make(kind, &self.profile)))
            .clone()
    }
}

fn make((name, effect, ttl_ms): &Kind, profile: &Profile) -> Tool {
    let tool = match effect {
        Some(effect) => labelled_tool(name.clone(), *effect, profile),
        None => {
            let inferred = RuleSet::Standard.infer(&Subject::new(name.as_str()));
            let definition = ToolDefinition::named(name.clone(), Annotations::default());
            judged(definition, &inferred, profile)
        }
    };
    let Some(ttl) = ttl_ms else {
        return tool;
    };
    let mut plan = CallPlan::clone(tool.plan());
    plan.cache = with_ttl(plan.cache, Duration::from_millis(*ttl));
    Tool::new(set(), tool.definition, tool.resolved, plan)
}

/// Makes a tool that declares an effect.
pub fn labelled_tool(name: ToolName, effect: Effect, profile: &Profile) -> Tool {
    let hints = Annotations::default();
    let hints = match effect {
        Effect::ReadOnly => hints.with_read_only(true),
        Effect::Idempotent => hints.with_idempotent(true).with_destructive(false),
        Effect::Mutating => hints.with_read_only(false).with_destructive(false),
        Effect::Destructive => hints.with_destructive(true),
    };
    let resolved = Resolved::from_single(hints.clone(), Source::Declared);
    let plan = CallPlan::derive(&resolved, profile);
    Tool::new(set(), ToolDefinition::named(name, hints), resolved, plan)
}

/// Makes the listed tools, inferred together as those of one server.
fn listed(options: &Options) -> HashMap<ToolName, Arc<Tool>> {
    let tools = &options.tools;
    let siblings: Vec<_> = tools
        .iter()
        .map(|tool| Listed {
            subject: Subject::of(tool, None),
            declared: &tool.annotations,
        })
        .collect();
    let (rules, lexicon) = (RuleSet::Standard, Lexicon::standard());
    let inferred = Inference { rules, lexicon }.infer_all(&siblings);
    let made = tools.iter().zip(&inferred).map(|(tool, inferred)| {
        let made = judged(tool.clone(), inferred, &options.profile);
        (tool.name.clone(), Arc::new(made))
    });
    made.collect()
}

fn judged(definition: ToolDefinition, inferred: &Inferred, profile: &Profile) -> Tool {
    let hints = Hints::new(inferred, &definition.annotations, Trust::Standard);
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
pub(crate) fn set() -> ReplicaSetId {
    ReplicaSetId::new("world").expect("`world` is a valid name")
}
