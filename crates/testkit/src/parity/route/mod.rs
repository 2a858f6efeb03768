//! Which servers the router admits, and which it chooses, beside what NeuroLink did.
//!
//! A case becomes a pool and calls of ours, and the router decides about them as about any others;
//! no rule is written down a second time here. What is compared is who may have a call, who gets
//! it, and who would be next. NeuroLink's words on how sure it is (`strategy`, `confidence`) have
//! no counterpart.

mod setup;

use std::collections::{BTreeMap, BTreeSet};

use callward_core::{Effect, ServerId, ToolCall};
use callward_router::StrategyName;
use serde::Deserialize;
use serde_json::{Value, json};

use self::setup::{Bed, Context, Named, Setup};
use super::answer::Answer;
use super::{Deviation, Fallible};

/// Answers `routeByAnnotation`: the servers that may get a call of the tool.
pub(super) fn candidates(input: &Value, theirs: &Value) -> Fallible<Answer> {
    #[derive(Deserialize)]
    struct Case {
        #[serde(flatten)]
        setup: Setup,
        tool: Named,
    }
    let case = Case::deserialize(input)?;
    let (setup, tool) = (&case.setup, case.tool.tool()?);
    let bed = setup.bed(false)?;
    let admitted = bed.router.route_by_annotation(&tool);
    let ours: Vec<&str> = admitted.iter().map(|server| setup.id(server)).collect();
    let theirs: Vec<&str> = theirs.as_array().map_or_else(Vec::new, |ids| {
        ids.iter().filter_map(Value::as_str).collect()
    });
    let destroys = tool.plan().effect == Effect::Destructive;
    let any_primary = setup
        .servers
        .iter()
        .any(|listed| is_fit_primary(setup, &listed.id));
    let deviation = if ours == theirs {
        return Ok(Answer::Is(json!(ours)));
    } else if destroys && ours.is_empty() && !any_primary {
        Deviation::NoPrimary
    } else if destroys && as_set(&ours) == as_set(&theirs) {
        Deviation::Listed
    } else {
        return Ok(Answer::Is(json!(ours)));
    };
    Ok(Answer::Otherwise([deviation].into()))
}

fn as_set<'a>(ids: &[&'a str]) -> BTreeSet<&'a str> {
    ids.iter().copied().collect()
}

fn is_fit_primary(setup: &Setup, id: &str) -> bool {
    setup.is_healthy(id) && setup.weight(id).get() >= 50
}

/// One call of a `route` case.
#[derive(Deserialize)]
struct Made {
    tool: Named,
    #[serde(default)]
    context: Context,
}

/// What NeuroLink decided.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decided {
    #[serde(default)]
    server_id: Option<String>,
    #[serde(default)]
    alternates: Option<Vec<String>>,
}

/// Answers `route`: who gets each of some calls in turn.
pub(super) fn decisions(input: &Value, theirs: &Value) -> Fallible<Answer> {
    #[derive(Deserialize)]
    struct Case {
        #[serde(flatten)]
        setup: Setup,
        calls: Vec<Made>,
    }
    let case = Case::deserialize(input)?;
    let theirs = Vec::<Decided>::deserialize(theirs)?;
    let by_category = case.calls.iter().any(|made| made.tool.category.is_some());
    let bed = case.setup.bed(by_category)?;
    let mut judge = Judge {
        setup: &case.setup,
        bed,
        homes: BTreeMap::new(),
        deviations: BTreeSet::new(),
    };
    let mut ours = Vec::new();
    let mut agree = theirs.len() == case.calls.len();
    for (made, theirs) in case.calls.iter().zip(&theirs) {
        let decision = judge.decide(made)?;
        agree &= judge.is_right(made, &decision, theirs);
        ours.push(decision.to_json());
    }
    Ok(match agree {
        true => Answer::Otherwise(judge.deviations),
        false => Answer::Is(json!(ours)),
    })
}

/// What we decided.
struct Decision {
    call: ToolCall,
    /// No one, if the call is refused.
    server: Option<String>,
    /// Who would be asked next, best first.
    next: Vec<String>,
}

impl Decision {
    fn to_json(&self) -> Value {
        match &self.server {
            Some(server) => json!({"serverId": server, "alternates": self.next}),
            None => json!({"throws": "no_eligible_server"}),
        }
    }

    fn destroys(&self) -> bool {
        self.call.plan().effect == Effect::Destructive
    }
}

/// Decides call by call, and says of each difference why it is right, or that it is wrong.
struct Judge<'a> {
    setup: &'a Setup,
    bed: Bed,
    /// Where the calls of a key went.
    homes: BTreeMap<String, String>,
    deviations: BTreeSet<Deviation>,
}

impl Judge<'_> {
    fn decide(&self, made: &Made) -> Fallible<Decision> {
        let call = self.setup.call(&made.tool, &made.context)?;
        let id = |server: &ServerId| self.setup.id(server).to_owned();
        let next = self.bed.router.candidates(&call);
        let mut next: Vec<String> = next.map(|server| id(server.server())).collect();
        // turns move from here on only
        let server = self.bed.router.decide(&call).as_ref().map(id);
        next.retain(|next| Some(next) != server.as_ref());
        Ok(Decision { call, server, next })
    }

    /// Returns `true` if a decision is NeuroLink's, or differs for a reason that is known.
    fn is_right(&mut self, made: &Made, ours: &Decision, theirs: &Decided) -> bool {
        let chosen = (ours.server.as_deref(), theirs.server_id.as_deref());
        let (ours_id, theirs_id) = match chosen {
            (None, None) => return true,
            (Some(_), None) => return false,
            (None, Some(theirs_id)) => return self.is_rightly_refused(made, ours, theirs_id),
            (Some(ours_id), Some(theirs_id)) => (ours_id, theirs_id),
        };
        let is_at_home = self.is_at_home(made, ours_id);
        if self.destroys_below(ours, theirs_id) {
            return self.because(Deviation::Primary, is_fit_primary(self.setup, ours_id));
        }
        if ours_id != theirs_id {
            let reason = self.reason(made, ours_id, theirs_id);
            let could = theirs.could(ours_id) || (reason == Some(Deviation::Home) && is_at_home);
            let Some(reason) = reason.filter(|_| could) else {
                return false;
            };
            self.deviations.insert(reason);
        }
        is_at_home && self.is_next_right(made, ours, theirs)
    }

    fn is_rightly_refused(&mut self, made: &Made, ours: &Decision, theirs_id: &str) -> bool {
        if made
            .tool
            .server_id
            .as_deref()
            .is_some_and(|pin| pin != theirs_id)
        {
            return self.because(Deviation::Pinned, true);
        }
        let below = self.destroys_below(ours, theirs_id);
        let mut servers = self.setup.servers.iter();
        let pinned = made.tool.server_id.is_some();
        let none = pinned || !servers.any(|listed| is_fit_primary(self.setup, &listed.id));
        self.because(Deviation::NoPrimary, below && none)
    }

    fn destroys_below(&self, ours: &Decision, id: &str) -> bool {
        ours.destroys() && !is_fit_primary(self.setup, id)
    }

    fn because(&mut self, deviation: Deviation, holds: bool) -> bool {
        if holds {
            self.deviations.insert(deviation);
        }
        holds
    }

    /// Returns why two eligible servers may differ.
    fn reason(&self, made: &Made, ours: &str, theirs: &str) -> Option<Deviation> {
        if self.bed.has_affinity && made.context.key().is_some() {
            return Some(Deviation::Home);
        }
        let (load, weight) = (
            |id: &str| self.setup.load(id),
            |id: &str| self.setup.weight(id),
        );
        match self.bed.strategy {
            StrategyName::RoundRobin => Some(Deviation::Turns),
            StrategyName::LeastConnections if load(ours) == load(theirs) => Some(Deviation::Spread),
            StrategyName::LeastConnections => {
                (weight(ours) > weight(theirs)).then_some(Deviation::ForWeight)
            }
            StrategyName::Category | StrategyName::Random => Some(Deviation::Spread),
            _ => None,
        }
    }

    /// Returns `true` if a key's calls stay where they were, as long as that can have them.
    fn is_at_home(&mut self, made: &Made, ours: &str) -> bool {
        let Some(key) = made.context.key().filter(|_| self.bed.has_affinity) else {
            return true;
        };
        let home = self
            .homes
            .entry(key.to_owned())
            .or_insert_with(|| ours.to_owned());
        home == ours || !self.setup.is_healthy(home)
    }

    /// Returns `true` if the same servers would come next, apart from those that NeuroLink leaves
    /// out.
    fn is_next_right(&mut self, made: &Made, ours: &Decision, theirs: &Decided) -> bool {
        let (Some(theirs_id), Some(alternates)) = (&theirs.server_id, &theirs.alternates) else {
            // a known key: NeuroLink names no other server
            return true;
        };
        let theirs: BTreeSet<&String> = alternates.iter().chain([theirs_id]).collect();
        let ours_all: BTreeSet<&String> = ours.server.iter().chain(&ours.next).collect();
        if theirs == ours_all {
            return true;
        }
        let prefers = made.tool.category.is_some() || !ours.call.plan().route.prefer.is_empty();
        // those of the category come before all others
        let mut first = ours.server.iter().chain(&ours.next).take(theirs.len());
        let is_wider = prefers && first.all(|server| theirs.contains(server));
        self.because(Deviation::Wider, is_wider)
    }
}

impl Decided {
    fn could(&self, id: &str) -> bool {
        let alternates = self.alternates.iter().flatten().map(String::as_str);
        self.server_id
            .as_deref()
            .into_iter()
            .chain(alternates)
            .any(|one| one == id)
    }
}
