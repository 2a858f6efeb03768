//! Which connections are open, and which of them ends where there are too many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many connections a listener has, and how long they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) all: usize,
    pub(crate) per_address: usize,
    /// Addresses of proxies: their connections are not counted by address.
    pub(crate) proxies: Vec<IpAddr>,
    /// How many bytes of answers may wait for their clients to read them.
    pub(crate) unread: usize,
    /// How long the head of a request may take, counted from the end of the answer before it.
    pub(crate) header: Duration,
    /// How long a client may read nothing of what is written to it.
    pub(crate) write: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            all: 1024,
            per_address: 512,
            proxies: Vec::new(),
            unread: 256 << 20,
            header: Duration::from_secs(60),
            write: Duration::from_secs(30),
        }
    }
}

/// The open connections of one listener.
#[derive(Debug)]
pub(super) struct Open {
    limits: ConnectionLimits,
    table: Mutex<Table>,
    /// How many bytes are held of answers, until their clients have read them.
    unread: AtomicUsize,
    began: Instant,
    has_refused: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    known: HashMap<u64, Arc<Known>>,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection.
#[derive(Debug)]
struct Known {
    address: Option<IpAddr>,
    /// How many requests it has in work.
    running: AtomicUsize,
    /// Since when it has none, in milliseconds since the listener began.
    idle_since: AtomicU64,
    /// How many bytes are held of its answers.
    unread: AtomicUsize,
    /// When the client read last, or had nothing to read, on the same clock.
    read_at: AtomicU64,
    /// Fires when it has to make room for another one.
    end: CancellationToken,
}

/// The place of a connection. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    open: Arc<Open>,
    number: u64,
    known: Arc<Known>,
}

/// A request that has come, up to the end of its answer. It is in work once it has begun.
#[derive(Debug)]
pub(super) struct Running {
    open: Arc<Open>,
    known: Arc<Known>,
    has_begun: AtomicBool,
}

impl Running {
    /// Notes that all of the request has come.
    pub(super) fn begin(&self) {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            self.known.running.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Open {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            table: Mutex::default(),
            unread: AtomicUsize::new(0),
            began: Instant::now(),
            has_refused: AtomicBool::new(false),
        })
    }

    /// Takes a connection in. Where there are too many, the one ends that has had no request in work for
    /// longest; `None` if each has one.
    pub(super) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Place> {
        let address = address
            .map(|address| address.to_canonical())
            .filter(|address| !self.limits.proxies.contains(address));
        let mut table = self.table.lock();
        let of_address = address.and_then(|address| table.by_address.get(&address));
        let has_room = match of_address {
            Some(open) if *open >= self.limits.per_address => table.end_one(address),
            _ if table.known.len() >= self.limits.all => table.end_one(None),
            _ => true,
        };
        if !has_room {
            drop(table);
            if !self.has_refused.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    ?address,
                    "a connection was refused: all that `http.max_connections` and \
                     `http.max_connections_per_address` allow have requests in work"
                );
            }
            return None;
        }
        let known = Arc::new(Known {
            address,
            running: AtomicUsize::new(0),
            idle_since: AtomicU64::new(self.now()),
            unread: AtomicUsize::new(0),
            read_at: AtomicU64::new(self.now()),
            end: CancellationToken::new(),
        });
        let number = table.next;
        table.next += 1;
        table.known.insert(number, known.clone());
        if let Some(address) = address {
            *table.by_address.entry(address).or_default() += 1;
        }
        drop(table);
        Some(Place {
            open: self.clone(),
            number,
            known,
        })
    }

    /// Ends connections whose clients have read nothing for longest, until no more waits than may.
    fn end_unread(&self) {
        let table = self.table.lock();
        let mut waiting: Vec<_> = table
            .known
            .values()
            .filter(|known| known.unread.load(Ordering::Relaxed) > 0 && !known.end.is_cancelled())
            .collect();
        waiting.sort_by_key(|known| known.read_at.load(Ordering::Relaxed));
        let mut unread: usize = waiting
            .iter()
            .map(|known| known.unread.load(Ordering::Relaxed))
            .sum();
        for known in waiting {
            if unread <= self.limits.unread {
                break;
            }
            unread = unread.saturating_sub(known.unread.load(Ordering::Relaxed));
            known.end.cancel();
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Table {
    /// Ends the connection that has been idle for longest, of an address if one is given.
    fn end_one(&mut self, address: Option<IpAddr>) -> bool {
        let is_idle = |known: &Known| known.running.load(Ordering::Relaxed) == 0;
        let idle = self
            .known
            .iter()
            .filter(|(_, known)| address.is_none() || known.address == address)
            .filter(|(_, known)| is_idle(known))
            .min_by_key(|(number, known)| (known.idle_since.load(Ordering::Relaxed), **number))
            .map(|(number, _)| *number);
        let Some(number) = idle else {
            return false;
        };
        if let Some(known) = self.remove(number) {
            known.end.cancel();
        }
        true
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Known>> {
        let known = self.known.remove(&number)?;
        if let Some(address) = known.address
            && let Some(open) = self.by_address.get_mut(&address)
        {
            *open -= 1;
            if *open == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(known)
    }
}

impl Place {
    pub(super) fn limits(&self) -> &ConnectionLimits {
        &self.open.limits
    }

    /// Returns what counts the bytes that are held of its answers.
    pub(super) fn unread(&self) -> Unread {
        Unread {
            open: self.open.clone(),
            known: self.known.clone(),
        }
    }

    /// Fires when the connection has to make room for another one.
    pub(super) fn end(&self) -> &CancellationToken {
        &self.known.end
    }

    /// Notes that the head of a request has come. The connection may still make room for another
    /// one: its body may never come.
    pub(super) fn run(&self) -> Running {
        let now = self.open.now();
        self.known.idle_since.store(now, Ordering::Relaxed);
        Running {
            open: self.open.clone(),
            known: self.known.clone(),
            has_begun: AtomicBool::new(false),
        }
    }
}

/// Counts the bytes that are held of answers of a connection, until its client has read them.
#[derive(Debug, Clone)]
pub(super) struct Unread {
    open: Arc<Open>,
    known: Arc<Known>,
}

/// A part of an answer, which is held until all of it was written.
struct Part {
    data: Bytes,
    unread: Unread,
}

impl Unread {
    /// Counts a part of an answer until it is dropped. Where too many bytes wait, those connections end
    /// whose clients have read nothing for longest.
    pub(super) fn count(self, data: Bytes) -> Bytes {
        let bytes = data.len();
        if self.known.unread.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.wrote();
        }
        let before = self.open.unread.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.open.limits.unread {
            self.open.end_unread();
        }
        Bytes::from_owner(Part { data, unread: self })
    }

    /// Notes that the client has read something.
    pub(super) fn wrote(&self) {
        self.known.read_at.store(self.open.now(), Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for unread in [&self.unread.known.unread, &self.unread.open.unread] {
            unread.fetch_sub(self.data.len(), Ordering::Relaxed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.table.lock().remove(self.number);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = self.open.now();
        self.known.idle_since.store(now, Ordering::Relaxed);
        if self.has_begun.load(Ordering::Relaxed) {
            self.known.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
impl Unread {
    /// Counts for a connection that no listener knows.
    pub(super) fn of_nobody() -> Self {
        let place = Open::new(ConnectionLimits::default()).admit(None);
        place
            .map(|place| place.unread())
            .expect("there is room for the first")
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn open(all: usize, per_address: usize) -> Arc<Open> {
        Open::new(ConnectionLimits {
            all,
            per_address,
            ..ConnectionLimits::default()
        })
    }

    fn address(last: u8) -> Option<IpAddr> {
        Some(Ipv4Addr::new(10, 0, 0, last).into())
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_is_idle_for_longest_makes_room() {
        let open = open(3, 3);
        let second = Duration::from_secs(1);
        let first = open.admit(address(1)).unwrap();
        let running = first.run();
        running.begin();
        tokio::time::advance(second).await;
        let other = open.admit(address(2)).unwrap();
        tokio::time::advance(second).await;
        let last = open.admit(None).unwrap();
        let _new = open.admit(address(3)).unwrap();
        assert!(other.end().is_cancelled());
        assert!(!first.end().is_cancelled() && !last.end().is_cancelled());
        tokio::time::advance(second).await;
        drop(running); // idle only now
        let _newer = open.admit(address(3)).unwrap();
        assert!(last.end().is_cancelled() && !first.end().is_cancelled());
    }

    #[test]
    fn an_address_has_its_own_limit_and_places_are_free_again() {
        let open = open(8, 2);
        let places = [1, 1, 2].map(|last| open.admit(address(last)).unwrap());
        let running = [places[0].run(), places[1].run()];
        running[0].begin();
        let other = open.admit(address(1)).unwrap();
        assert!(places[1].end().is_cancelled(), "its body has not come");
        assert!(!places[0].end().is_cancelled());
        let more = [(); 5].map(|()| open.admit(None).unwrap());
        assert!(open.admit(None).is_some(), "in place of the idle one");
        assert!(places[2].end().is_cancelled());
        drop((places, more, other));
        let table = open.table.lock();
        assert!(table.known.is_empty() && table.by_address.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_read_nothing_for_longest_makes_room_for_answers() {
        let open = Open::new(ConnectionLimits {
            unread: 100,
            ..ConnectionLimits::default()
        });
        let places: Vec<_> = (0..3).map(|_| open.admit(None).unwrap()).collect();
        let [first, second, third] = &places[..] else {
            panic!("three")
        };
        let mut held = Vec::new();
        for place in [second, first] {
            held.push(place.unread().count(Bytes::from_static(&[0; 50])));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let ended = || [first, second, third].map(|place| place.end().is_cancelled());
        assert_eq!(ended(), [false; 3]);
        held.push(third.unread().count(Bytes::from_static(&[0])));
        assert_eq!(ended(), [false, true, false]);
        drop(held);
        assert_eq!(open.unread.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_proxy_is_not_counted_by_address() {
        let proxy = IpAddr::from(Ipv4Addr::LOCALHOST);
        let open = Open::new(ConnectionLimits {
            per_address: 1,
            proxies: vec![proxy],
            ..ConnectionLimits::default()
        });
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped().into();
        let admit = |address| {
            let place = open.admit(Some(address))?;
            let running = place.run();
            running.begin();
            Some((place, running))
        };
        let places = [proxy, mapped, proxy].map(admit);
        assert!(places.iter().all(Option::is_some));
    }
}
