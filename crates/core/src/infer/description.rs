//! Reads the first sentence of a description, and the warnings in all of it.

use smallvec::SmallVec;

use super::lexicon::{self, Lexicon, Role, Roles, Use, Verb, VerbKind};

/// The verbs of a first sentence that say what the tool does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Prose<'l> {
    /// The first verb that is not negated.
    pub(super) lead: Option<&'l Verb>,
    /// The most harmful write verb joined to it: `Finds a record and deletes it`.
    pub(super) also: Option<&'l Verb>,
    /// The sentence begins with its first verb, as in `Returns the weather`; a verb without a
    /// meaning of its own may come before, as in `Performs a search`.
    pub(super) opens: bool,
    /// The words after the first verb name what it runs, and that reads: `Runs a search`.
    pub(super) runs_read: bool,
    /// The sentence says `read-only`.
    pub(super) read_only: bool,
    /// The sentence says nothing, and the first later one that does begins with a verb that reads:
    /// `Use this for logs. Lists them.` That is weak evidence by itself.
    pub(super) later_reads: bool,
    /// The sentence says that the answer changes by itself: `a random fact`, `the current time`.
    pub(super) drifts: Option<&'static str>,
    /// The sentence mentions items of a queue.
    pub(super) queued: bool,
}

impl<'l> Prose<'l> {
    /// Returns the most destructive verb.
    pub(super) fn worst(self) -> Option<&'l Verb> {
        match (self.lead, self.also) {
            (Some(lead), Some(also)) if also.kind > lead.kind => Some(also),
            (lead, _) => lead,
        }
    }
}

/// A sentence without a verb up to here is not understood.
const MOST_WORDS: usize = 24;
/// A negation reaches over this many words: `does not permanently delete`.
const NEGATED_WORDS: usize = 3;
/// `Performs a quick web search`: the largest distance of the noun.
const LIGHT_VERB_WORDS: usize = 5;
/// The most sentences that are read to find the first that says something.
const MOST_SENTENCES: usize = 3;

/// Phrases that warn of a loss. Each is matched without its first letter, which may be a capital.
const WARNINGS: &str = "permanently|irreversibl|cannot be undone|can't be undone|overwrit";

/// Reads the first sentence, and where it says nothing the next ones.
pub(super) fn read<'l>(text: &str, lexicon: &'l Lexicon) -> Prose<'l> {
    let (first, rest) = split_sentence(text);
    let mut prose = read_sentence(first, lexicon);
    if prose.lead.is_none() {
        let mut rest = rest;
        for _ in 1..MOST_SENTENCES {
            let (sentence, after) = split_sentence(rest);
            let later = read_sentence(sentence, lexicon);
            if let Some(worst) = later.worst() {
                prose.later_reads = later.opens && worst.kind == VerbKind::Read;
                break;
            }
            rest = after;
        }
    }
    prose
}

fn read_sentence<'l>(sentence: &str, lexicon: &'l Lexicon) -> Prose<'l> {
    let mut prose = Prose::default();
    let words: SmallVec<[Token<'_>; MOST_WORDS]> = words_of(sentence).take(MOST_WORDS).collect();
    if let Some(question) = words.first().and_then(|first| lexicon.question(first.word)) {
        prose.lead = Some(question);
        prose.opens = true;
    }
    let mut before = "";
    let mut before_roles = Roles::default();
    let mut negated = 0;
    let mut light = 0;
    let mut opens_light = false;
    let mut run = 0;
    for (place, token) in words.iter().enumerate() {
        let word = token.word;
        let roles = Roles::of(word);
        let next = words.get(place + 1).map_or("", |token| token.word);
        prose.queued |= roles.has(Role::Queued);
        prose.drifts = prose.drifts.or_else(|| {
            let time = || {
                roles
                    .word_if(Role::Time)
                    .filter(|_| before_roles.has(Role::Current))
            };
            roles.word_if(Role::Chance).or_else(time)
        });
        prose.runs_read |= run > 0 && lexicon.is_read_noun(word);
        let says_read_only = word.eq_ignore_ascii_case("readonly")
            || (word.eq_ignore_ascii_case("only") && before.eq_ignore_ascii_case("read"));
        prose.read_only |= says_read_only && negated == 0;
        if roles.has(Role::Negation) {
            negated = NEGATED_WORDS + 1;
        } else if roles.has(Role::LightVerb) {
            light = LIGHT_VERB_WORDS + 1;
            opens_light |= place == 0;
        } else if prose.lead.is_some() && !before_roles.has(Role::Join) && token.after.is_none() {
            // the verb is known, and no other is joined to it here
        } else if let Some(verb) = lexicon
            .find_inflected(word)
            .filter(|verb| !is_noun(verb, word, next) && !goes_back(verb, next))
            .filter(|_| !lexicon::is_turned(word, next))
        {
            let is_verb = place == 0
                || matches!(verb.usage, Use::Verb | Use::Prose)
                || before_roles.has(Role::BeforeVerb)
                || (light > 0 && verb.kind == VerbKind::Read);
            // `List, create or close a tab` does all three;
            // `Finds one; starts one if there is none`
            let listed = token.after == Some(',') && lexicon.find_inflected(before).is_some();
            let joined = before_roles.has(Role::Join) || listed;
            let acts = verb.usage == Use::Verb || Roles::of(next).has(Role::AfterVerb);
            if is_verb && negated > 0 {
                negated = 0;
            } else if is_verb && prose.lead.is_none() {
                prose.lead = Some(verb);
                prose.opens = place == 0 || (light > 0 && opens_light);
                if verb.has(Role::Runs) {
                    run = LIGHT_VERB_WORDS + 1;
                }
            } else if verb.kind != VerbKind::Read
                && acts
                && (joined || token.after == Some(';'))
                && prose.also.is_none_or(|also| also.kind < verb.kind)
            {
                prose.also = Some(verb);
            }
        }
        negated = negated.saturating_sub(1);
        light = light.saturating_sub(1);
        run = run.saturating_sub(1);
        before = word;
        before_roles = roles;
    }
    prose
}

/// `Messages of a channel` sends none, and `Queue statistics` puts nothing in a queue. A noun that
/// reads is as good as the verb: `List of users`.
fn is_noun(verb: &Verb, word: &str, next: &str) -> bool {
    if verb.kind == VerbKind::Read {
        return false;
    }
    let bare = verb.is(&word.to_ascii_lowercase());
    match verb.usage {
        Use::Verb => false,
        _ if Roles::of(next).has(Role::AfterNoun) => true,
        Use::Noun => bare && !Roles::of(next).has(Role::AfterVerb),
        Use::First | Use::Either | Use::Prose => false,
    }
}

/// `Returns to the previous page` returns nothing.
fn goes_back(verb: &Verb, next: &str) -> bool {
    verb.usage == Use::Prose && next.eq_ignore_ascii_case("to")
}

/// Returns the first warning of a loss that is not negated, wherever it stands.
pub(super) fn warning(text: &str) -> Option<&'static str> {
    let warns = |phrase: &&str| {
        let rest = phrase.get(1..).unwrap_or_default();
        let before = |at: usize| text.get(..at.saturating_sub(1)).unwrap_or("");
        text.match_indices(rest)
            .any(|(at, _)| !is_negated(before(at)))
    };
    WARNINGS.split('|').find(warns)
}

/// Returns a word of the first sentences that is in the list.
pub(super) fn find(text: &str, role: Role) -> Option<&'static str> {
    text.split(|c: char| !c.is_alphanumeric())
        .take(MOST_WORDS * 2)
        .find_map(|word| Roles::of(word).word_if(role))
}

fn is_negated(before: &str) -> bool {
    before
        .rsplit(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
        .take(NEGATED_WORDS)
        .any(|word| lexicon::is(word, Role::Negation))
}

/// Splits a text at its first full stop or line break. `e.g.` ends a sentence too, which does no
/// harm: the verb has come by then.
fn split_sentence(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let ends = |(at, byte): &(usize, u8)| match byte {
        b'\n' | b'!' | b'?' => true,
        b'.' => text
            .as_bytes()
            .get(at + 1)
            .is_none_or(u8::is_ascii_whitespace),
        _ => false,
    };
    text.bytes()
        .enumerate()
        .find(ends)
        .and_then(|(at, _)| Some((text.get(..at)?, text.get(at + 1..)?)))
        .unwrap_or((text, ""))
}

/// A word of a sentence.
struct Token<'a> {
    word: &'a str,
    /// The separator before it, if that is more than a space.
    after: Option<char>,
}

fn words_of(sentence: &str) -> impl Iterator<Item = Token<'_>> {
    sentence
        .split_inclusive([',', ';'])
        .scan(None, |mark, clause| {
            let after = std::mem::replace(mark, clause.chars().next_back());
            Some((clause, after))
        })
        .flat_map(|(clause, after)| {
            clause
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .enumerate()
                .map(move |(at, word)| Token {
                    word,
                    after: after.filter(|_| at == 0),
                })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A description; its first verb, `-` if it has none, and what else is noticed. `-` before a
    /// word is for what is not.
    const CASES: &str = "
Deletes a user => delete
List all users. Use delete to remove one. => list
A tool to list users => list
This tool can be used for creating users => create
Performs a web search => search
The list of users => -
List of users => list
Messages of a channel => -
Queue statistics => -
 => -
削除する => -
Does not delete anything => -
Without ever deleting a file, retrieves it => retrieve
It doesn't permanently remove rows but gets them => get
Fetches a row and never deletes it => fetch -also
Finds a record and deletes it => find also worst:delete
Finds a record to delete => find -also
List, create, or close a tab => list also worst:close
Get provisioning limits, quotas => get -also
Runs a full-text search => run runs_read
Run an aggregation against it => run runs_read
Execute an action on a resource => execute -runs_read
Deletes what a search found => delete -runs_read
Executes a safe, read-only query => execute read_only
Runs a readonly query => run read_only
Runs a query that is not read-only => run -read_only
Reads the only row. Read-only otherwise. => read -read_only";

    #[test]
    fn the_first_verb_is_found_and_what_is_joined_to_it() {
        for (text, expected) in CASES.lines().filter_map(|case| case.split_once(" => ")) {
            let prose = read(text, Lexicon::standard());
            let word =
                |verb: Option<&Verb>| verb.map_or_else(|| "-".into(), |verb| verb.word.clone());
            let mut expected = expected.split(' ');
            assert_eq!(word(prose.lead), expected.next().unwrap(), "{text}");
            for noticed in expected {
                let (name, is) = match noticed.strip_prefix('-') {
                    Some(name) => (name, false),
                    None => (noticed, true),
                };
                let found = match name {
                    "also" => prose.also.is_some(),
                    "runs_read" => prose.runs_read,
                    "read_only" => prose.read_only,
                    worst => worst.strip_prefix("worst:") == Some(&*word(prose.worst())),
                };
                assert_eq!(found, is, "{text}: {noticed}");
            }
        }
    }

    #[test]
    fn warnings_are_understood_with_their_negation() {
        for (text, phrase) in [
            ("Edits a file.\nPermanently.", Some("permanently")),
            ("This action cannot be undone", Some("cannot be undone")),
            ("Writes, without ever overwriting", None),
            ("Rows are not permanently kept", None),
            ("Nothing to see", None),
        ] {
            assert_eq!(warning(text), phrase, "{text}");
        }
    }
}
