//! The verbs, and what calling a tool by one of them means.
//!
//! Each group says what its verbs do to the world. Where a verb stands in two minds it is in the
//! stricter group, or in none: a verb that is not here says nothing, which is safe. Left out on
//! purpose: `download`, `export`, `extract` (they write somewhere, perhaps only at the caller's),
//! `watch`, `scan`, `crawl` (they may start something that goes on), `select`, `review`, `resolve`,
//! `open`, `test` and `generate` (anything).
//!
//! The last lists tell how a word behaves in a name:
//!
//! - a word in no further list is a verb wherever it stands;
//! - [`VERB_IN_FRONT`]: a verb when it leads, a noun after a verb (`update_page`, `get_update`);
//! - [`VERB_OR_NOUN`]: perhaps a noun even when it leads, so that it does not decide alone
//!   (`post_message`, `post_stats`), and certainly one after a verb;
//! - [`MOSTLY_NOUN`]: a noun even when it leads, if another verb follows (`log_add`).
//!
//! Each string is a line of words, parted by spaces.

use std::sync::LazyLock;

/// What a verb does to the world. Ordered from harmless to harmful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Changes nothing.
    Read,
    /// Only adds: nothing that was there is lost. A second run adds again.
    Add,
    /// Puts a mark on something, or takes it off: a second run changes nothing more, and nothing is
    /// lost.
    Mark,
    /// Sets something going or brings it to a stop, again each time. Nothing is lost by it.
    Act,
    /// Brings about a state: a second run changes nothing more. What was there is replaced.
    Set,
    /// Changes what it finds, or cannot be taken back, or may do anything; again each time.
    Change,
    /// Takes away for good; what is gone cannot go twice.
    Delete,
    /// Loses something each time it runs.
    Damage,
}

impl Kind {
    /// Says whether the verb loses something.
    pub(super) const fn is_destructive(self) -> bool {
        matches!(self, Self::Delete | Self::Damage)
    }

    /// Says whether the verb does more than add, so that something may be lost.
    pub(super) const fn may_lose(self) -> bool {
        matches!(self, Self::Set | Self::Change) || self.is_destructive()
    }

    /// Says whether a second run changes nothing more.
    pub(super) const fn is_idempotent(self) -> bool {
        matches!(self, Self::Read | Self::Mark | Self::Set | Self::Delete)
    }
}

/// How a word behaves in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A verb wherever it stands.
    Verb,
    /// A verb when it leads.
    First,
    /// A verb or a noun when it leads.
    Either,
    /// A noun, unless there is no other verb.
    Noun,
    /// A verb in prose, nothing in a name.
    Prose,
}

/// One verb of the lexicon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verb {
    pub(super) word: &'static str,
    pub(super) kind: Kind,
    pub(crate) usage: Use,
}

/// Looks, asks, computes from what it is given.
const READ: &[&str] = &[
    // look something up
    "browse count describe discover enumerate fetch find get grep inspect list locate",
    "lookup ls peek ping query read retrieve scrape search show status tail view whoami",
    // judge something
    "aggregate analyse analyze assess check compare detect diagnose diff display explain",
    "classify identify inquire lint measure monitor preview rank recommend rerank",
    "suggest summarise summarize trace validate verify wait",
    // compute from the arguments alone
    "calculate compute decode echo encode estimate forecast geocode hash parse predict",
    "recognize tokenize translate",
];

/// Reads in prose only: `Returns the order` reads, `return_order` sends the goods back.
const READ_IN_PROSE: &[&str] = &["provide return"];

/// Makes something new beside what is there.
const ADD: &[&str] = &[
    "add append attach author clone comment compose copy create draft duplicate fork",
    "import insert log make new post prepend provision record register reply schedule",
    "submit upload",
];

/// Marks, switches, places among others: as easily taken back as done.
const MARK: &[&str] = &[
    "acknowledge associate bind bookmark favorite flag follow hide label link lock mute pin",
    "reopen star subscribe tag unarchive unassign unblock unflag unfollow unhide unlock",
    "unmute unpin unshare unstar unsubscribe untag undelete",
];

/// Sets something going, or stops it.
const ACT: &[&str] = &[
    "build commit connect disconnect launch navigate notify redo retry scroll start stop",
    "toggle trigger undo vote",
];

/// Puts something into a state that is named by the arguments.
const SET: &[&str] = &[
    // values
    "configure define ensure format put reformat rename reorder replace reschedule resize save",
    "set sort store sync synchronize unset update upsert write",
    // places and owners
    "allow archive assign block deny detach disassociate grant move reassign relocate share",
    "unbind unlink",
    // states
    "accept activate approve close deactivate decline deprecate disable dismiss enable mark",
    "pause quarantine reject restore resume snooze suspend unpublish",
];

/// Changes what it finds; doing it twice does it twice.
const CHANGE: &[&str] = &[
    // runs what it is told
    "call eval evaluate exec execute handle interact invoke manage perform process run",
    // cannot be taken back by the sender
    "book broadcast buy charge checkout dispatch donate email forward invite mail message",
    "order pay publish purchase refund send spend trade transfer withdraw",
    // depends on the state it finds: an edit made twice may be two edits
    "adjust alter apply authorize change complete decrement deploy edit escalate increment",
    "install merge migrate modify patch promote pull push reauthorize rebase rotate scale swap",
    "transition upgrade",
    // drives a user interface
    "click drag fill hover press tap type",
];

/// Takes away.
const DELETE: &[&str] = &[
    "abort cancel clear deauthorize decommission del delete deprovision deregister destroy",
    "discard drop empty erase evict expunge flush forget invalidate kill nuke obliterate",
    "overwrite prune purge remove reset revoke rm rmdir shred terminate trash truncate undeploy",
    "uninstall unregister wipe zap",
];

/// Puts away, though it can be had back: on the far side of [`DELETE`] for those who look for it.
const PUT_AWAY: &[&str] = &["archive", "unlink", "unpublish", "unset"];

/// Loses something, each time.
const DAMAGE: &[&str] = &["ban downgrade failover pop reboot restart revert rollback shutdown"];

/// In front these are verbs; after a verb they are what it is about.
const VERB_IN_FRONT: &[&str] = &[
    "allow archive block check clone commit copy drop edit fetch import invite launch",
    "list merge move patch pause pull push read reset run save search set share show",
    "start stop trash update upgrade upload write",
];

/// In front these may be either; after a verb they are what it is about.
const VERB_OR_NOUN: &[&str] = &[
    "book build call change charge comment count diff draft email favorite flag forecast",
    "fork hash label link lock lookup mail mark message new order ping post preview",
    "process purchase query refund reply schedule star store swap tag tail trace trade",
    "bookmark format rank sort transition transfer trigger type view vote wait",
];

/// Even in front, these are what another verb is about.
const MOSTLY_NOUN: &[&str] =
    &["author clear complete compute display empty log monitor record scale status"];

/// Words that join two verbs.
const JOINS: &[&str] = &["and", "or", "then"];

/// Words of a name that say nothing about what the tool does.
const FILLERS: &[&str] = &["mcp", "api", "tool", "tools", "bulk", "batch"];

/// Second words that turn a verb into something else: `check_in`, `check_out`.
const PARTICLES: &[&str] = &["in", "out", "off"];

/// Words that turn what follows them round: `does not delete`.
const NEGATIONS: &[&str] = &[
    "not", "never", "without", "no", "cannot", "neither", "nor", "doesn", "don", "won", "isn",
    "non",
];

/// Phrases of a description that warn of a loss. Each is matched without its first letter, which
/// may be a capital.
pub(super) const WARNINGS: &[&str] = &[
    "permanently",
    "irreversibl",
    "cannot be undone",
    "can't be undone",
    "overwrit",
];

/// Verbs of a description that leave to another word what is done: `Runs a search`.
const RUNS: &[&str] = &["run", "execute", "perform"];

/// Words after which the rest of a name moves on with each call, or differs each time: `get_next_job`
/// may take the job.
const CURSORS: &[&str] = &["next", "random"];

/// Names of arguments that hold a program: what such a tool does, its name cannot say.
pub(super) const PROGRAMS: &[&str] = &["sql", "command", "script", "code", "statement"];

/// The one reading verb that may have a program to run; `run` and `execute` do not read anyway.
pub(super) const QUERY: &str = "query";

pub(crate) fn is_join(word: &str) -> bool {
    contains(JOINS, word)
}

/// Says whether what the verb is about is gone afterwards.
pub(super) fn takes_away(word: &str) -> bool {
    find_base(word).is_some_and(|verb| verb.kind.is_destructive()) || contains(PUT_AWAY, word)
}

pub(super) fn is_run(verb: &Verb) -> bool {
    contains(RUNS, verb.word)
}

/// Says whether a word of prose names a reading: `search`, `aggregation`.
pub(super) fn is_read_noun(word: &str) -> bool {
    let noun = || {
        let at = word.len().checked_sub("ion".len())?;
        let stem = word
            .get(at..)?
            .eq_ignore_ascii_case("ion")
            .then(|| word.get(..at))?;
        with_ending(stem?, "e")
    };
    find_inflected(word)
        .or_else(noun)
        .is_some_and(|verb| verb.kind == Kind::Read)
}

pub(super) fn is_cursor(word: &str) -> bool {
    contains(CURSORS, word)
}

pub(crate) fn is_filler(word: &str) -> bool {
    contains(FILLERS, word)
}

pub(super) fn is_particle(word: &str) -> bool {
    contains(PARTICLES, word)
}

pub(super) fn is_negation(word: &str) -> bool {
    contains(NEGATIONS, word)
}

/// Finds a word of a name: its base form, in any case.
pub(crate) fn find(word: &str) -> Option<&'static Verb> {
    find_base(word).filter(|verb| verb.usage != Use::Prose)
}

fn find_base(word: &str) -> Option<&'static Verb> {
    let first = word.bytes().next()?.to_ascii_lowercase();
    INDEX
        .get(usize::from(first.checked_sub(b'a')?))?
        .iter()
        .find(|verb| verb.word.eq_ignore_ascii_case(word))
}

/// Finds a word as prose has it: `delete`, `deletes`, `deleting`. Not `deleted`: in prose that is
/// an adjective more often than not.
pub(super) fn find_inflected(word: &str) -> Option<&'static Verb> {
    if let Some(verb) = find_base(word) {
        return Some(verb);
    }
    let stem = |ending: &str| {
        let at = word.len().checked_sub(ending.len())?;
        let (stem, tail) = (word.get(..at)?, word.get(at..)?);
        tail.eq_ignore_ascii_case(ending).then_some(stem)
    };
    if let Some(base) = stem("ies") {
        return with_ending(base, "y");
    }
    if let Some(base) = stem("ing") {
        return find_base(base)
            .or_else(|| with_ending(base, "e"))
            .or_else(|| find_base(base.get(..base.len().checked_sub(1)?)?));
    }
    stem("s")
        .and_then(find_base)
        .or_else(|| stem("es").and_then(find_base))
}

fn with_ending(base: &str, ending: &str) -> Option<&'static Verb> {
    let first = base.bytes().next()?.to_ascii_lowercase();
    INDEX
        .get(usize::from(first.checked_sub(b'a')?))?
        .iter()
        .find(|verb| {
            verb.word
                .strip_suffix(ending)
                .is_some_and(|stem| stem.eq_ignore_ascii_case(base))
        })
}

fn contains(list: &[&str], word: &str) -> bool {
    list.iter().any(|entry| entry.eq_ignore_ascii_case(word))
}

/// All verbs, by first letter.
static INDEX: LazyLock<[Vec<Verb>; 26]> = LazyLock::new(|| {
    let mut index = [const { Vec::new() }; 26];
    for (kind, lines) in [
        (Kind::Read, READ),
        (Kind::Read, READ_IN_PROSE),
        (Kind::Add, ADD),
        (Kind::Mark, MARK),
        (Kind::Act, ACT),
        (Kind::Set, SET),
        (Kind::Change, CHANGE),
        (Kind::Delete, DELETE),
        (Kind::Damage, DAMAGE),
    ] {
        for word in words(lines) {
            let usage = [
                (READ_IN_PROSE, Use::Prose),
                (MOSTLY_NOUN, Use::Noun),
                (VERB_OR_NOUN, Use::Either),
                (VERB_IN_FRONT, Use::First),
            ]
            .into_iter()
            .find(|(lines, _)| words(lines).any(|entry| entry == word))
            .map_or(Use::Verb, |(_, usage)| usage);
            let first = word.bytes().next().map_or(0, |b| b.wrapping_sub(b'a'));
            if let Some(bucket) = index.get_mut(usize::from(first)) {
                bucket.push(Verb { word, kind, usage });
            }
        }
    }
    index
});

fn words(lines: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    lines.iter().flat_map(|line| line.split(' '))
}

#[cfg(test)]
mod tests;
