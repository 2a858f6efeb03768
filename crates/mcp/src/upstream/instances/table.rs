//! Which instance belongs to whom: a state machine without tasks. The clock is an argument.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Owner, Principal, SessionId};

use super::entry::{Entry, Key, Place};

/// How many instances there may be, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) struct Limits {
    /// How many that belong to nobody are kept started.
    pub(in crate::upstream) spare: usize,
    /// How long after its last call one ends.
    pub(in crate::upstream) idle: Duration,
    /// How many there are at most, those included that are ending.
    pub(in crate::upstream) max: usize,
    /// Whether one that has run writes may serve the next session of its principal.
    pub(in crate::upstream) reuse: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            spare: 1,
            idle: Duration::from_secs(5 * 60),
            max: 32,
            reuse: false,
        }
    }
}

/// The lead's number.
pub(super) const LEAD: u64 = 0;

/// All instances of one server. `H` is what calls go through.
#[derive(Debug)]
pub(super) struct Table<H> {
    limits: Limits,
    entries: BTreeMap<u64, Entry<H>>,
    owners: HashMap<Key, u64>,
    next: u64,
    closed: bool,
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

/// What a sweep did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Swept {
    /// State was lost that its owner may have read from.
    pub(super) lost: bool,
    /// When the next instance is idle for long enough, if none is used until then.
    pub(super) next: Option<Instant>,
}

impl<H: Clone> Table<H> {
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        Self {
            limits,
            entries: BTreeMap::from([(LEAD, Entry::new(Place::Lead, now))]),
            owners: HashMap::new(),
            next: LEAD + 1,
            closed: false,
        }
    }

    /// Counts a call of an owner as in flight at its instance, giving it one if it has none; `start`
    /// starts one more. Returns its number, and what leads there, which is nothing for the lead.
    pub(super) fn enter(
        &mut self,
        owner: Owner<'_>,
        writes: bool,
        now: Instant,
        lead_is_up: bool,
        mut start: impl FnMut(u64) -> H,
    ) -> Result<(u64, Option<H>), Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        let key = Key::from(owner);
        let number = match self.owners.get(&key) {
            Some(number) => *number,
            None => {
                let number = self.assign(&key, now, lead_is_up, &mut start)?;
                // sessions come and go; principals stay
                if key.session.is_some() {
                    self.warm(now, &mut start);
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
        entry.clean &= !writes;
        entry.used = now;
        let handle = match &entry.place {
            Place::Own(handle) => Some(handle.clone()),
            Place::Lead | Place::Retired | Place::Ending => None,
        };
        Ok((number, handle))
    }

    /// Takes note that the server keeps state between reads: no instance that ran one is clean.
    pub(super) fn taint(&mut self) {
        for entry in self.entries.values_mut() {
            entry.clean &= entry.calls == 0;
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
        let key = Key {
            principal: principal.clone(),
            session: Some(session.clone()),
        };
        let Some(number) = self.owners.remove(&key) else {
            return;
        };
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        entry.owner = None;
        entry.abandoned = true;
        entry.used = now;
        if entry.in_flight == 0 {
            self.let_go(number);
        }
    }

    /// Takes note of how long an instance took to start; says whether it has started before.
    pub(super) fn started(&mut self, number: u64, now: Instant) -> bool {
        match self.entries.get_mut(&number) {
            Some(entry) if entry.startup.is_none() => {
                entry.startup = Some(now.saturating_duration_since(entry.since));
                false
            }
            _ => true,
        }
    }

    /// Forgets an instance that has ended.
    pub(super) fn ended(&mut self, number: u64) {
        self.entries.remove(&number);
        self.owners.retain(|_, owned| *owned != number);
    }

    /// Ends instances that were not used for long enough.
    pub(super) fn sweep(&mut self, now: Instant) -> Swept {
        let mut swept = Swept::default();
        let is_owned = !self.owners.is_empty();
        let mut overdue = Vec::new();
        for (number, entry) in &self.entries {
            let waits = entry.is_fresh() && is_owned;
            let only_lists = *number == LEAD && entry.owner.is_none();
            if !entry.is_idle() || waits || only_lists {
                continue;
            }
            match entry.used.checked_add(self.limits.idle) {
                Some(end) if end <= now => overdue.push(*number),
                Some(end) => swept.next = Some(swept.next.map_or(end, |next| next.min(end))),
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
                swept.lost |= !entry.clean;
            }
            if number == LEAD {
                self.let_go(number);
            } else {
                entry.place = Place::Ending;
            }
        }
        swept
    }

    /// Says whether the lead serves some owner.
    pub(super) fn lead_is_owned(&self) -> bool {
        let lead = self.entries.get(&LEAD);
        lead.is_some_and(|lead| lead.owner.is_some() || lead.abandoned)
    }

    /// Gives the lead to no owner from now on: it serves calls that all share.
    pub(super) fn share_lead(&mut self) {
        if let Some(lead) = self.entries.get_mut(&LEAD)
            && lead.is_free()
        {
            lead.place = Place::Retired;
        }
    }

    /// Starts no more instances; returns those to end.
    pub(super) fn close(&mut self) -> Vec<H> {
        self.closed = true;
        let mut open = Vec::new();
        for entry in self.entries.values_mut() {
            if let Place::Own(handle) = &entry.place {
                open.push(handle.clone());
                entry.place = Place::Ending;
            }
        }
        open
    }

    /// Says whether only the lead is left.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.keys().all(|number| *number == LEAD)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<H>> {
        self.entries.values()
    }

    /// Finds an instance for an owner that has none.
    fn assign(
        &mut self,
        key: &Key,
        now: Instant,
        lead_is_up: bool,
        start: &mut impl FnMut(u64) -> H,
    ) -> Result<u64, Refused> {
        let fits = |(number, entry): &(&u64, &Entry<H>)| {
            entry.is_free()
                && (**number != LEAD || lead_is_up)
                && match &entry.principal {
                    None => true,
                    Some(principal) => {
                        *principal == key.principal && (entry.clean || self.limits.reuse)
                    }
                }
        };
        // one that served the principal before comes before one that has served nobody
        let found = self
            .entries
            .iter()
            .filter(fits)
            .min_by_key(|(number, entry)| (entry.is_fresh(), **number))
            .map(|(number, _)| *number);
        let number = match found {
            Some(number) => number,
            None => {
                self.make_place()?;
                self.start(now, start)
            }
        };
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.owner = Some(key.clone());
            entry.principal = Some(key.principal.clone());
        }
        Ok(number)
    }

    /// Makes sure that one more may be started. What holds nothing that its owner could miss is ended
    /// for it, the one first that was not used for longest.
    fn make_place(&mut self) -> Result<(), Refused> {
        if self.count() < self.limits.max {
            return Ok(());
        }
        let is_ending = |entry: &Entry<H>| matches!(entry.place, Place::Ending);
        if self.entries.values().any(is_ending) {
            return Err(Refused::UntilOneEnds);
        }
        let can_end = |entry: &Entry<H>| {
            entry.is_idle() && !entry.abandoned && (entry.owner.is_none() || entry.clean)
        };
        let idle = self.entries.iter().filter(|(_, entry)| can_end(entry));
        let oldest = idle
            .min_by_key(|(_, entry)| entry.used)
            .map(|(number, _)| *number);
        let Some((number, entry)) =
            oldest.and_then(|number| Some((number, self.entries.get_mut(&number)?)))
        else {
            return Err(Refused::Full);
        };
        if let Some(owner) = entry.owner.take() {
            self.owners.remove(&owner);
        }
        if number == LEAD {
            entry.place = Place::Retired;
            return Ok(());
        }
        entry.place = Place::Ending;
        Err(Refused::UntilOneEnds)
    }

    /// Starts what is missing of the spare ones.
    fn warm(&mut self, now: Instant, start: &mut impl FnMut(u64) -> H) {
        let fresh = |entry: &&Entry<H>| entry.is_fresh();
        let missing = self
            .limits
            .spare
            .saturating_sub(self.entries.values().filter(fresh).count());
        for _ in 0..missing {
            if self.count() >= self.limits.max {
                return;
            }
            self.start(now, start);
        }
    }

    fn start(&mut self, now: Instant, start: &mut impl FnMut(u64) -> H) -> u64 {
        let number = self.next;
        self.next += 1;
        let place = Place::Own(start(number));
        self.entries.insert(number, Entry::new(place, now));
        number
    }

    /// Gives an instance without calls to the next session of its principal, or ends it.
    fn let_go(&mut self, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        entry.abandoned = false;
        if entry.clean || self.limits.reuse || !entry.is_idle() {
            return;
        }
        entry.place = if number == LEAD {
            Place::Retired
        } else {
            Place::Ending
        };
    }

    fn count(&self) -> usize {
        let counts = |entry: &&Entry<H>| entry.counts();
        self.entries.values().filter(counts).count()
    }
}

#[cfg(test)]
mod tests;
