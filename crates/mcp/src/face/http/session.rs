//! Sessions of legacy clients: a table that is pure data, and what one session holds.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tollgate_core::{Caller, ClientInfo, Principal, SessionId};
use uuid::Uuid;

use crate::face::inflight::InFlight;
use crate::face::service::EndsSession;
use crate::observed::SessionTimer;

/// One legacy client's session. Whoever works for it holds an `Arc`, which keeps it alive.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Uuid,
    pub(super) caller: Arc<Caller>,
    /// How its client introduced itself.
    pub(super) client: Option<Arc<ClientInfo>>,
    pub(super) calls: Arc<InFlight>,
    /// Fired when the session is deleted or forgotten.
    pub(super) ended: CancellationToken,
    /// Tells how long it lasted, if anybody wants to know.
    timer: OnceLock<SessionTimer>,
    /// What ends the notification stream that is open now.
    stream: Mutex<Option<CancellationToken>>,
}

impl Session {
    fn new(id: Uuid, principal: Principal, client: Option<Arc<ClientInfo>>) -> Self {
        let caller = Caller::new(principal).with_session(SessionId::new(id.to_string()));
        Self {
            id,
            caller: Arc::new(caller),
            client,
            calls: Arc::default(),
            ended: CancellationToken::new(),
            timer: OnceLock::new(),
            stream: Mutex::new(None),
        }
    }

    /// Takes what tells how long it lasted.
    pub(super) fn timed_by(&self, timer: SessionTimer) {
        // nobody set another before: it was just opened
        let _ = self.timer.set(timer);
    }

    /// Makes room for a new notification stream. A message may travel on one stream only, and the
    /// older one may be a dead connection nobody has noticed yet, so the older one ends.
    pub(super) fn open_stream(&self) -> CancellationToken {
        let token = self.ended.child_token();
        let older = self.stream.lock().replace(token.clone());
        if let Some(older) = older {
            older.cancel();
        }
        token
    }
}

/// The live sessions: at most `max`, each forgotten once unused for `idle`.
///
/// There is no task per session. Expired ones are collected when a session is opened, and no sweep
/// happens before the first of them can have expired.
pub(super) struct SessionTable {
    sessions: HashMap<Uuid, Entry>,
    max: usize,
    idle: Duration,
    /// Nothing expires before.
    next_expiry: Option<Instant>,
    ends: EndsSession,
}

struct Entry {
    session: Arc<Session>,
    ends: EndsSession,
    last_used: Instant,
}

impl SessionTable {
    /// `ends` is told of each session that is closed or forgotten.
    pub(super) fn new(max: usize, idle: Duration, ends: EndsSession) -> Self {
        Self {
            sessions: HashMap::new(),
            max,
            idle,
            next_expiry: None,
            ends,
        }
    }

    /// Opens a session; `None` if there is no room.
    pub(super) fn open(
        &mut self,
        now: Instant,
        id: Uuid,
        principal: Principal,
        client: Option<Arc<ClientInfo>>,
    ) -> Option<Arc<Session>> {
        if self.next_expiry.is_some_and(|expiry| expiry <= now) {
            self.sweep(now);
        }
        if self.sessions.len() >= self.max {
            return None;
        }
        let session = Arc::new(Session::new(id, principal, client));
        let entry = Entry {
            session: Arc::clone(&session),
            ends: Arc::clone(&self.ends),
            last_used: now,
        };
        self.sessions.insert(id, entry);
        if self.next_expiry.is_none() {
            // beyond the end of time means never
            self.next_expiry = now.checked_add(self.idle);
        }
        Some(session)
    }

    /// Finds a live session of this principal and notes its use.
    pub(super) fn find(
        &mut self,
        now: Instant,
        id: Uuid,
        principal: Option<&Principal>,
    ) -> Option<Arc<Session>> {
        let entry = self.sessions.get_mut(&id)?;
        // a stolen id is worth nothing to somebody else
        if principal.is_some_and(|principal| *principal != entry.session.caller.principal) {
            return None;
        }
        if entry.is_expired(now, self.idle) {
            self.close(id);
            return None;
        }
        entry.last_used = now;
        Some(Arc::clone(&entry.session))
    }

    /// Ends a session: its calls are cancelled and its stream closes.
    pub(super) fn close(&mut self, id: Uuid) {
        // its drop tells whoever works for it
        self.sessions.remove(&id);
    }

    fn sweep(&mut self, now: Instant) {
        let idle = self.idle;
        self.sessions.retain(|_, entry| {
            let expired = entry.is_expired(now, idle);
            if !expired && entry.is_in_use() {
                // its idle time begins when it falls idle; no sooner than now
                entry.last_used = now;
            }
            !expired
        });
        let oldest = self.sessions.values().map(|entry| entry.last_used).min();
        self.next_expiry = oldest.and_then(|oldest| oldest.checked_add(idle));
    }
}

/// Whatever takes a session out of the table ends it.
impl Drop for Entry {
    fn drop(&mut self) {
        // calls first: the instance that runs them is let go after them
        self.session.ended.cancel();
        (self.ends)(&self.session.caller);
    }
}

impl Entry {
    /// Says whether a call or a stream works for the session: it then holds a pointer beside ours.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.session) > 1
    }

    fn is_expired(&self, now: Instant, idle: Duration) -> bool {
        !self.is_in_use() && now.saturating_duration_since(self.last_used) >= idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    fn table(max: usize) -> (SessionTable, Instant) {
        let ends: EndsSession = Arc::new(|_: &Arc<Caller>| {});
        (SessionTable::new(max, IDLE, ends), Instant::now())
    }

    fn anybody() -> Principal {
        Principal::new("anonymous")
    }

    fn open(table: &mut SessionTable, now: Instant) -> Option<Uuid> {
        table
            .open(now, Uuid::new_v4(), anybody(), None)
            .map(|session| session.id)
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
        assert!(
            open(&mut table, now + IDLE).is_some(),
            "the second one was idle"
        );
        assert!(table.find(now + IDLE, second, None).is_none());
        assert!(table.find(now + IDLE, third, None).is_some());
    }

    #[test]
    fn an_idle_session_is_gone_even_before_anybody_sweeps() {
        let (mut table, now) = table(2);
        let id = open(&mut table, now).unwrap();
        let almost = now + IDLE - Duration::from_millis(1);
        assert!(table.find(almost, id, None).is_some());
        assert!(table.find(almost + IDLE, id, None).is_none());
    }

    #[test]
    fn a_session_somebody_works_for_is_not_idle() {
        let (mut table, now) = table(1);
        let held = table.open(now, Uuid::new_v4(), anybody(), None).unwrap();
        assert!(open(&mut table, now + IDLE * 3).is_none());
        let id = held.id;
        drop(held);
        assert!(
            open(&mut table, now + IDLE * 3).is_none(),
            "its idle time begins now"
        );
        assert!(open(&mut table, now + IDLE * 4).is_some());
        assert!(table.find(now + IDLE * 4, id, None).is_none());
    }

    #[test]
    fn an_endless_idle_time_is_endless() {
        let mut table = SessionTable::new(1, Duration::MAX, Arc::new(|_: &Arc<Caller>| {}));
        let now = Instant::now();
        let id = open(&mut table, now).unwrap();
        assert!(open(&mut table, now + IDLE).is_none());
        assert!(table.find(now + IDLE, id, None).is_some());
    }

    #[test]
    fn a_session_is_its_principal_s_alone() {
        let (mut table, now) = table(1);
        let id = table
            .open(now, Uuid::new_v4(), Principal::new("ada"), None)
            .unwrap()
            .id;
        assert!(table.find(now, id, Some(&Principal::new("eve"))).is_none());
        assert!(table.find(now, id, Some(&Principal::new("ada"))).is_some());
    }

    #[test]
    fn each_session_that_ends_is_told_of_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let taker = Arc::clone(&told);
        let ends: EndsSession =
            Arc::new(move |caller: &Arc<Caller>| taker.lock().push(caller.session.clone()));
        let mut table = SessionTable::new(3, IDLE, ends);
        let now = Instant::now();
        let deleted = open(&mut table, now).unwrap();
        let expired = open(&mut table, now).unwrap();
        table.close(deleted);
        table.close(deleted);
        assert!(table.find(now + IDLE, expired, None).is_none());
        let swept = open(&mut table, now + IDLE).unwrap();
        assert!(open(&mut table, now + IDLE * 2).is_some());
        let all = [deleted, expired, swept].map(|id| Some(SessionId::new(id.to_string())));
        assert_eq!(*told.lock(), all);
    }

    #[test]
    fn closing_tells_whoever_still_works_for_it() {
        let (mut table, now) = table(1);
        let session = table.open(now, Uuid::new_v4(), anybody(), None).unwrap();
        let older = session.open_stream();
        let newer = session.open_stream();
        assert!(older.is_cancelled() && !newer.is_cancelled());
        table.close(session.id);
        assert!(session.ended.is_cancelled() && newer.is_cancelled());
    }
}
