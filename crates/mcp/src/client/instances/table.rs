//! Which owner each instance belongs to: a state machine without tasks. The clock is an argument.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use callward_core::{ClientCapabilities, Principal, SessionId};
use tokio::time::Instant;

use super::entry::{Entry, Key, Ran};
use crate::client::options::UpstreamOptions;

/// All instances of one server. `H` is the handle that calls use; it keeps an instance open. The
/// lead is not among them while it is closed.
#[derive(Debug)]
pub(super) struct Table<H> {
    /// How many unassigned ones are kept started.
    spare: usize,
    /// How long after its last call one ends.
    idle: Duration,
    /// How many there are at most, those included that are ending.
    max: usize,
    entries: BTreeMap<u64, Entry<H>>,
    /// The lead serves calls that all share: it ends with no owner, and serves no further one.
    lead_is_shared: bool,
    /// The lead stays open, and is started again when it has ended.
    keeps_lead: bool,
    owners: HashMap<Key, u64>,
    next: u64,
    closed: bool,
}

/// How many instances one owner may have, for clients that declare different things: a client of
/// 2026-07-28 does so with each request.
const MAX_DECLARED: usize = 8;

/// What is known of the lead when a call comes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lead {
    pub(super) is_down: bool,
    pub(super) declares: ClientCapabilities,
}

/// Why a call gets no instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// There are as many as there may be, and none of them can be ended.
    Full,
    /// There are as many as there may be, and one of them is ending.
    UntilOneEnds,
    /// The server was shut down.
    Closed,
}

impl<H: Clone> Table<H> {
    pub(super) fn new(options: &UpstreamOptions, lead: H, now: Instant) -> Self {
        Self {
            spare: options.spare,
            idle: options.idle,
            max: options.max_instances.max(1),
            entries: BTreeMap::from([(
                0,
                Entry::new(lead, true, ClientCapabilities::default(), now),
            )]),
            lead_is_shared: false,
            keeps_lead: false,
            owners: HashMap::new(),
            next: 1,
            closed: false,
        }
    }

    /// Counts a call of an owner as in flight at its instance, and assigns one if it has none.
    /// `start` starts one more, from its number, whether it is the lead, and what it declares; the
    /// lead may keep what it declared. Returns its number and handle.
    pub(super) fn enter(
        &mut self,
        key: Key,
        ran: Ran,
        now: Instant,
        lead: Lead,
        mut start: impl FnMut(u64, bool, Option<ClientCapabilities>) -> H,
    ) -> Result<(u64, H), Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        if let Some(entry) = self.entries.values_mut().find(|entry| entry.is_lead) {
            entry.declares = lead.declares;
        }
        let number = match self.owners.get(&key) {
            Some(number) => *number,
            None => {
                let is_of_owner = |other: &&Key| {
                    (&other.principal, &other.session) == (&key.principal, &key.session)
                };
                if self.owners.keys().filter(is_of_owner).count() >= MAX_DECLARED {
                    return Err(Refused::Full);
                }
                let number = self.assign(&key, now, lead.is_down, &mut start)?;
                // sessions come and go; principals stay
                if key.session.is_some() {
                    self.warm(now, key.declares, &mut start);
                }
                self.owners.insert(key, number);
                number
            }
        };
        let Some(entry) = self.entries.get_mut(&number) else {
            return Err(Refused::Closed);
        };
        entry.in_flight += 1;
        entry.calls += 1;
        entry.ran = entry.ran.max(ran);
        entry.used = now;
        // one that ends has no owner
        let handle = entry.handle.clone().ok_or(Refused::UntilOneEnds)?;
        Ok((number, handle))
    }

    /// Returns `true` if the owner has an instance.
    pub(super) fn has(&self, owner: &Key) -> bool {
        self.owners.contains_key(owner)
    }

    /// Returns `true` if instances are ending, and the owner has none of its own yet.
    pub(super) fn has_ending_before(&self, owner: &Key) -> bool {
        self.entries.values().any(Entry::is_ending) && !self.has(owner)
    }

    /// Returns the lead, which stays open while a clone of it exists; starts it if it is closed.
    /// With `share` no owner has it from now on, since it serves calls that all share: one that had
    /// it gets another instance with its next call.
    pub(super) fn open_lead(
        &mut self,
        share: bool,
        now: Instant,
        mut start: impl FnMut(u64, bool, Option<ClientCapabilities>) -> H,
    ) -> Result<H, Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        if self.lead().is_none() {
            self.start(now, None, &mut start);
        }
        let handle = self.opened_lead().ok_or(Refused::UntilOneEnds)?;
        if share {
            self.lead_is_shared = true;
            let mut entries = self.entries.values_mut();
            let lead = entries.find(|entry| entry.is_lead);
            if let Some(owner) = lead.and_then(|lead| lead.owner.take()) {
                self.owners.remove(&owner);
            }
        }
        Ok(handle)
    }

    /// Keeps the lead open from now on, or no longer; starts it if it is closed.
    pub(super) fn keep_lead(
        &mut self,
        keeps: bool,
        now: Instant,
        mut start: impl FnMut(u64, bool, Option<ClientCapabilities>) -> H,
    ) {
        self.keeps_lead = keeps && !self.closed;
        if self.keeps_lead && self.lead().is_none() {
            self.start(now, None, &mut start);
        }
    }

    /// Returns the lead if it is open.
    pub(super) fn opened_lead(&self) -> Option<H> {
        self.lead()?.1.handle.clone()
    }

    /// Takes note that the server keeps state between reads: no instance that ran one is clean.
    pub(super) fn taint(&mut self) {
        for entry in self.entries.values_mut().filter(|entry| entry.calls > 0) {
            entry.ran = Ran::Writes;
        }
    }

    /// Takes note that a call has ended, however it did.
    pub(super) fn leave(&mut self, number: u64, now: Instant) {
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        entry.in_flight = entry.in_flight.saturating_sub(1);
        entry.used = now;
        if entry.in_flight == 0 && entry.abandoned {
            self.let_go(number);
        }
    }

    /// Takes the instance from a session that has ended. One with calls in flight ends after them.
    pub(super) fn session_ended(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        now: Instant,
    ) {
        let is_of =
            |key: &Key| key.principal == *principal && key.session.as_ref() == Some(session);
        // of one session that declared several things, too
        let owned: Vec<_> = self.owners.extract_if(|key, _| is_of(key)).collect();
        for (_, number) in owned {
            let Some(entry) = self.entries.get_mut(&number) else {
                continue;
            };
            entry.owner = None;
            entry.abandoned = true;
            entry.used = now;
            if entry.in_flight == 0 {
                self.let_go(number);
            }
        }
    }

    /// Takes note of how long an instance took to start.
    pub(super) fn started(&mut self, number: u64, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&number) {
            let took = now.saturating_duration_since(entry.since);
            entry.startup.get_or_insert(took);
        }
    }

    /// Takes note of how long the lead took to start.
    pub(super) fn lead_started(&mut self, now: Instant) {
        if let Some((number, _)) = self.lead() {
            self.started(number, now);
        }
    }

    /// Forgets the lead, which has ended. It is started again at once if spare instances are kept.
    pub(super) fn lead_ended(
        &mut self,
        now: Instant,
        mut start: impl FnMut(u64, bool, Option<ClientCapabilities>) -> H,
    ) {
        if let Some((number, _)) = self.lead() {
            self.ended(number);
        }
        if (self.spare > 0 || self.keeps_lead) && !self.closed {
            self.start(now, None, &mut start);
        }
    }

    /// Forgets an instance that has ended.
    pub(super) fn ended(&mut self, number: u64) {
        self.entries.remove(&number);
        self.owners.retain(|_, owned| *owned != number);
    }

    /// Ends instances that were not used for long enough, and spare ones beyond the limit or
    /// without owners to come. The lead stays as the spare one, and while it is down, so that
    /// attempts to connect go on.
    ///
    /// Returns whether state was lost that its owner may have read from, and when the next instance
    /// is idle for long enough, if none is used until then.
    pub(super) fn sweep(&mut self, now: Instant, lead_is_down: bool) -> (bool, Option<Instant>) {
        let (mut is_lost, mut next) = (false, None);
        let is_owned = !self.owners.is_empty();
        let mut surplus = self.spares().saturating_sub(self.spare);
        let mut overdue = Vec::new();
        for (number, entry) in &self.entries {
            let waits = match (entry.is_fresh(), entry.is_lead) {
                (_, true) if self.keeps_lead => true,
                (true, true) => self.spare > 0 || self.lead_is_shared || lead_is_down,
                (true, false) if surplus > 0 => {
                    surplus -= 1;
                    false
                }
                (true, false) => is_owned,
                (false, _) => false,
            };
            if !entry.is_idle() || waits {
                continue;
            }
            match entry.used.checked_add(self.idle) {
                Some(end) if end <= now => overdue.push(*number),
                Some(end) => next = Some(next.map_or(end, |next: Instant| next.min(end))),
                // beyond the end of time means never
                None => {}
            }
        }
        for number in overdue {
            let Some(entry) = self.entries.get_mut(&number) else {
                continue;
            };
            if let Some(owner) = entry.owner.take() {
                self.owners.remove(&owner);
                is_lost |= !entry.is_clean();
            }
            if !(entry.is_lead && self.lead_is_shared) {
                entry.handle = None;
            }
        }
        (is_lost, next)
    }

    /// Returns `true` if the lead serves some owner, or is closed after it did.
    pub(super) fn lead_is_owned(&self) -> bool {
        let is_owned = |lead: &Entry<H>| lead.owner.is_some() || lead.abandoned || lead.is_ending();
        self.lead().is_none_or(|(_, lead)| is_owned(lead))
    }

    /// Starts no more instances; returns those to end, all but the lead.
    pub(super) fn close(&mut self) -> Vec<H> {
        self.closed = true;
        let others = self.entries.values_mut().filter(|entry| !entry.is_lead);
        others.filter_map(|entry| entry.handle.take()).collect()
    }

    /// Returns `true` if only the lead is left.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.values().all(|entry| entry.is_lead)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<H>> {
        self.entries.values()
    }

    /// Finds an instance for an owner that has none.
    fn assign(
        &mut self,
        key: &Key,
        now: Instant,
        lead_is_down: bool,
        start: &mut impl FnMut(u64, bool, Option<ClientCapabilities>) -> H,
    ) -> Result<u64, Refused> {
        let fits = |(_, entry): &(&u64, &Entry<H>)| {
            entry.is_free()
                && entry.declares == key.declares
                && !(entry.is_lead && (lead_is_down || self.lead_is_shared))
                && match &entry.principal {
                    None => true,
                    Some(principal) => *principal == key.principal && entry.is_clean(),
                }
        };
        // one that served the principal before comes before one that has served no owner
        let found = self.entries.iter().filter(fits);
        let found =
            found.min_by_key(|(number, entry)| (entry.is_fresh(), !entry.is_lead, **number));
        let number = match found {
            Some((number, _)) => *number,
            None => {
                self.make_place()?;
                self.start(now, Some(key.declares), start)
            }
        };
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.owner = Some(key.clone());
            entry.principal = Some(key.principal.clone());
        }
        Ok(number)
    }

    /// Makes sure that one more may be started. An instance without state that its owner needs is
    /// ended for it, the least recently used one first.
    fn make_place(&mut self) -> Result<(), Refused> {
        if self.count() < self.max {
            return Ok(());
        }
        if self.entries.values().any(Entry::is_ending) {
            return Err(Refused::UntilOneEnds);
        }
        let can_end = |entry: &Entry<H>| {
            entry.is_idle()
                && !entry.abandoned
                && (entry.owner.is_none() || entry.ran < Ran::Writes)
                && !(entry.is_lead && self.lead_is_shared)
        };
        let idle = self.entries.iter().filter(|(_, entry)| can_end(entry));
        let oldest = idle.min_by_key(|(_, entry)| entry.used);
        let oldest = oldest.map(|(number, _)| *number);
        let Some(entry) = oldest.and_then(|number| self.entries.get_mut(&number)) else {
            return Err(Refused::Full);
        };
        if let Some(owner) = entry.owner.take() {
            self.owners.remove(&owner);
        }
        entry.handle = None;
        Err(Refused::UntilOneEnds)
    }

    /// Starts the missing spare instances.
    fn warm(
        &mut self,
        now: Instant,
        declares: ClientCapabilities,
        start: &mut impl FnMut(u64, bool, Option<ClientCapabilities>) -> H,
    ) {
        let ready = |entry: &&Entry<H>| self.is_spare(entry) && entry.declares == declares;
        let ready = self.entries.values().filter(ready).count();
        let missing = self.spare.saturating_sub(ready);
        for _ in 0..missing {
            if self.count() >= self.max {
                return;
            }
            self.start(now, Some(declares), start);
        }
    }

    /// Starts the lead if it is closed, else an instance of its own.
    fn start(
        &mut self,
        now: Instant,
        declares: Option<ClientCapabilities>,
        start: &mut impl FnMut(u64, bool, Option<ClientCapabilities>) -> H,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        let is_lead = self.lead().is_none();
        let handle = start(number, is_lead, declares);
        let entry = Entry::new(handle, is_lead, declares.unwrap_or_default(), now);
        self.entries.insert(number, entry);
        number
    }

    fn lead(&self) -> Option<(u64, &Entry<H>)> {
        let mut entries = self.entries.iter();
        let lead = entries.find(|(_, entry)| entry.is_lead);
        lead.map(|(number, entry)| (*number, entry))
    }

    /// Gives an instance without calls to the next session of its principal, or ends it.
    fn let_go(&mut self, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        entry.abandoned = false;
        let is_shared = entry.is_lead && self.lead_is_shared;
        // a late question for its client must not reach the next one
        let is_passed_on = entry.is_clean() && entry.declares.is_empty();
        if entry.is_idle() && !(is_passed_on || is_shared) {
            entry.handle = None;
        }
    }

    /// Returns how many instances there are, without a lead that only serves calls that all share.
    fn count(&self) -> usize {
        let is_one = |entry: &&Entry<H>| !(entry.is_lead && self.lead_is_shared && entry.is_free());
        self.entries.values().filter(is_one).count()
    }

    /// Returns how many instances have served no owner and can be given to one.
    fn spares(&self) -> usize {
        let entries = self.entries.values();
        entries.filter(|entry| self.is_spare(entry)).count()
    }

    fn is_spare(&self, entry: &Entry<H>) -> bool {
        entry.is_fresh() && !(entry.is_lead && self.lead_is_shared)
    }
}

#[cfg(test)]
mod tests;
