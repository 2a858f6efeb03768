//! The open connections, and which of them ends if there are too many.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use callward::core::human::{duration, size};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::with_defaults;

with_defaults! {
    /// How many connections a listener has, and how long they may take: keys of `[http]`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub(crate) struct ConnectionLimits {
        #[serde(rename = "max_connections")]
        pub(crate) all: usize = 1024,
        #[serde(rename = "max_connections_per_address")]
        pub(crate) per_address: usize = 512,
        /// Addresses of proxies: their connections are not counted by address.
        pub(crate) proxies: Vec<IpAddr>,
        /// How many bytes of answers may wait for their clients to read them.
        #[serde(rename = "max_unread", with = "size")]
        pub(crate) unread: u64 = 128 << 20,
        /// How long the head of a request may take, counted from the end of the answer before it.
        #[serde(rename = "header_timeout", with = "duration")]
        pub(crate) header: Duration = Duration::from_secs(60),
        /// How long a client may read nothing of what is written to it.
        #[serde(rename = "write_timeout", with = "duration")]
        pub(crate) write: Duration = Duration::from_secs(30),
    }
}

/// The open connections of one listener.
#[derive(Debug)]
pub(super) struct Open {
    limits: ConnectionLimits,
    /// In the order in which they came.
    known: Mutex<Vec<Arc<Known>>>,
    /// How many bytes of answers wait for clients to read them.
    unread: AtomicU64,
    has_refused: AtomicBool,
}

/// One connection.
#[derive(Debug)]
struct Known {
    address: Option<IpAddr>,
    state: Mutex<State>,
    /// Ends the connection.
    end: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// Requests whose head has come and whose answer has not ended: over HTTP/1.1 one at most.
    asked: usize,
    /// Those of them whose body has come, too.
    running: usize,
    /// Since when nothing runs or nothing is asked: the last head, or the end of the last answer.
    since: Instant,
    /// How many requests were given up by their client, less those that were answered.
    given_up: u32,
    /// How many bytes of its answers wait for the client to read them.
    unread: u64,
    /// How many more wait because the client of HTTP/2 has not asked for them.
    held: u64,
    /// The most bytes of its answer that have waited at a time. All of a piece is in memory until
    /// all of it is written.
    longest: u64,
    /// Since when the client has read nothing of them.
    read_at: Instant,
    /// What the control frames of the client of HTTP/2 have cost beyond the time that has passed,
    /// and when that was counted.
    spent: Duration,
    spent_at: Instant,
}

impl State {
    /// Returns since when the connection waits for the head of a request, if it does. The time in
    /// which its client reads the last answer does not count.
    fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.asked == 0 && self.waiting() == 0;
        is_idle.then(|| self.since.max(self.read_at))
    }

    /// Notes that a request has come, or that the client has taken a piece of an answer.
    fn progress(&mut self) {
        self.spent = self.spent.saturating_sub(FRAME * FRAMES_FOR_PROGRESS);
    }

    /// Returns how many bytes wait for the client.
    fn waiting(&self) -> u64 {
        self.unread + self.held
    }
}

/// The place of a connection. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    open: Arc<Open>,
    known: Arc<Known>,
}

impl Open {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            known: Mutex::default(),
            unread: AtomicU64::new(0),
            has_refused: AtomicBool::new(false),
        })
    }

    /// Adds a connection. If there are too many, the one without a running request for longest
    /// ends; `None` if each has one.
    ///
    /// `end` ends the connection.
    pub(super) fn admit(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        end: CancellationToken,
    ) -> Option<Place> {
        let address = address
            .map(|address| address.to_canonical())
            .filter(|address| !self.limits.proxies.contains(address));
        let mut open = self.known.lock();
        let of_address = open.iter().filter(|known| known.address == address);
        let has_room = if address.is_some() && of_address.count() >= self.limits.per_address {
            end_one(&mut open, address)
        } else {
            open.len() < self.limits.all || end_one(&mut open, None)
        };
        if !has_room {
            drop(open);
            if !self.has_refused.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    ?address,
                    "a connection was refused: all that `http.max_connections` and \
                     `http.max_connections_per_address` allow have requests in work"
                );
            }
            return None;
        }
        let now = Instant::now();
        let state = Mutex::new(State {
            asked: 0,
            running: 0,
            since: now,
            given_up: 0,
            unread: 0,
            held: 0,
            longest: 0,
            read_at: now,
            spent: Duration::ZERO,
            spent_at: now,
        });
        let known = Arc::new(Known {
            address,
            state,
            end,
        });
        open.push(known.clone());
        drop(open);
        let open = self.clone();
        Some(Place { open, known })
    }

    /// Ends connections that have waited too long for the head of a request, and those of HTTP/2
    /// whose clients have asked for nothing of their answers for too long.
    pub(super) fn end_idle(&self) {
        for known in self.known.lock().iter() {
            let state = known.state.lock();
            let since = state.idle_since();
            let is_late = since.is_some_and(|since| since.elapsed() >= self.limits.header);
            if is_late || (state.held > 0 && state.read_at.elapsed() >= self.limits.write) {
                known.end.cancel();
            }
        }
    }

    /// Counts bytes that wait in place of those that did before.
    fn recount(&self, before: u64, bytes: u64) {
        let all = self.unread.fetch_add(bytes, Ordering::Relaxed);
        self.unread.fetch_sub(before, Ordering::Relaxed);
        if all.saturating_add(bytes).saturating_sub(before) > self.limits.unread {
            self.end_unread();
        }
    }

    /// Ends connections whose clients have read nothing for longest, until no more waits than may.
    fn end_unread(&self) {
        let open = self.known.lock();
        let mut waiting = Vec::new();
        for known in open.iter().filter(|known| !known.end.is_cancelled()) {
            let state = known.state.lock();
            if state.waiting() > 0 {
                waiting.push((state.read_at, state.waiting(), &known.end));
            }
        }
        waiting.sort_by_key(|(read_at, ..)| *read_at);
        let mut unread: u64 = waiting.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, end) in waiting {
            if unread <= self.limits.unread {
                break;
            }
            unread -= bytes;
            end.cancel();
        }
    }
}

/// Ends the connection that has been idle for longest, of an address if one is given.
fn end_one(open: &mut Vec<Arc<Known>>, address: Option<IpAddr>) -> bool {
    let of_address = open
        .iter()
        .enumerate()
        .filter(|(_, known)| address.is_none() || known.address == address);
    let idle = of_address.filter_map(|(index, known)| {
        let state = known.state.lock();
        (state.running == 0).then_some((state.since, index))
    });
    let Some((_, index)) = idle.min() else {
        return false;
    };
    open.remove(index).end.cancel();
    true
}

impl Place {
    pub(super) fn limits(&self) -> &ConnectionLimits {
        &self.open.limits
    }

    /// Fires when the connection ends: the listener stops, or another connection needs the place.
    pub(super) fn end(&self) -> &CancellationToken {
        &self.known.end
    }

    /// Notes that this many bytes wait, of an answer that is held whole meanwhile. `has_read` is
    /// `true` if the client has just read some, or has only now been given any. Where too many
    /// bytes of all connections wait, those end whose clients have read nothing for longest.
    pub(super) fn wait(&self, bytes: u64, has_read: bool) {
        let mut state = self.known.state.lock();
        if has_read {
            state.read_at = Instant::now();
        }
        state.longest = state.longest.max(bytes);
        let bytes = if bytes == 0 { 0 } else { state.longest };
        let before = std::mem::replace(&mut state.unread, bytes);
        drop(state);
        self.open.recount(before, bytes);
    }

    /// Counts control frames of the client of HTTP/2. Returns `false` if it sends too many for what
    /// it asks and reads.
    pub(super) fn admits(&self, frames: u32) -> bool {
        let mut state = self.known.state.lock();
        let passed = state.spent_at.elapsed();
        state.spent_at += passed;
        state.spent = state.spent.saturating_sub(passed) + FRAME * frames;
        state.spent <= FRAME * MOST_FRAMES
    }
}

/// What a control frame of HTTP/2 costs of the allowance, which grows with time: 100 a second.
/// One takes some microseconds of work.
const FRAME: Duration = Duration::from_millis(10);

/// How many may come at once: as many as Envoy lets wait for their answers. To send more, a client
/// needs a new connection, whose handshake costs it about the same.
const MOST_FRAMES: u32 = 1000;

/// How many may come more for each request, and for each piece of an answer that the client takes:
/// as Envoy has it, ten WINDOW_UPDATE frames on the stream, and ten on the connection.
const FRAMES_FOR_PROGRESS: u32 = 20;

/// A request, from its head to the end of its answer.
#[derive(Debug)]
pub(super) struct Asked {
    place: Arc<Place>,
    has_come: AtomicBool,
    is_answered: AtomicBool,
}

/// How many more requests of a connection than were answered its client may give up. Each costs a
/// client of HTTP/2 a few bytes, and the gateway the start of a call.
const MOST_GIVEN_UP: u32 = 200;

impl Asked {
    /// Notes that the head of a request has come. The connection may still end in favour of another
    /// one: the body may never come.
    pub(super) fn new(place: &Arc<Place>) -> Arc<Self> {
        let mut state = place.known.state.lock();
        state.asked += 1;
        state.since = Instant::now();
        state.progress();
        drop(state);
        Arc::new(Self {
            place: place.clone(),
            has_come: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
        })
    }

    /// Notes that all of it has come.
    pub(super) fn come(&self) {
        if !self.has_come.swap(true, Ordering::Relaxed) {
            self.place.known.state.lock().running += 1;
        }
    }

    /// Notes that its answer begins.
    pub(super) fn answer(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
        self.place.known.state.lock().longest = 0;
    }

    /// Notes that this many bytes of its answer wait for the client to ask for them, and how many
    /// did before.
    pub(super) fn hold(&self, before: u64, bytes: u64) {
        if before == bytes {
            return;
        }
        let Place { open, known } = &*self.place;
        let mut state = known.state.lock();
        if bytes < before {
            state.progress();
        }
        if bytes < before || state.waiting() == 0 {
            state.read_at = Instant::now();
        }
        state.held = state.held.saturating_add(bytes).saturating_sub(before);
        drop(state);
        open.recount(before, bytes);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let known = &self.place.known;
        let mut state = known.state.lock();
        state.asked -= 1;
        state.running -= usize::from(*self.has_come.get_mut());
        state.since = Instant::now();
        state.given_up = match *self.is_answered.get_mut() {
            true => state.given_up.saturating_sub(1),
            false => state.given_up.saturating_add(1),
        };
        if state.given_up > MOST_GIVEN_UP {
            known.end.cancel();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.wait(0, false);
        let mut open = self.open.known.lock();
        open.retain(|known| !Arc::ptr_eq(known, &self.known));
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

    fn admit(open: &Arc<Open>, address: Option<IpAddr>) -> Option<Arc<Place>> {
        open.admit(address, CancellationToken::new()).map(Arc::new)
    }

    /// A request that has come whole.
    fn run(place: &Arc<Place>) -> Arc<Asked> {
        let asked = Asked::new(place);
        asked.come();
        asked
    }

    fn address(last: u8) -> Option<IpAddr> {
        Some(Ipv4Addr::new(10, 0, 0, last).into())
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_is_idle_for_longest_makes_room() {
        let open = open(3, 3);
        let second = Duration::from_secs(1);
        let first = admit(&open, address(1)).unwrap();
        let running = run(&first);
        tokio::time::advance(second).await;
        let other = admit(&open, address(2)).unwrap();
        tokio::time::advance(second).await;
        let last = admit(&open, None).unwrap();
        let _new = admit(&open, address(3)).unwrap();
        assert!(other.end().is_cancelled());
        assert!(!first.end().is_cancelled() && !last.end().is_cancelled());
        tokio::time::advance(second).await;
        drop(running);
        let _newer = admit(&open, address(3)).unwrap();
        assert!(last.end().is_cancelled() && !first.end().is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_that_waits_too_long_for_a_head() {
        let open = open(8, 8);
        let places = [(); 3].map(|()| admit(&open, None).unwrap());
        let _reading = Asked::new(&places[1]);
        let running = run(&places[2]);
        let ended = || {
            open.end_idle();
            [0, 1, 2].map(|index| places[index].end().is_cancelled())
        };
        let limit = open.limits.header;
        tokio::time::advance(limit - Duration::from_secs(1)).await;
        assert_eq!(ended(), [false; 3]);
        drop(running);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ended(), [true, false, false]);
        // its client is still reading the answer
        places[2].wait(1, true);
        tokio::time::advance(limit).await;
        assert_eq!(ended(), [true, false, false]);
        places[2].wait(0, true);
        tokio::time::advance(limit - Duration::from_secs(1)).await;
        assert_eq!(ended(), [true, false, false]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ended(), [true, false, true]);
    }

    #[test]
    fn an_address_has_its_own_limit_and_places_are_free_again() {
        let open = open(8, 2);
        let places = [1, 1, 2].map(|last| admit(&open, address(last)).unwrap());
        let asked = (run(&places[0]), Asked::new(&places[1]));
        let other = admit(&open, address(1)).unwrap();
        assert!(places[1].end().is_cancelled(), "its body has not come");
        assert!(!places[0].end().is_cancelled());
        let more = [(); 5].map(|()| admit(&open, None).unwrap());
        assert!(admit(&open, None).is_some(), "in place of the idle one");
        assert!(places[2].end().is_cancelled());
        drop((asked, places, more, other));
        assert!(open.known.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_read_nothing_for_longest_makes_room_for_answers() {
        let open = Open::new(ConnectionLimits {
            unread: 100,
            ..ConnectionLimits::default()
        });
        let places: Vec<_> = (0..3).map(|_| admit(&open, None).unwrap()).collect();
        let [first, second, third] = &places[..] else {
            panic!("three")
        };
        for connection in [second, first] {
            connection.wait(50, true);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let ended = || [first, second, third].map(|place| place.end().is_cancelled());
        assert_eq!(ended(), [false; 3]);
        first.wait(50, false);
        assert_eq!(ended(), [false; 3]);
        third.wait(50, true);
        assert_eq!(ended(), [false, true, false]);
        // one byte waits, and all of the piece is held
        first.wait(0, true);
        third.wait(0, true);
        third.wait(1, true);
        assert_eq!(open.unread.load(Ordering::Relaxed), 100);
        Asked::new(third).answer();
        third.wait(1, true);
        assert_eq!(open.unread.load(Ordering::Relaxed), 51);
        drop(places);
        assert_eq!(open.unread.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_gives_up_more_requests_than_are_answered_is_ended() {
        let place = admit(&open(1, 1), None).unwrap();
        for _ in 0..2 * MOST_GIVEN_UP {
            Asked::new(&place);
            Asked::new(&place).answer();
        }
        assert!(!place.end().is_cancelled());
        for _ in 0..=MOST_GIVEN_UP {
            Asked::new(&place);
        }
        assert!(place.end().is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn control_frames_may_come_with_time_requests_and_answers() {
        let place = || admit(&open(1, 1), None).unwrap();
        let flooding = place();
        assert!(flooding.admits(MOST_FRAMES) && !flooding.admits(1));
        let pinging = place();
        for _ in 0..10_000 {
            tokio::time::advance(FRAME * 3).await;
            assert!(pinging.admits(3));
        }
        let busy = place();
        for _ in 0..10_000 {
            let asked = Asked::new(&busy);
            for _ in 0..9 {
                asked.hold(0, 100);
                asked.hold(100, 0);
            }
            assert!(busy.admits(10 * FRAMES_FOR_PROGRESS));
        }
        assert!(!busy.admits(MOST_FRAMES));
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
        let places = [proxy, mapped, proxy].map(|address| admit(&open, Some(address)).unwrap());
        let _running = places.each_ref().map(run);
        assert!(places.iter().all(|place| !place.end().is_cancelled()));
    }
}
