//! The table of live sessions: pure data, with the time as an argument.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callward_core::{Caller, Principal};
use tokio::time::Instant;
use uuid::Uuid;

use super::session::Session;

/// How many sessions there may be, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionLimits {
    pub(super) all: usize,
    pub(super) per_client: usize,
    /// How long a session may be unused before it is forgotten.
    pub(super) idle: Duration,
}

/// The client whose sessions are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Client {
    /// Of a client that is authenticated.
    Principal(Principal),
    /// Of one that is not.
    Address(IpAddr),
}

/// No session can be opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full {
    /// How many sessions are open of those that are counted.
    pub(super) open: usize,
    /// Whether only those of the client are.
    pub(super) of_client: bool,
    /// When the first of them ends if it stays unused.
    pub(super) retry_after: Duration,
}

/// Receives the caller of each session that ends.
type EndsSession = Arc<dyn Fn(&Arc<Caller>) + Send + Sync>;

/// When a client has too many sessions, this share of its limit ends at once: each look for them
/// reads the whole table.
const ENDS_AT_ONCE: usize = 64;

/// How long a session in which a tool was called must be unused before it makes way for others.
const SPARED: Duration = Duration::from_secs(60);
/// So do those in which none was, where they are few: a client makes its first call sooner.
const SPARED_BEFORE_CALL: Duration = Duration::from_secs(1);
/// This share of a limit is few.
const FEW: usize = 16;

/// The live sessions, each forgotten once unused for the idle time.
///
/// Where there are too many, those end first that were opened and never used, then those in which
/// no tool was called, then those that are unused for [`SPARED`], the longest first.
///
/// There is no task per session. Expired ones are collected when a session is opened, and no sweep
/// happens before the first of them can have expired.
pub(super) struct SessionTable {
    sessions: HashMap<Uuid, Entry>,
    by_client: HashMap<Client, usize>,
    limits: SessionLimits,
    /// Nothing expires before.
    next_expiry: Option<Instant>,
    ends: EndsSession,
}

struct Entry {
    session: Arc<Session>,
    ends: EndsSession,
    /// The client that it counts for, unless that is a proxy of many.
    client: Option<Client>,
    last_used: Instant,
    /// A request named it since it was opened.
    is_used: bool,
}

impl SessionTable {
    /// `ends` receives each session that is closed or forgotten.
    pub(super) fn new(limits: SessionLimits, ends: EndsSession) -> Self {
        Self {
            sessions: HashMap::new(),
            by_client: HashMap::new(),
            limits,
            next_expiry: None,
            ends,
        }
    }

    /// Opens a session, which is counted for this client.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no free place.
    pub(super) fn open(
        &mut self,
        now: Instant,
        client: Option<Client>,
        new: impl FnOnce() -> Session,
    ) -> Result<Arc<Session>, Full> {
        if self.next_expiry.is_some_and(|expiry| expiry <= now) {
            self.sweep(now);
        }
        let of_client = client.as_ref();
        let of_client = of_client.and_then(|client| self.by_client.get(client));
        if of_client.is_some_and(|open| *open >= self.limits.per_client) {
            self.make_space(client.as_ref(), self.limits.per_client, now)?;
        } else if self.sessions.len() >= self.limits.all {
            self.make_space(None, self.limits.all, now)?;
        }
        let session = Arc::new(new());
        if let Some(client) = &client {
            *self.by_client.entry(client.clone()).or_default() += 1;
        }
        let entry = Entry {
            session: Arc::clone(&session),
            ends: Arc::clone(&self.ends),
            client,
            last_used: now,
            is_used: false,
        };
        self.sessions.insert(session.id, entry);
        if self.next_expiry.is_none() {
            // beyond the end of time means never
            self.next_expiry = now.checked_add(self.limits.idle);
        }
        Ok(session)
    }

    /// Ends sessions to free a place for one more: those of one client, if it is given.
    fn make_space(
        &mut self,
        client: Option<&Client>,
        limit: usize,
        now: Instant,
    ) -> Result<(), Full> {
        let counted = |entry: &&Entry| client.is_none() || entry.client.as_ref() == client;
        let idle = self.sessions.values().filter(counted);
        let mut idle: Vec<_> = idle
            .filter(|entry| !entry.is_in_use())
            .map(|entry| {
                let called = entry.session.has_called.load(Ordering::Relaxed);
                (called, entry.is_used, entry.last_used, entry.session.id)
            })
            .collect();
        // where these are few, they are of clients about to make a call
        let is_few = idle.iter().filter(|(called, ..)| !called).count() <= limit / FEW;
        let spared_for = |called: bool, last_used: Instant| {
            let spared = match called {
                true => SPARED.min(self.limits.idle),
                false if is_few => SPARED_BEFORE_CALL,
                false => Duration::ZERO,
            };
            spared.saturating_sub(now.saturating_duration_since(last_used))
        };
        let next = idle
            .iter()
            .map(|(called, _, used, _)| spared_for(*called, *used));
        let full = Full {
            open: limit,
            of_client: client.is_some(),
            retry_after: next.min().unwrap_or(SPARED),
        };
        idle.retain(|(called, _, used, _)| {
            (is_few || !called) && spared_for(*called, *used).is_zero()
        });
        if idle.is_empty() {
            return Err(full);
        }
        idle.sort_unstable();
        for (.., id) in idle.into_iter().take((limit / ENDS_AT_ONCE).max(1)) {
            self.close(id);
        }
        Ok(())
    }

    /// Finds a live session of this principal and notes its use.
    pub(super) fn find(
        &mut self,
        now: Instant,
        id: Uuid,
        principal: &Principal,
    ) -> Option<Arc<Session>> {
        let entry = self.sessions.get_mut(&id)?;
        // a stolen id is worth nothing to another principal
        if *principal != entry.session.caller.principal {
            return None;
        }
        if entry.is_expired(now, self.limits.idle) {
            self.close(id);
            return None;
        }
        entry.last_used = now;
        entry.is_used = true;
        Some(Arc::clone(&entry.session))
    }

    /// Ends a session: its calls are cancelled and its stream closes.
    pub(super) fn close(&mut self, id: Uuid) {
        // its drop notifies the tasks of the session
        if let Some(entry) = self.sessions.remove(&id)
            && let Some(client) = &entry.client
            && let Some(open) = self.by_client.get_mut(client)
        {
            *open -= 1;
            if *open == 0 {
                self.by_client.remove(client);
            }
        }
    }

    fn sweep(&mut self, now: Instant) {
        let idle = self.limits.idle;
        for entry in self.sessions.values_mut().filter(|entry| entry.is_in_use()) {
            // its idle time begins when it falls idle; no sooner than now
            entry.last_used = now;
        }
        let mut expired = Vec::new();
        for (id, entry) in &self.sessions {
            if entry.is_expired(now, idle) {
                expired.push(*id);
            }
        }
        for id in expired {
            self.close(id);
        }
        let oldest = self.sessions.values().map(|entry| entry.last_used).min();
        self.next_expiry = oldest.and_then(|oldest| oldest.checked_add(idle));
    }
}

/// Whatever takes a session out of the table ends it.
impl Drop for Entry {
    fn drop(&mut self) {
        // calls first: the instance that runs them is released after them
        self.session.calls.ended.cancel();
        self.session.peer.ended();
        (self.ends)(&self.session.caller);
    }
}

impl Entry {
    /// Returns `true` if a call or a stream uses the session: it then holds a pointer beside ours.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.session) > 1
    }

    fn is_expired(&self, now: Instant, idle: Duration) -> bool {
        !self.is_in_use() && now.saturating_duration_since(self.last_used) >= idle
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// A table, with times in seconds since its start.
    struct Bed {
        table: SessionTable,
        start: Instant,
        ended: Arc<Mutex<Vec<Option<String>>>>,
    }

    impl Bed {
        fn new(all: usize, idle: u64) -> Self {
            let ended = Arc::<Mutex<Vec<_>>>::default();
            let taker = Arc::clone(&ended);
            let ends = move |caller: &Arc<Caller>| {
                let session = caller.session.as_ref();
                taker.lock().push(session.map(ToString::to_string));
            };
            let limits = SessionLimits {
                all,
                per_client: all,
                idle: Duration::from_secs(idle),
            };
            Self {
                table: SessionTable::new(limits, Arc::new(ends)),
                start: Instant::now(),
                ended,
            }
        }

        fn at(&self, second: u64) -> Instant {
            self.start + Duration::from_secs(second)
        }

        /// Opens a session, of the client with this address if there is one.
        fn open(&mut self, second: u64, client: Option<u8>) -> Result<Arc<Session>, Full> {
            let client = client.map(|last| Client::Address([192, 0, 2, last].into()));
            let new = || {
                Session::new(
                    &Caller::new(Principal::new("ada")),
                    None,
                    Default::default(),
                    None,
                )
            };
            self.table.open(self.at(second), client, new)
        }

        /// Opens a session in which a tool is called.
        fn called(&mut self, second: u64, client: Option<u8>) -> Option<Uuid> {
            let session = self.open(second, client).ok()?;
            session.has_called.store(true, Ordering::Relaxed);
            Some(session.id)
        }

        fn finds(&mut self, second: u64, id: Uuid) -> bool {
            let (now, ada) = (self.at(second), Principal::new("ada"));
            self.table.find(now, id, &ada).is_some()
        }

        /// Returns how long a client that finds no place is to wait, in seconds.
        fn wait(&mut self, second: u64) -> Option<u64> {
            let full = self.open(second, None).err()?;
            Some(full.retry_after.as_secs())
        }
    }

    #[test]
    fn a_client_that_only_opens_sessions_ends_its_own() {
        let mut bed = Bed::new(4, 60);
        bed.table.limits.per_client = 2;
        let other = bed.open(0, Some(2)).unwrap().id;
        let [first, second] = [0, 1].map(|second| bed.open(second, Some(1)).unwrap().id);
        // used, so it stays longer than one that is not
        assert!(bed.finds(2, first));
        let third = bed.called(3, Some(1)).unwrap();
        assert!(!bed.finds(3, second));
        bed.called(4, Some(1)).unwrap();
        assert!(!bed.finds(4, first) && bed.finds(5, third));
        let expected = Full {
            open: 2,
            of_client: true,
            retry_after: Duration::from_secs(58),
        };
        assert_eq!(bed.open(6, Some(1)).unwrap_err(), expected);
        // those of others are no affair of its
        assert!(bed.finds(6, other));
        assert!(bed.open(6, Some(3)).is_ok());
        assert_eq!(bed.table.by_client.values().sum::<usize>(), 4);
        // a proxy is counted among all only, and any session makes way for it
        assert!(bed.open(7, None).is_ok());
        assert_eq!(bed.table.sessions.len(), 4);
        assert!(bed.finds(7, third));
    }

    #[test]
    fn a_place_is_free_once_a_session_is_closed_or_idle() {
        let mut bed = Bed::new(2, 60);
        let [closed, idle] = [(); 2].map(|()| bed.called(0, None).unwrap());
        assert_eq!(bed.wait(0), Some(60));
        bed.table.close(closed);
        bed.table.close(closed);
        let used = bed.called(0, None).unwrap();
        assert!(bed.finds(30, used));
        assert!(bed.called(60, None).is_some());
        assert!(!bed.finds(60, idle) && bed.finds(60, used));
        // one that is idle is gone before anything sweeps
        assert!(!bed.finds(120, used));
        let ended = [closed, idle, used].map(|id| Some(id.to_string()));
        assert_eq!(*bed.ended.lock(), ended, "each is reported once");
    }

    #[test]
    fn the_session_unused_longest_makes_way_after_a_minute() {
        let mut bed = Bed::new(4, 1_800);
        let all = [(); 4].map(|()| bed.called(0, None).unwrap());
        for (id, second) in all.into_iter().zip(0..) {
            assert!(bed.finds(second, id));
        }
        assert_eq!(bed.wait(20), Some(40));
        assert!(bed.called(60, None).is_some());
        assert!(!bed.finds(60, all[0]) && bed.finds(60, all[1]));
    }

    #[test]
    fn clients_about_to_call_take_no_place_from_each_other() {
        let mut bed = Bed::new(2 * FEW, 60);
        for _ in 2..2 * FEW {
            bed.called(0, None).unwrap();
        }
        let fresh = [(); 2].map(|()| bed.open(0, None).unwrap().id);
        assert_eq!(bed.wait(0), Some(SPARED_BEFORE_CALL.as_secs()));
        assert!(fresh.into_iter().all(|id| bed.finds(0, id)));
        // one that makes no call has to go in the end
        assert!(bed.open(1, None).is_ok());
    }

    #[test]
    fn a_session_is_its_principal_s_alone_and_may_last_for_ever() {
        let mut bed = Bed::new(1, u64::MAX);
        let id = bed.open(0, None).unwrap().id;
        let now = bed.at(1_000_000);
        bed.table.sweep(now);
        assert!(bed.table.find(now, id, &Principal::new("eve")).is_none());
        assert!(bed.finds(1_000_000, id));
    }
}
