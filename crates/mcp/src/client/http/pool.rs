//! Idle connections.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::conn::Conn;

/// How long a connection may be idle before it is closed.
///
/// A request that meets a connection its server is just closing is lost, and it is unknown if
/// it ran. The servers most in use close after five seconds: Node's and uvicorn's default. Ours
/// goes first.
pub(super) const IDLE: Duration = Duration::from_secs(4);
/// How many unused connections are kept. More are closed as they come back.
pub(super) const MAX_IDLE: usize = 256;

/// The idle connections to one server.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Idle>,
    /// Notifies one waiter that there may be a connection.
    pub(super) freed: Notify,
}

#[derive(Default)]
struct Idle {
    /// As they came back, the last at the end.
    conns: Vec<(Instant, Box<Conn>)>,
    /// Whether a task closes connections that are idle for too long.
    is_watched: bool,
}

impl Pool {
    /// Takes the connection that was used last, if it is still open.
    pub(super) fn take(&self) -> Option<Box<Conn>> {
        loop {
            let (since, mut conn) = self.idle.lock().conns.pop()?;
            // polling shows whether it was closed, or has unsolicited data
            if since.elapsed() < IDLE && conn.look() {
                return Some(conn);
            }
        }
    }

    /// Returns `true` if the server has closed the connection that was used last.
    pub(super) fn lost_one(&self) -> bool {
        let mut idle = self.idle.lock();
        idle.conns.last_mut().is_some_and(|(_, conn)| !conn.look())
    }

    /// Keeps a connection for the next request, unless it can take none.
    pub(super) fn put(self: &Arc<Self>, conn: Box<Conn>) {
        if !conn.is_ready() {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle.lock();
        if idle.conns.len() >= MAX_IDLE {
            drop(idle); // closing may take long, and `conn` is closed last
            return;
        }
        if !idle.is_watched {
            // without a runtime the process is ending, and the connections with it
            let Ok(runtime) = tokio::runtime::Handle::try_current() else {
                drop(idle);
                return;
            };
            runtime.spawn(watch(Arc::downgrade(self), now + IDLE));
            idle.is_watched = true;
        }
        idle.conns.push((now, conn));
        drop(idle);
        self.freed.notify_one();
    }

    /// Closes all idle connections.
    pub(super) fn clear(&self) {
        let conns = std::mem::take(&mut self.idle.lock().conns);
        drop(conns); // not under the lock: closing may take long
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.idle.lock().conns.len()
    }

    /// Closes connections that were idle for too long. Returns when to call it again, unless none
    /// is left.
    fn expire(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut idle = self.idle.lock();
        let fresh = |(since, _): &(Instant, _)| now.duration_since(*since) < IDLE;
        let first = idle.conns.iter().position(fresh);
        let first = first.unwrap_or(idle.conns.len());
        let expired: Vec<_> = idle.conns.drain(..first).collect();
        let next = idle.conns.first().map(|(since, _)| *since + IDLE);
        idle.is_watched = next.is_some();
        drop(idle);
        drop(expired); // not under the lock: closing may take long
        next
    }
}

/// Closes unused connections until none is left.
async fn watch(pool: Weak<Pool>, mut next: Instant) {
    loop {
        tokio::time::sleep_until(next).await;
        match pool.upgrade().and_then(|pool| pool.expire()) {
            Some(then) => next = then,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
