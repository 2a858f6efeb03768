//! What the tools of one server show about each other.
//!
//! One tool shows little of its server. All of them together show two things. Words that many names
//! begin with are the names of things, not of deeds: `jira_get_issue` leads with `get` once
//! `jira_search` and `jira_add_comment` stand beside it. And what an author declares for most tools,
//! he means for the one he forgot: a server whose other tools all say that their world is closed has
//! a closed world.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use super::evidence::Reason;
use super::lexicon::{Lexicon, VerbKind};
use super::{Inferred, Strength, Subject, words};
use crate::{Annotations, Field};

/// So many names with the same first words make a prefix; and so many tools that declare the same
/// make a habit.
const ENOUGH: u32 = 3;
/// Longer prefixes are not looked for, in words.
const LONGEST_PREFIX: usize = 4;

/// First words that the names of one server share. The default has none.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// How many names begin so, by the hash of the words.
    counts: HashMap<u64, u32>,
}

impl Prefixes {
    /// Counts the first words of all names, up to the first verb.
    pub(super) fn of<'a>(names: impl IntoIterator<Item = &'a str>, lexicon: &Lexicon) -> Self {
        let mut counts = HashMap::new();
        for name in names {
            let words = words::split(name);
            let nouns = words
                .iter()
                .take(LONGEST_PREFIX)
                .take_while(|word| lexicon.find(word).is_none());
            let mut hash = DefaultHasher::new();
            for word in nouns {
                feed(&mut hash, word);
                *counts.entry(hash.finish()).or_insert(0) += 1;
            }
        }
        counts.retain(|_, count| *count >= ENOUGH);
        Self { counts }
    }

    /// Starts at the first word of a name.
    pub(super) fn walk(&self) -> Walk<'_> {
        Walk {
            prefixes: self,
            hash: DefaultHasher::new(),
        }
    }
}

/// The way along the words of one name.
pub(super) struct Walk<'p> {
    prefixes: &'p Prefixes,
    hash: DefaultHasher,
}

impl Walk<'_> {
    /// Says whether the words so far, with this one, are a prefix.
    pub(super) fn step(&mut self, word: &str) -> bool {
        if self.prefixes.counts.is_empty() {
            return false;
        }
        feed(&mut self.hash, word);
        self.prefixes.counts.contains_key(&self.hash.finish())
    }
}

fn feed(hash: &mut DefaultHasher, word: &str) {
    for byte in word.bytes() {
        hash.write_u8(byte.to_ascii_lowercase());
    }
    // no word has it, so that two words never read like one
    hash.write_u8(b'_');
}

/// What the tools of a server declare, where all that declare it agree.
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
        if let Some(open) = self.open_world.settled() {
            inferred.drop_hint(Field::OpenWorld);
            inferred.open_world(open, Strength::Strong, Reason::Siblings);
        }
        let Some(kind) = inferred.kind().filter(|kind| *kind != VerbKind::Read) else {
            return;
        };
        let settled = |habits: &HashMap<VerbKind, Habit>| habits.get(&kind)?.settled();
        let concluded = inferred.annotations().destructive_hint;
        let firm = inferred
            .evidence(Field::Destructive)
            .is_some_and(|evidence| evidence.strength() == Strength::Strong);
        match settled(&self.destructive) {
            // what the name says firmly is not talked away by others
            Some(destructive) if !firm && concluded != Some(destructive) => {
                inferred.drop_hint(Field::Destructive);
                inferred.destructive(destructive, Strength::Strong, Reason::Siblings);
            }
            _ => {}
        }
        // To repeat a write takes more than the word of its neighbours: only the stricter habit counts.
        if settled(&self.idempotent) == Some(false) {
            inferred.drop_hint(Field::Idempotent);
            inferred.idempotent(false, Strength::Weak, Reason::Siblings);
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

    /// Returns what all that declare it say, if they are enough.
    fn settled(self) -> Option<bool> {
        match (self.yes, self.no) {
            (yes, 0) if yes >= ENOUGH => Some(true),
            (0, no) if no >= ENOUGH => Some(false),
            _ => None,
        }
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
    #[must_use]
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
    fn a_word_many_names_begin_with_is_no_part_of_the_deed() {
        let names = ["Desk-ticket_get", "deskTicketFind", "desk_ticket_close"];
        let tools: Vec<_> = names.iter().map(|name| (*name, hints())).collect();
        let strength = |inferred: &Inferred| {
            let evidence = inferred.evidence(Field::ReadOnly)?;
            Some((inferred.annotations().read_only_hint?, evidence.strength()))
        };
        let all = infer_all(&tools);
        assert_eq!(
            all.iter().map(strength).collect::<Vec<_>>(),
            [
                Some((true, Strength::Strong)),
                Some((true, Strength::Strong)),
                Some((false, Strength::Strong)),
            ]
        );
        // two are no crowd
        let two = infer_all(&tools[..2]);
        assert_eq!(strength(&two[0]), Some((true, Strength::Weak)));
    }

    #[test]
    fn a_habit_fills_what_one_tool_leaves_out() {
        let closed = || hints().with_open_world(false);
        let mut tools = vec![("a", closed()), ("b", closed()), ("c", hints())];
        assert_eq!(
            infer_all(&tools)[2].annotations().open_world_hint,
            Some(true)
        );
        tools.push(("d", closed()));
        let all = infer_all(&tools);
        assert_eq!(all[2].annotations().open_world_hint, Some(false));
        let why = all[2].evidence(Field::OpenWorld).map(|e| e.reason());
        assert_eq!(
            why,
            Some("the server's other tools all declare it so".into())
        );
        // one voice against it, and there is no habit
        tools.push(("e", hints().with_open_world(true)));
        assert_eq!(
            infer_all(&tools)[2].annotations().open_world_hint,
            Some(true)
        );
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
