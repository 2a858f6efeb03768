//! The verbs of a name, weighed against each other.

use smallvec::SmallVec;

use crate::infer::lexicon::{self, Lexicon, Role, Use, Verb, VerbKind};
use crate::infer::words;

/// The verbs of a name, weighed against each other.
pub(super) struct Named<'l> {
    pub(super) verb: &'l Verb,
    pub(super) usage: Use,
    /// It is the first word.
    pub(super) leads: bool,
    pub(super) kind: VerbKind,
    pub(super) idempotent: bool,
    /// A later verb says otherwise.
    pub(super) doubted: bool,
    /// A verb that reads, first or last in the name.
    pub(super) reads: Option<&'l Verb>,
    /// The last word is a verb that reads and never a noun: `push_token_get`. Or the verb may be a
    /// noun, and what follows asks for it: `deploy_status`, `deploy_token_get_all`.
    pub(super) reads_last: bool,
    /// What it runs may be a reading: `run_scan`, `execute_query`.
    pub(super) may_run_a_read: bool,
    /// The name has no other.
    only: bool,
    /// It is the last word.
    last: bool,
    /// No word joins it to another.
    pub(super) alone: bool,
}

/// A verb in its place.
#[derive(Clone, Copy)]
struct Spot<'l> {
    at: usize,
    verb: &'l Verb,
    usage: Use,
}

impl<'l> Named<'l> {
    pub(super) fn read(name: &[&str], lexicon: &'l Lexicon) -> Option<Self> {
        let verbs: SmallVec<[Spot<'l>; 4]> = (0..name.len())
            .filter_map(|at| Spot::find(name, at, lexicon))
            .collect();
        let head = head(&verbs)?;
        let &Spot { at, verb, usage } = verbs.get(head)?;
        let mut named = Self {
            verb,
            usage,
            leads: name
                .iter()
                .take(at)
                .all(|word| lexicon::is(word, Role::Light)),
            kind: verb.kind,
            idempotent: verb.kind.is_idempotent(),
            doubted: false,
            reads: reads(&verbs, name.len()),
            reads_last: false,
            may_run_a_read: verb.has(Role::Runs)
                && (at + 1 == name.len() || lexicon.is_read_noun(name.last()?)),
            last: at + 1 == name.len(),
            only: verbs.len() == 1,
            alone: !name.iter().any(|word| lexicon::is(word, Role::Join)),
        };
        let noun = verb.has(Role::AlsoNoun);
        named.reads_last = verbs.iter().skip(head + 1).any(|spot| {
            let last = spot.at + 1 == name.len();
            let asks = match spot.usage {
                Use::Verb => noun || (last && usage != Use::Verb),
                _ => noun && last && named.leads,
            };
            asks && spot.verb.kind == VerbKind::Read
        });
        for spot in verbs.iter().skip(head + 1) {
            let join = spot
                .at
                .checked_sub(1)
                .and_then(|before| name.get(before))
                .filter(|word| lexicon::is(word, Role::Join));
            let last = spot.at + 1 == name.len();
            named.weigh(spot, join.copied(), last);
        }
        // `get_or_init`: the effect is unknown if the value does not exist
        named.doubted |= name
            .windows(2)
            .any(|pair| matches!(pair, [or, other] if words::same(or, "or") && lexicon.find(other).is_none()));
        Some(named)
    }

    /// Takes a later verb into account: always after a join, else only where a write follows a
    /// read and cannot be a noun.
    fn weigh(&mut self, later: &Spot<'l>, join: Option<&str>, last: bool) {
        let kind = later.verb.kind;
        if kind <= self.kind {
            if join.is_some() && kind != VerbKind::Read {
                self.idempotent &= kind.is_idempotent();
            }
            return;
        }
        if self.kind == VerbKind::Read {
            // `lookup_cache_clear`: a verb at the end that loses something is not a noun
            let loses = last && kind.is_destructive();
            if later.usage == Use::Verb || join.is_some() || loses {
                self.verb = later.verb;
                self.usage = later.usage;
                self.leads = false;
                self.kind = kind;
                self.idempotent = false;
                self.doubted = true;
            }
        } else if let Some(join) = join {
            // `create_or_update` brings about a state; `create_and_update` does both.
            let either =
                words::same(join, "or") && self.kind == VerbKind::Add && kind == VerbKind::Set;
            self.idempotent = either || (self.idempotent && kind.is_idempotent());
            self.kind = kind;
        }
    }

    /// Returns `true` if a name that seems to write may yet read: its verb may be a noun, or
    /// another that reads stands at either end.
    pub(super) fn may_read(&self) -> bool {
        let noun = match self.usage {
            Use::Either | Use::Noun => true,
            Use::First => !self.leads,
            Use::Verb | Use::Prose => false,
        };
        self.alone && (noun || self.reads.is_some() || self.reads_last)
    }

    /// Returns `true` if the name is believed, given what the description does that does not
    /// contradict it: agree, or say nothing, and with its first word.
    pub(super) fn is_firm(&self, agrees: bool, silent: bool, opens: bool) -> bool {
        if self.doubted {
            return false;
        }
        let reads = self.kind == VerbKind::Read;
        let leads = self.leads
            && match self.usage {
                Use::Verb | Use::First => true,
                Use::Either => reads,
                Use::Noun | Use::Prose => false,
            };
        if leads || !reads {
            return leads || agrees;
        }
        // `storage_account_get`, `activity_log_list`, `server_info`
        let plain = self.reads.is_some_and(|reads| reads == self.verb);
        match self.usage {
            Use::Verb => (agrees || silent) && (plain || opens),
            Use::First => {
                (agrees && (plain || opens)) || (silent && plain && (self.last || self.only))
            }
            Use::Noun => (agrees && opens) || ((agrees || silent) && self.only && self.last),
            Use::Either | Use::Prose => agrees && opens,
        }
    }
}

impl<'l> Spot<'l> {
    /// Reads one word of a name, and where it depends on them those around it.
    fn find(name: &[&str], at: usize, lexicon: &'l Lexicon) -> Option<Self> {
        let word = name.get(at)?;
        let next = name.get(at + 1);
        if next.is_some_and(|next| lexicon::is_turned(word, next)) {
            return None;
        }
        let with = |verb: &'l Verb, usage| Some(Self { at, verb, usage });
        if let Some(verb) = lexicon.find(word) {
            return with(verb, verb.usage);
        }
        if at == 0
            && let Some(verb) = lexicon
                .find_with_object(word, name.last()?)
                .or_else(|| lexicon.question(word))
        {
            return with(verb, verb.usage);
        }
        // `deletes_user` deletes; `orders_get` is about orders, and `listing_get` about a listing.
        let verb = lexicon.find_inflected(word)?;
        match verb.usage {
            Use::Prose => None,
            Use::Verb if at == 0 && !lexicon::is_gerund(word) => with(verb, Use::Verb),
            _ if lexicon::is_gerund(word) => with(verb, Use::Noun),
            _ => None,
        }
    }
}

/// Picks the verb that says what the tool does: the first, unless it may be a noun and another
/// follows that says something else.
fn head(verbs: &[Spot<'_>]) -> Option<usize> {
    let mut head = 0;
    loop {
        let first = verbs.get(head)?;
        let outweighs = |spot: &Spot<'_>| match first.usage {
            Use::Noun => spot.usage != Use::Noun,
            Use::Either => spot.usage == Use::Verb && spot.verb.kind != first.verb.kind,
            Use::Verb | Use::First | Use::Prose => false,
        };
        match verbs.iter().skip(head + 1).position(outweighs) {
            Some(after) => head += after + 1,
            None => return Some(head),
        }
    }
}

/// Finds a verb that reads: the first verb, or the last of `words` words.
fn reads<'l>(verbs: &[Spot<'l>], words: usize) -> Option<&'l Verb> {
    verbs
        .iter()
        .enumerate()
        .find(|(place, spot)| {
            (*place == 0 || spot.at + 1 == words)
                && spot.verb.kind == VerbKind::Read
                && matches!(spot.usage, Use::Verb | Use::First)
        })
        .map(|(_, spot)| spot.verb)
}
