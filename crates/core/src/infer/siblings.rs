//! What the tools of one server show about each other.
//!
//! Whether a world is open is a matter of the server, and so is what its author calls destructive;
//! one tool shows little of either. What most tools of a server declare, its author means for the
//! one he forgot. Where none declares it, half of the tools that stay at home speak for the others.
//!
//! All of this is weak evidence. It tightens, and it takes back what the kind of verb alone let
//! suspect: where the other updates of a server declare that they destroy nothing, one that is
//! silent is not taken to. What one tool itself says or warns of stands. One thing is relaxed: a
//! world that all of several tools declare closed.

use std::collections::HashMap;

use super::evidence::{Evidence, Reason};
use super::lexicon::VerbKind;
use super::{Inferred, Strength, Subject};
use crate::{Annotations, Field};

/// How many tools with verbs of one kind show what their author means by a hint.
const ENOUGH: u32 = 3;
/// The world is open or closed for a whole server as a rule, so that one tool shows it.
const FEW: u32 = 1;
/// Of fewer tools, half says little.
const FEW_TOOLS: usize = 3;

/// Makes the tools of a server agree about their world, which is mostly the same for all of them:
/// at home if at least half show a sign of home and none of the web, open otherwise. A word that
/// names the web still counts for its own tool.
pub(super) fn share_the_world(all: &mut [Inferred]) {
    if all.len() < FEW_TOOLS {
        return;
    }
    let home = all
        .iter()
        .filter(|inferred| inferred.annotations().open_world_hint.is_none())
        .count();
    let closed = home * 2 >= all.len();
    for inferred in all {
        match inferred.evidence(Field::OpenWorld) {
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

/// What the tools of a server declare.
#[derive(Debug, Default)]
pub(super) struct Habits {
    open_world: Habit,
    destructive: HashMap<VerbKind, Habit>,
    idempotent: HashMap<VerbKind, Habit>,
}

impl Habits {
    pub(super) fn of<'a>(tools: impl IntoIterator<Item = (&'a Inferred, &'a Annotations)>) -> Self {
        let mut habits = Self::default();
        for (inferred, declared) in tools {
            habits.open_world.count(declared.open_world_hint);
            let writes = declared.read_only_hint != Some(true);
            if let Some(kind) = inferred.kind().filter(|_| writes) {
                habits
                    .destructive
                    .entry(kind)
                    .or_default()
                    .count(declared.destructive_hint);
                habits
                    .idempotent
                    .entry(kind)
                    .or_default()
                    .count(declared.idempotent_hint);
            }
        }
        habits
    }

    /// Amends what was concluded of one tool of the server.
    pub(super) fn apply(&self, inferred: &mut Inferred) {
        let weak = Strength::Weak;
        if let Some(open) = self.open_world.settled(FEW) {
            let strength = if self.open_world.is_unanimous() {
                Strength::Strong
            } else {
                weak
            };
            inferred.drop_hint(Field::OpenWorld);
            inferred.set(Field::OpenWorld, open, strength, Reason::Siblings);
        }
        let Some(kind) = inferred.kind().filter(|kind| *kind != VerbKind::Read) else {
            return;
        };
        let settled = |habits: &HashMap<VerbKind, Habit>| habits.get(&kind)?.settled(ENOUGH);
        let concluded = inferred.annotations().destructive_hint;
        // what is taken away is gone, whatever the neighbours say; and they say nothing about what
        // only this tool warns of
        let own = kind.is_destructive()
            || inferred
                .evidence(Field::Destructive)
                .is_some_and(Evidence::is_of_this_tool_alone);
        if let Some(destructive) = settled(&self.destructive)
            && concluded != Some(destructive)
            && (destructive || !own)
        {
            inferred.drop_hint(Field::Destructive);
            inferred.set(Field::Destructive, destructive, weak, Reason::Siblings);
        }
        // a retry of a write needs more than the hints of its neighbours: only the stricter habit
        // counts
        if kind == VerbKind::Set && settled(&self.idempotent) == Some(false) {
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
#[non_exhaustive]
pub struct Listed<'a> {
    /// What inference may read.
    pub subject: Subject<'a>,
    /// What the server declares for it.
    pub declared: &'a Annotations,
}

impl<'a> Listed<'a> {
    /// Puts both together.
    pub const fn new(subject: Subject<'a>, declared: &'a Annotations) -> Self {
        Self { subject, declared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::{Inference, RuleSet};

    fn infer_all(tools: &[(&str, Annotations)]) -> Vec<Inferred> {
        let listed: Vec<_> = tools
            .iter()
            .map(|(name, declared)| Listed::new(Subject::new(name), declared))
            .collect();
        Inference::new(RuleSet::Standard).infer_all(&listed)
    }

    fn hints() -> Annotations {
        Annotations::default()
    }

    #[test]
    fn a_habit_fills_what_one_tool_leaves_out() {
        let closed = || hints().with_open_world(false);
        let open = |tools: &[(&str, Annotations)]| {
            let all = infer_all(tools);
            let why = all[0].evidence(Field::OpenWorld).map(Evidence::reason);
            (all[0].annotations().open_world_hint, why)
        };
        let mut tools = vec![("a", hints()), ("b", hints()), ("c", hints())];
        let by_default = "nothing says that it stays at home".into();
        assert_eq!(open(&tools), (Some(true), Some(by_default)));
        tools.push(("d", closed()));
        let declared = Some("the server's other tools declare it so".into());
        assert_eq!(open(&tools), (Some(false), declared));
        let strength = |tools: &[(&str, Annotations)]| {
            let all = infer_all(tools);
            all[0].evidence(Field::OpenWorld).map(Evidence::strength)
        };
        assert_eq!(strength(&tools), Some(Strength::Weak), "one is few");
        let mut many = tools.clone();
        many.extend([("f", closed()), ("g", closed())]);
        assert_eq!(strength(&many), Some(Strength::Strong));
        many.push(("h", hints().with_open_world(true)));
        assert_eq!(strength(&many), Some(Strength::Weak), "not all agree");
        // as many say the opposite, and there is no habit
        tools.push(("e", hints().with_open_world(true)));
        assert_eq!(open(&tools).0, Some(true));
    }

    #[test]
    fn one_half_at_home_speaks_for_the_rest() {
        let open = |names: [&str; 4]| {
            let all = infer_all(&names.map(|name| (name, hints())));
            all.iter()
                .map(|inferred| inferred.annotations().open_world_hint)
                .collect::<Vec<_>>()
        };
        let home = open(["read_file", "move_file", "get_info", "fetch_url"]);
        assert_eq!(home, [None, None, None, Some(true)]);
        let away = open(["read_file", "get_lead", "get_deal", "list_leads"]);
        assert_eq!(away, [Some(true); 4]);
    }

    #[test]
    fn what_destructive_means_is_the_servers_own_convention() {
        let declared = |destructive| hints().with_read_only(false).with_destructive(destructive);
        let tools = |destructive| {
            infer_all(&[
                ("update_a", declared(destructive)),
                ("update_b", declared(destructive)),
                ("set_c", declared(destructive)),
                ("update_d", hints()),
                ("delete_e", hints()),
                ("create_f", hints()),
            ])
        };
        let destructive = |all: &[Inferred], at: usize| all[at].annotations().destructive_hint;
        let mild = tools(false);
        assert_eq!(destructive(&mild, 3), Some(false));
        assert_eq!(destructive(&mild, 4), Some(true), "only of the same kind");
        assert_eq!(destructive(&tools(true), 3), Some(true));
        assert_eq!(destructive(&tools(true), 5), Some(false));
    }

    #[test]
    fn a_warning_of_its_own_outweighs_the_neighbours() {
        let mild = hints().with_read_only(false).with_destructive(false);
        let nothing = hints();
        let warned = Subject::new("update_d").with_description("Updates it, permanently.");
        let mut listed = ["update_a", "update_b", "update_c"]
            .map(|name| Listed::new(Subject::new(name), &mild))
            .to_vec();
        listed.push(Listed::new(warned, &nothing));
        let all = Inference::new(RuleSet::Standard).infer_all(&listed);
        assert_eq!(all[3].annotations().destructive_hint, Some(true));
    }

    #[test]
    fn no_habit_makes_a_write_repeatable() {
        let declared = |idempotent| hints().with_read_only(false).with_idempotent(idempotent);
        let tools = |idempotent| {
            infer_all(&[
                ("create_a", declared(idempotent)),
                ("create_b", declared(idempotent)),
                ("create_c", declared(idempotent)),
                ("create_d", hints()),
                ("update_e", declared(false)),
                ("update_f", declared(false)),
                ("update_g", declared(false)),
                ("update_h", hints()),
            ])
        };
        let all = tools(true);
        assert_eq!(all[3].annotations().idempotent_hint, None);
        assert_eq!(all[7].annotations().idempotent_hint, Some(false));
    }

    #[test]
    fn neurolinks_rules_look_at_one_tool_at_a_time() {
        let closed = hints().with_open_world(false);
        let subject = Subject::new("get_user");
        let listed = [Listed::new(subject, &closed); 4];
        let inference = Inference::new(RuleSet::Neurolink);
        for inferred in inference.infer_all(&listed) {
            assert_eq!(inferred, inference.infer(&subject));
        }
    }
}
