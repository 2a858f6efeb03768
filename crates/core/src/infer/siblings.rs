//! Evidence about a tool from the other tools of its server.
//!
//! Whether the world is open depends on the server, and so does what its author calls destructive;
//! one tool shows little of either. A hint that most tools of a server declare applies to the
//! others too. If none declares it, and half of the tools have signs of a closed world, it is
//! closed for all.
//!
//! All of this is weak evidence. It makes hints stricter, and withdraws what was inferred from the
//! kind of verb alone: if the other updates of a server declare that they destroy nothing, an
//! update without a hint is not destructive either. A tool's own words and warnings stay. One hint
//! becomes laxer: a world that all of several tools declare closed.

use std::collections::HashMap;

use super::evidence::{Evidence, Reason};
use super::lexicon::VerbKind;
use super::{Inferred, Strength, Subject};
use crate::{Annotations, Field};

/// How many tools with verbs of one kind show what their author means by a hint.
const ENOUGH: u32 = 3;
/// The world is open or closed for a whole server as a rule, so that one tool shows it.
const FEW: u32 = 1;
/// Half of fewer tools is little evidence.
const FEW_TOOLS: usize = 3;

/// Gives the tools of a server one world, as it is mostly the same for all of them: closed if at
/// least half have a sign of that and none has a sign of the web, open otherwise. A word that names
/// the web still counts for its own tool.
pub(super) fn share_the_world(all: &mut [Inferred]) {
    if all.len() < FEW_TOOLS {
        return;
    }
    let home = all
        .iter()
        .filter(|inferred| inferred.annotations.open_world_hint.is_none())
        .count();
    let closed = home * 2 >= all.len();
    for inferred in all {
        match inferred.evidence_for(Field::OpenWorld) {
            Some(evidence) if closed && evidence.is_default() => {
                inferred.drop_hint(Field::OpenWorld);
            }
            None if !closed => {
                inferred.set(
                    Field::OpenWorld,
                    true,
                    Strength::Weak,
                    Reason::SiblingsReachOut,
                );
            }
            _ => {}
        }
    }
}

/// Takes back what an argument such as `confirm` says, if at least half of the tools that may
/// change something have one: their server asks before any write, whether it loses something or
/// not.
pub(super) fn share_the_agreement(all: &mut [Inferred]) {
    let may_add = |kind: VerbKind| kind != VerbKind::Read && !kind.is_destructive();
    let writes = all
        .iter()
        .filter(|one| one.kind.is_some_and(may_add))
        .count();
    let agreed = all.iter().filter(|one| one.agrees()).count();
    if writes < FEW_TOOLS || agreed * 2 < writes {
        return;
    }
    let keeps = |one: &&mut Inferred| one.agrees() && !one.kind.is_some_and(VerbKind::may_lose);
    for one in all.iter_mut().filter(keeps) {
        one.drop_hint(Field::Destructive);
        if one.kind == Some(VerbKind::Add) {
            one.set(
                Field::Destructive,
                false,
                Strength::Weak,
                Reason::SiblingsAgree,
            );
        }
    }
}

/// What the tools of a server declare.
#[derive(Debug, Default)]
pub(super) struct Habits {
    open_world: Habit,
    /// Of `destructiveHint` and `idempotentHint`, by the kind of verb.
    of_writes: HashMap<VerbKind, [Habit; 2]>,
}

impl Habits {
    pub(super) fn of<'a>(tools: impl IntoIterator<Item = (&'a Inferred, &'a Annotations)>) -> Self {
        let mut habits = Self::default();
        for (inferred, declared) in tools {
            habits.open_world.count(declared.open_world_hint);
            let writes = declared.read_only_hint != Some(true);
            if let Some(kind) = inferred.kind.filter(|_| writes) {
                let [destructive, idempotent] = habits.of_writes.entry(kind).or_default();
                destructive.count(declared.destructive_hint);
                idempotent.count(declared.idempotent_hint);
            }
        }
        habits
    }

    /// Amends the conclusions about one tool of the server.
    pub(super) fn apply(&self, inferred: &mut Inferred) {
        let weak = Strength::Weak;
        if let Some(open) = self.open_world.settled(FEW) {
            let strength = Strength::strong_if(self.open_world.is_unanimous());
            inferred.drop_hint(Field::OpenWorld);
            inferred.set(Field::OpenWorld, open, strength, Reason::Siblings);
        }
        let Some(kind) = inferred.kind.filter(|kind| *kind != VerbKind::Read) else {
            return;
        };
        let habits = self.of_writes.get(&kind).copied().unwrap_or_default();
        let [destructive, idempotent] = habits.map(|habit| habit.settled(ENOUGH));
        let concluded = inferred.annotations.destructive_hint;
        // the other tools do not change that a removal is final, nor a warning of this tool alone
        let own = kind.is_destructive()
            || inferred
                .evidence_for(Field::Destructive)
                .is_some_and(Evidence::is_of_this_tool_alone);
        if let Some(destructive) = destructive
            && concluded != Some(destructive)
            && (destructive || !own)
        {
            inferred.drop_hint(Field::Destructive);
            inferred.set(Field::Destructive, destructive, weak, Reason::Siblings);
        }
        // a retry of a write needs more than the hints of its neighbours: only the stricter habit
        // counts
        if kind == VerbKind::Set && idempotent == Some(false) {
            inferred.drop_hint(Field::Idempotent);
            inferred.set(Field::Idempotent, false, weak, Reason::Siblings);
        }
    }
}

/// How often a hint was declared, and how.
#[derive(Debug, Clone, Copy, Default)]
struct Habit {
    yes: u32,
    no: u32,
}

impl Habit {
    fn count(&mut self, declared: Option<bool>) {
        match declared {
            Some(true) => self.yes += 1,
            Some(false) => self.no += 1,
            None => {}
        }
    }

    /// Returns what most that declare it say, if they are enough.
    fn settled(self, enough: u32) -> Option<bool> {
        (self.yes + self.no >= enough && self.yes != self.no).then_some(self.yes > self.no)
    }

    /// Returns `true` if enough declare it, and all of them the same.
    const fn is_unanimous(self) -> bool {
        self.yes + self.no >= ENOUGH && (self.yes == 0 || self.no == 0)
    }
}

/// One tool of a server, as it is listed.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a tool and its own hints")]
pub struct Listed<'a> {
    /// What inference may read.
    pub subject: Subject<'a>,
    /// What the server declares for it.
    pub declared: &'a Annotations,
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::infer::{Inference, Lexicon, RuleSet};

    /// The tools of a server, each with what it declares and perhaps its description in brackets;
    /// what is concluded of some of them, by their places. A `?` is for weak evidence.
    const CASES: &str = "
# a habit fills what one tool leaves out; one tool that declares it is few
a; b; c => 0 openWorldHint=true?
a; b; c; d openWorld=false => 0 openWorldHint=false?
a; b; c; d openWorld=false; f openWorld=false; g openWorld=false => 0 openWorldHint=false
a; b; d openWorld=false; f openWorld=false; g openWorld=false; h openWorld=true => 0 openWorldHint=false?
# as many say the opposite, and there is no habit
a; b; c; d openWorld=false; e openWorld=true => 0 openWorldHint=true?
# one half with a closed world decides for the rest
read_file; move_file; get_info; fetch_url => 0 -openWorldHint, 2 -openWorldHint, 3 openWorldHint=true?
read_file; get_lead; get_deal; list_leads => 0 openWorldHint=true?, 3 openWorldHint=true?
# what destructive means is the server's own convention, of verbs of one kind
update_a KEEPS; update_b KEEPS; set_c KEEPS; update_d; delete_e => 3 destructiveHint=false?, 4 destructiveHint=true
update_a LOSES; update_b LOSES; set_c LOSES; update_d; create_f => 3 destructiveHint=true?, 4 destructiveHint=false
# a warning of its own outweighs the neighbours
update_a KEEPS; update_b KEEPS; update_c KEEPS; update_d [Updates it, permanently.] => 3 destructiveHint=true?
# an argument that most writes have says nothing of one of them
create_a CONFIRM; create_b CONFIRM; link_c CONFIRM; delete_d => 0 destructiveHint=false?, 2 -destructiveHint, 3 destructiveHint=true
create_a CONFIRM; create_b; link_c; add_d => 0 destructiveHint=true?, 1 destructiveHint=false
# no habit makes a write safe to retry, but one makes it unsafe
create_a AGAIN; create_b AGAIN; create_c AGAIN; create_d => 3 -idempotentHint
update_e ONCE; update_f ONCE; update_g ONCE; update_h => 3 idempotentHint=false?
";

    #[test]
    fn tools_of_one_server_show_what_their_author_means() {
        let cases = CASES
            .replace("KEEPS", "readOnly=false destructive=false")
            .replace("LOSES", "readOnly=false destructive=true")
            .replace("AGAIN", "readOnly=false idempotent=true")
            .replace("ONCE", "readOnly=false idempotent=false");
        let confirms = r#"{"properties":{"confirm":{"type":"boolean"}}}"#;
        let confirms: &RawValue = serde_json::from_str(confirms).unwrap();
        for (tools, expected) in cases.lines().filter_map(|case| case.split_once(" => ")) {
            let tools: Vec<_> = tools
                .split("; ")
                .map(|tool| {
                    let (tool, description) = tool.split_once(" [").unwrap_or((tool, ""));
                    let mut words = tool.split(' ');
                    let name = words.next().unwrap();
                    let hints = words.collect::<Vec<_>>().join(" ");
                    let schema = hints.ends_with("CONFIRM").then_some(confirms);
                    let hints = Annotations::stated(hints.trim_end_matches("CONFIRM"));
                    (name, description, schema, hints)
                })
                .collect();
            let listed = tools.iter().map(|(name, description, schema, declared)| {
                let subject = Subject {
                    description: Some(description),
                    input_schema: *schema,
                    ..Subject::new(name)
                };
                Listed { subject, declared }
            });
            let listed: Vec<_> = listed.collect();
            let all = |rules| {
                let lexicon = Lexicon::standard();
                Inference { rules, lexicon }.infer_all(&listed)
            };
            // NeuroLink's rules look at one tool at a time
            for (alone, tool) in all(RuleSet::Neurolink).iter().zip(&listed) {
                assert_eq!(*alone, RuleSet::Neurolink.infer(&tool.subject));
            }
            let inferred = all(RuleSet::Standard);
            for expected in expected.split(", ") {
                let (place, wanted) = expected.split_once(' ').unwrap();
                let inferred = &inferred[place.parse::<usize>().unwrap()];
                let name = wanted.split('=').next().unwrap().trim_start_matches('-');
                let field = Field::by_key(name).unwrap();
                let hints = serde_json::to_value(&inferred.annotations).unwrap();
                let found = inferred.evidence_for(field).map_or_else(
                    || format!("-{name}"),
                    |evidence| {
                        let weak = ["", "?"][usize::from(evidence.strength == Strength::Weak)];
                        format!("{name}={}{weak}", hints[name])
                    },
                );
                assert_eq!(found, wanted, "{tools:?}");
            }
        }
    }
}
