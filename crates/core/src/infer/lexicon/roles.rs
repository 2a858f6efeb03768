//! The lists of words that are not verbs, or more than verbs, as one index.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::list;

macro_rules! roles {
    ($($role:ident = $list:literal,)+) => {
        /// One list a word may be in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(in crate::infer) enum Role { $($role,)+ }

        const LISTS: &[(Role, &str)] = &[$((Role::$role, $list),)+];
    };
}

roles! {
    AfterNoun = "after_noun",
    AfterSubject = "after_subject",
    AfterVerb = "after_verb",
    AlsoNoun = "also_nouns",
    Aside = "asides",
    AtHome = "at_home",
    BeforeVerb = "before_verb",
    Caller = "callers",
    Chance = "chance",
    Clock = "clocks",
    Current = "current",
    Cursor = "cursors",
    Enables = "enabling",
    FetchesHome = "fetching_home",
    Filler = "fillers",
    Handed = "handed",
    HandsOver = "handing_over",
    Join = "joins",
    Keeps = "keeping",
    Landing = "landings",
    Language = "languages",
    Light = "light",
    LightVerb = "light_verbs",
    Loose = "loose",
    Negation = "negations",
    OfFields = "of_fields",
    Opening = "openings",
    Outside = "outside",
    Place = "places",
    Presents = "presenting",
    PutAway = "put_away",
    Queued = "queued",
    ReadingLanguage = "reading_languages",
    ReadingNoun = "reading_nouns",
    Results = "results",
    Retrieves = "retrieving",
    Runs = "runs",
    Shape = "shapes",
    Time = "times",
    Toward = "toward",
    Turn = "turns",
}

/// All lists a word is in, and the word as the lists spell it.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::infer) struct Roles {
    word: &'static str,
    bits: u64,
}

impl Roles {
    /// Looks a word up, in any case.
    pub(in crate::infer) fn of(word: &str) -> Self {
        static INDEX: LazyLock<HashMap<&str, Roles>> = LazyLock::new(Roles::index);
        let known = INDEX.get(&*word.to_ascii_lowercase());
        known.copied().unwrap_or_default()
    }

    /// Returns `true` if the word is in the list.
    pub(in crate::infer) const fn has(self, role: Role) -> bool {
        self.bits & (1 << role as u32) != 0
    }

    /// Returns the word if it is in the list.
    pub(in crate::infer) fn word_if(self, role: Role) -> Option<&'static str> {
        self.has(role).then_some(self.word)
    }

    fn index() -> HashMap<&'static str, Self> {
        let mut index: HashMap<&str, Self> = HashMap::new();
        for (role, name) in LISTS {
            for &word in list(name) {
                let known = index.entry(word).or_insert(Self { word, bits: 0 });
                known.bits |= 1 << *role as u32;
            }
        }
        index
    }
}
