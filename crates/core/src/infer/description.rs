//! Reads the first sentence of a description, and the warnings in all of it.

use smallvec::SmallVec;

use super::lexicon::words::{QUERY, list};
use super::lexicon::{self, Lexicon, Role, Roles, Use, Verb, VerbKind};

/// The verbs of a first sentence that say what the tool does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Prose<'l> {
    /// The first verb that is not negated.
    pub(super) lead: Option<&'l Verb>,
    /// The most harmful write verb joined to it: `Finds a record and deletes it`.
    pub(super) also: Option<&'l Verb>,
    /// The sentence begins with its first verb, as in `Returns the weather`. Words without a
    /// meaning of their own may come before: `Performs a search`, `Use this tool to list users`.
    pub(super) opens: bool,
    /// The words after the first verb name what it runs, and that reads: `Runs a search`.
    pub(super) runs_read: bool,
    /// It runs a query, of which no more is known.
    pub(super) runs_query: bool,
    /// The first sentences say `read-only`, or that only `SELECT` is accepted.
    pub(super) read_only: bool,
    /// The sentence says nothing, and the first later one that does begins with a verb that reads:
    /// `Use this for logs. Lists them.` That is weak evidence by itself.
    pub(super) later_reads: bool,
    /// The sentence says that the answer changes by itself: `a random fact`, `the current time`.
    pub(super) drifts: Option<&'static str>,
    /// The sentence mentions items of a queue.
    pub(super) queued: bool,
    /// It reports what is new `since the last call`, so something keeps track of the calls.
    pub(super) since_last: bool,
    /// What is read lands on the machine of the server: `to your local project`.
    pub(super) lands: Option<&'static str>,
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
/// `before creating a ticket`: what is said of another time reaches over this many words.
const ASIDE_WORDS: usize = 2;
/// `to your local project`: the largest distance of the place.
const LANDING_WORDS: usize = 3;
/// `Captures the accessibility snapshot`: the largest distance of the object.
const OBJECT_WORDS: usize = 4;
/// The most sentences that are read to find the first that says something.
const MOST_SENTENCES: usize = 3;

/// Phrases that warn of a loss. Each is matched without its first letter, which may be a capital.
const WARNINGS: &str = "permanently|irreversibl|cannot be undone|can't be undone|overwrit";

/// Reads the first sentence, where it says nothing the next ones, and in these what else the tool
/// does: `Returns a page. Creates it if it is missing.`
pub(super) fn read<'l>(text: &str, lexicon: &'l Lexicon) -> Prose<'l> {
    let (first, mut rest) = split_sentence(text);
    let mut prose = read_sentence(first, lexicon);
    if prose.lead.is_none() && !first.is_ascii() {
        prose.lead = of_other_scripts(first, lexicon);
        prose.opens = prose.lead.is_some();
    }
    let mut silent = prose.lead.is_none();
    for _ in 1..MOST_SENTENCES {
        let (sentence, after) = split_sentence(rest);
        let later = read_sentence(sentence, lexicon);
        if let Some(worst) = later.worst().filter(|_| silent) {
            prose.later_reads = later.opens && worst.kind == VerbKind::Read;
            silent = false;
        }
        prose.read_only |= later.read_only;
        prose.since_last |= later.since_last;
        let writes = also_writes(sentence, lexicon).filter(|_| prose.lead.is_some());
        prose.also = prose.also.or(writes);
        rest = after;
    }
    prose
}

/// Finds what a sentence does in a script without spaces, or with the verb at its end. It reads if
/// nothing in it writes.
fn of_other_scripts<'l>(sentence: &str, lexicon: &'l Lexicon) -> Option<&'l Verb> {
    let has = |name| list(name).iter().any(|phrase| sentence.contains(phrase));
    let reads = has("reading_phrases") && !has("writing_phrases");
    lexicon.find("get").filter(|_| reads)
}

/// Finds the verb of a sentence that begins with what the tool does besides: `Also marks them as
/// read.` An imperative is advice for the caller.
fn also_writes<'l>(sentence: &str, lexicon: &'l Lexicon) -> Option<&'l Verb> {
    let mut words = words_of(sentence).skip_while(|token| {
        let roles = Roles::of(token.word);
        lexicon.find_inflected(token.word).is_none()
            && (is_adverb(token.word) || roles.has(Role::Opening) || roles.has(Role::Join))
    });
    let word = words.next()?.word;
    let next = Roles::of(words.next()?.word);
    let verb = lexicon.find_inflected(word)?;
    let acts = verb.usage == Use::Verb || next.has(Role::AfterVerb);
    let states = acts && verb.kind != VerbKind::Read && !verb.has(Role::Loose);
    let is_noun = next.has(Role::AfterNoun) || next.has(Role::AfterSubject);
    (states && !is_noun && word.ends_with('s') && !verb.is(&word.to_ascii_lowercase()))
        .then_some(verb)
}

fn read_sentence<'l>(sentence: &str, lexicon: &'l Lexicon) -> Prose<'l> {
    let mut prose = Prose::default();
    let words: SmallVec<[Token<'_>; MOST_WORDS]> = words_of(sentence).take(MOST_WORDS).collect();
    if let Some(question) = words.first().and_then(|first| lexicon.question(first.word)) {
        prose.lead = Some(question);
        prose.opens = true;
    }
    let word_at = |place: usize| words.get(place).map_or("", |token| token.word);
    let after = |place: usize| words.iter().skip(place + 1).take(OBJECT_WORDS);
    let reads = |verb: &str, object: &Token<'_>| {
        lexicon.find_with_object(verb.strip_suffix('s').unwrap_or(verb), object.word)
    };
    let leads_to = |place: usize| {
        let from = place.saturating_sub(LANDING_WORDS);
        (from..place).any(|at| Roles::of(word_at(at)).has(Role::Toward))
    };
    let mut before = "";
    let mut before_roles = Roles::default();
    let mut mark = None;
    // only adverbs have come, and only words without a meaning of their own
    let (mut front, mut opening) = (true, true);
    let mut negated = 0;
    let mut aside = 0;
    let mut light = 0;
    let mut opens_light = false;
    let mut run = 0;
    for (place, token) in words.iter().enumerate() {
        let word = token.word;
        let roles = Roles::of(word);
        let next = word_at(place + 1);
        mark = token.after.or(mark);
        if token.after.is_some() {
            aside = 0;
        }
        prose.queued |= roles.has(Role::Queued);
        prose.since_last |=
            roles.has(Role::Turn) && before.eq_ignore_ascii_case("last") && leads_to(place);
        let lands = roles.word_if(Role::Landing);
        prose.lands = prose.lands.or_else(|| lands.filter(|_| leads_to(place)));
        prose.drifts = prose.drifts.or_else(|| {
            let time = || {
                roles
                    .word_if(Role::Time)
                    .filter(|_| before_roles.has(Role::Current))
            };
            roles.word_if(Role::Chance).or_else(time)
        });
        let looks_up = run > 0 && lexicon.is_read_noun(word);
        let is_query = lexicon
            .find_inflected(word)
            .is_some_and(|verb| verb.is(QUERY));
        prose.runs_read |= looks_up && !is_query;
        prose.runs_query |= looks_up && is_query;
        let only = word.eq_ignore_ascii_case("only");
        let selects = || (place.saturating_sub(2)..place + 3).any(|at| word_at(at) == "SELECT");
        let says_read_only = word.eq_ignore_ascii_case("readonly")
            || (only && (before.eq_ignore_ascii_case("read") || selects()));
        prose.read_only |= says_read_only && negated == 0 && !Roles::of(next).has(Role::OfFields);
        if roles.has(Role::Negation) {
            negated = NEGATED_WORDS + 1;
        } else if roles.has(Role::Aside) {
            aside = ASIDE_WORDS + 1;
        } else if roles.has(Role::LightVerb) {
            light = LIGHT_VERB_WORDS + 1;
            opens_light |= opening;
        } else if prose.lead.is_some() && !before_roles.has(Role::Join) && mark.is_none() {
            // the verb is known, and no other is joined to it here
        } else if let Some(verb) = lexicon
            .find_inflected(word)
            .or_else(|| after(place).find_map(|object| reads(word, object)))
            .filter(|verb| !is_noun(verb, token, next) && !goes_back(verb, next))
            .filter(|verb| !lexicon::is_turned(&verb.word, next))
            .filter(|verb| !is_of_the_caller(verb, next))
            .filter(|_| aside == 0)
        {
            let is_verb = front
                || matches!(verb.usage, Use::Verb | Use::Prose)
                || before_roles.has(Role::BeforeVerb)
                || (light > 0 && verb.kind == VerbKind::Read);
            // `List, create or close a tab` does all three;
            // `Finds one; starts one if there is none`
            let listed = mark == Some(',') && lexicon.find_inflected(before).is_some();
            let joined = before_roles.has(Role::Join) || listed;
            let acts = verb.usage == Use::Verb || Roles::of(next).has(Role::AfterVerb);
            if is_verb && negated > 0 {
                negated = 0;
            } else if is_verb && prose.lead.is_none() {
                prose.lead = Some(verb);
                prose.opens = opening || (light > 0 && opens_light);
                if verb.has(Role::Runs) {
                    run = LIGHT_VERB_WORDS + 1;
                }
            } else if verb.kind != VerbKind::Read
                && acts
                && (joined || mark == Some(';'))
                && prose.also.is_none_or(|also| also.kind < verb.kind)
            {
                prose.also = Some(verb);
            }
        }
        negated = negated.saturating_sub(1);
        aside = aside.saturating_sub(1);
        light = light.saturating_sub(1);
        run = run.saturating_sub(1);
        // an adverb changes nothing: `and automatically updates it`
        if !is_adverb(word) {
            front = false;
            opening &= roles.has(Role::Opening);
            before = word;
            before_roles = roles;
            mark = None;
        }
    }
    prose
}

/// `Quickly reads`; `apply` and `reply` are verbs, and known as such before.
fn is_adverb(word: &str) -> bool {
    word.ends_with("ly") && !["apply", "reply"].contains(&word)
}

/// `Allows you to list users` does not allow anything, and `Call this tool` is for the caller.
fn is_of_the_caller(verb: &Verb, next: &str) -> bool {
    verb.has(Role::Enables) && Roles::of(next).has(Role::Caller)
}

/// `Messages of a channel` sends none, and `Queue statistics` puts nothing in a queue. A noun that
/// reads is as good as the verb: `List of users`.
/// A word that is joined to the next is neither: `start-form fields`, `sync-only`.
fn is_noun(verb: &Verb, token: &Token<'_>, next: &str) -> bool {
    if verb.kind == VerbKind::Read {
        return false;
    }
    if token.hyphen {
        return true;
    }
    let bare = verb.is(&token.word.to_ascii_lowercase());
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
    first_words(text).find_map(|word| Roles::of(word).word_if(role))
}

/// Returns the words of the first sentences.
pub(super) fn first_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .take(MOST_WORDS * 2)
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
    /// A hyphen follows.
    hyphen: bool,
}

fn words_of(sentence: &str) -> impl Iterator<Item = Token<'_>> {
    sentence
        .split_inclusive([',', ';'])
        .scan(None, |mark, clause| {
            let after = std::mem::replace(mark, clause.chars().next_back());
            Some((clause, after))
        })
        .flat_map(|(clause, after)| {
            let separates = |c: char| !c.is_alphanumeric();
            clause
                .split_inclusive(separates)
                .map(move |piece| (piece.trim_end_matches(separates), piece.ends_with('-')))
                .filter(|(word, _)| !word.is_empty())
                .enumerate()
                .map(move |(at, (word, hyphen))| Token {
                    word,
                    after: after.filter(|_| at == 0),
                    hyphen,
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
注文を取得します => get opens
获取订单列表 => get opens
查询并删除订单 => -
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
Reads the only row. => read -read_only
Runs a query of read-only fields => run -read_only
Executes SQL. Only SELECT statements are accepted. => execute read_only
Gets a page, and automatically updates it => get also worst:update
Gets a page. Also marks it as seen. => get also worst:mark
Gets a page. Updates are sent hourly. Accepts a list. => get -also
Gets a page. Create one first. => get -also
Quickly reads a file => read opens
This tool allows you to list users => list opens
Call this tool to list users => list opens
Allows access to a host => allow opens
Loads the start-form fields => -
Shows how to delete a user => show opens -also
Captures an accessibility snapshot => capture opens
Blocks until the job is done => -
Takes a screenshot => screenshot opens";

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
                    "opens" => prose.opens,
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
