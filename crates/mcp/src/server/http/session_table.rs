//! The table of live sessions: pure data, with the time as an argument.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callward_core::Principal;
use tokio::time::Instant;
use uuid::Uuid;

use super::session::Session;
use crate::server::service::EndsSession;

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
        session: Session,
        client: Option<Client>,
    ) -> Result<Arc<Session>, Full> {
        if self.next_expiry.is_some_and(|expiry| expiry <= now) {
            self.sweep(now);
        }
        let of_client = client
            .as_ref()
            .and_then(|client| self.by_client.get(client));
        if of_client.is_some_and(|open| *open >= self.limits.per_client) {
            self.make_space(client.as_ref(), self.limits.per_client, now)?;
        } else if self.sessions.len() >= self.limits.all {
            self.make_space(None, self.limits.all, now)?;
        }
        let session = Arc::new(session);
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
        let idle: Vec<_> = self
            .sessions
            .values()
            .filter(counted)
            .filter(|entry| !entry.is_in_use())
            .map(|entry| (entry.session.has_called.load(Ordering::Relaxed), entry))
            .collect();
        // where these are few, they are of clients about to make a call
        let is_few = idle.iter().filter(|(called, _)| !called).count() <= limit / FEW;
        let spared_for = |called: bool, entry: &Entry| {
            let spared = match called {
                true => SPARED.min(self.limits.idle),
                false if is_few => SPARED_BEFORE_CALL,
                false => Duration::ZERO,
            };
            spared.saturating_sub(now.saturating_duration_since(entry.last_used))
        };
        let mut may_end: Vec<_> = idle
            .iter()
            .filter(|(called, entry)| (is_few || !called) && spared_for(*called, entry).is_zero())
            .map(|(called, entry)| (*called, entry.is_used, entry.last_used, entry.session.id))
            .collect();
        if may_end.is_empty() {
            let next = idle
                .iter()
                .map(|(called, entry)| spared_for(*called, entry));
            return Err(Full {
                open: limit,
                of_client: client.is_some(),
                retry_after: next.min().unwrap_or(SPARED),
            });
        }
        may_end.sort_unstable();
        for (.., id) in may_end.into_iter().take((limit / ENDS_AT_ONCE).max(1)) {
            self.close(id);
        }
        Ok(())
    }

    /// Finds a live session of this principal and notes its use.
    pub(super) fn find(
        &mut self,
        now: Instant,
        id: Uuid,
        principal: Option<&Principal>,
    ) -> Option<Arc<Session>> {
        let entry = self.sessions.get_mut(&id)?;
        // a stolen id is worth nothing to another principal
        if principal.is_some_and(|principal| *principal != entry.session.caller.principal) {
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
        if let Some(entry) = self.sessions.remove(&id) {
            self.forget(&entry);
            // its drop notifies the tasks of the session
        }
    }

    /// Removes a session from the counts.
    fn forget(&mut self, entry: &Entry) {
        if let Some(client) = &entry.client
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
        let mut expired = Vec::new();
        for (id, entry) in &mut self.sessions {
            if entry.is_expired(now, idle) {
                expired.push(*id);
            } else if entry.is_in_use() {
                // its idle time begins when it falls idle; no sooner than now
                entry.last_used = now;
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
    use callward_core::{Caller, SessionId};
    use parking_lot::Mutex;

    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    fn limits(all: usize) -> SessionLimits {
        SessionLimits {
            all,
            per_client: all,
            idle: IDLE,
        }
    }

    fn table(max: usize) -> (SessionTable, Instant) {
        let ends: EndsSession = Arc::new(|_: &Arc<Caller>| {});
        (SessionTable::new(limits(max), ends), Instant::now())
    }

    fn of(principal: &str) -> Session {
        Session::new(Uuid::new_v4(), Principal::new(principal), None)
    }

    /// Opens a session, in which a tool is called.
    fn open(table: &mut SessionTable, now: Instant) -> Option<Uuid> {
        let session = table.open(now, of("anonymous"), None).ok()?;
        session.called();
        Some(session.id)
    }

    fn address(last: u8) -> Option<Client> {
        Some(Client::Address([192, 0, 2, last].into()))
    }

    #[test]
    fn a_client_that_only_opens_sessions_ends_its_own() {
        let (mut table, now) = table(4);
        table.limits.per_client = 2;
        let at = |second| now + Duration::from_secs(second);
        let mut open = |at, client| table.open(at, of("anonymous"), client).map(|s| s.id);
        let other = open(at(0), address(2)).unwrap();
        let [first, second] = [0, 1].map(|second| open(at(second), address(1)).unwrap());
        // used, so it stays longer than one that is not
        assert!(table.find(at(2), first, None).is_some());
        let third = table.open(at(3), of("anonymous"), address(1)).unwrap();
        assert!(table.find(at(3), second, None).is_none());
        third.called();
        let third = third.id;
        let fourth = table.open(at(4), of("anonymous"), address(1)).unwrap();
        fourth.called();
        drop(fourth);
        assert!(table.find(at(4), first, None).is_none());
        assert!(table.find(at(5), third, None).is_some());
        let full = table.open(at(6), of("anonymous"), address(1)).unwrap_err();
        let expected = Full {
            open: 2,
            of_client: true,
            retry_after: IDLE - Duration::from_secs(2),
        };
        assert_eq!(full, expected);
        // those of others are no affair of its
        assert!(table.find(at(6), other, None).is_some());
        assert!(table.open(at(6), of("anonymous"), address(3)).is_ok());
        assert_eq!(table.by_client.values().sum::<usize>(), 4);
        // a proxy is counted among all only, and any session makes way for it
        assert!(table.open(at(7), of("anonymous"), None).is_ok());
        assert_eq!(table.sessions.len(), 4);
        assert!(table.find(at(7), third, None).is_some());
    }

    #[test]
    fn a_full_table_opens_no_session_until_one_is_closed_or_idle() {
        let (mut table, now) = table(2);
        let first = open(&mut table, now).unwrap();
        let second = open(&mut table, now).unwrap();
        assert!(open(&mut table, now).is_none());
        table.close(first);
        let third = open(&mut table, now).unwrap();
        assert!(table.find(now + IDLE / 2, third, None).is_some());
        // the second one was idle
        assert!(open(&mut table, now + IDLE).is_some());
        assert!(table.find(now + IDLE, second, None).is_none());
        assert!(table.find(now + IDLE, third, None).is_some());
    }

    #[test]
    fn the_session_unused_longest_makes_way_after_a_minute() {
        let (mut table, now) = table(4);
        table.limits.idle = SPARED * 30;
        let all = [(); 4].map(|()| open(&mut table, now).unwrap());
        let at = |second| now + Duration::from_secs(second);
        for (second, id) in all.iter().enumerate() {
            assert!(table.find(at(second as u64), *id, None).is_some());
        }
        let full = table.open(at(20), of("anonymous"), None).unwrap_err();
        assert_eq!(full.retry_after, Duration::from_secs(40));
        assert!(open(&mut table, at(60)).is_some());
        assert!(table.find(at(60), all[0], None).is_none());
        assert!(table.find(at(60), all[1], None).is_some());
    }

    #[test]
    fn clients_about_to_call_take_no_place_from_each_other() {
        let (mut table, now) = table(2 * FEW);
        while table.sessions.len() < 2 * FEW - 2 {
            open(&mut table, now).unwrap();
        }
        let fresh = [(); 2].map(|()| table.open(now, of("anonymous"), None).unwrap().id);
        let full = table.open(now, of("anonymous"), None).unwrap_err();
        assert_eq!(full.retry_after, SPARED_BEFORE_CALL);
        for id in fresh {
            assert!(table.find(now, id, None).is_some());
        }
        // one that makes no call has to go in the end
        let later = now + SPARED_BEFORE_CALL;
        assert!(table.open(later, of("anonymous"), None).is_ok());
    }

    #[test]
    fn a_session_in_use_is_not_idle() {
        let (mut table, now) = table(1);
        let held = table.open(now, of("anonymous"), None).unwrap();
        held.called();
        assert!(open(&mut table, now + IDLE * 3).is_none());
        let id = held.id;
        drop(held);
        // its idle time begins now
        assert!(open(&mut table, now + IDLE * 3).is_none());
        assert!(open(&mut table, now + IDLE * 4).is_some());
        assert!(table.find(now + IDLE * 4, id, None).is_none());
    }

    #[test]
    fn an_idle_session_is_gone_unless_its_idle_time_is_endless() {
        let (mut table, now) = table(1);
        table.limits.idle = Duration::MAX;
        let id = open(&mut table, now).unwrap();
        table.sweep(now + IDLE);
        assert!(table.find(now + IDLE, id, None).is_some());
        // and one that ends does so before anything sweeps
        table.limits.idle = IDLE;
        let almost = now + IDLE * 2 - Duration::from_millis(1);
        assert!(table.find(almost, id, None).is_some());
        assert!(table.find(almost + IDLE, id, None).is_none());
    }

    #[test]
    fn a_session_is_its_principal_s_alone() {
        let (mut table, now) = table(1);
        let id = table.open(now, of("ada"), None).unwrap().id;
        assert!(table.find(now, id, Some(&Principal::new("eve"))).is_none());
        assert!(table.find(now, id, Some(&Principal::new("ada"))).is_some());
    }

    #[test]
    fn each_session_that_ends_is_reported_once() {
        let ended = Arc::new(Mutex::new(Vec::new()));
        let taker = Arc::clone(&ended);
        let ends: EndsSession =
            Arc::new(move |caller: &Arc<Caller>| taker.lock().push(caller.session.clone()));
        let mut table = SessionTable::new(limits(3), ends);
        let now = Instant::now();
        let deleted = open(&mut table, now).unwrap();
        let expired = open(&mut table, now).unwrap();
        table.close(deleted);
        table.close(deleted);
        assert!(table.find(now + IDLE, expired, None).is_none());
        let swept = open(&mut table, now + IDLE).unwrap();
        assert!(open(&mut table, now + IDLE * 2).is_some());
        let all = [deleted, expired, swept].map(|id| Some(SessionId::new(id.to_string())));
        assert_eq!(*ended.lock(), all);
    }

    #[test]
    fn closing_cancels_calls_and_streams() {
        let (mut table, now) = table(1);
        let session = table.open(now, of("anonymous"), None).unwrap();
        let older = session.open_stream();
        let newer = session.open_stream();
        assert!(older.is_cancelled() && !newer.is_cancelled());
        table.close(session.id);
        assert!(session.calls.ended.is_cancelled() && newer.is_cancelled());
    }
}
