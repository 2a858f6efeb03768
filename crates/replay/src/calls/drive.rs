//! Sending recorded calls through the cache layer, each when it was made.
//!
//! Calls of a session follow each other, but for those of one layer, which run at once. Where the
//! record has times, calls begin at their times, and overlap as they did.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use callward_cache::{CacheConfig, CacheLayer, MokaStore};
use callward_core::{CacheStatus, CallRecord, Caller, Tool, ToolCall};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};
use tower::{Layer, ServiceExt};

use super::Options;
use super::answer::{self, Recorded};
use super::order::Timed;
use super::place::Place;
use super::tally::{Did, Facts, Figures, Tally};
use super::tools::principal;

/// A call on its way, and what is to be known of it when it ends.
type Running = Pin<Box<dyn Future<Output = Ended>>>;

struct Ended {
    world: u128,
    id: u64,
    facts: Facts,
    did: Did,
}

/// A call on its way, as those after it see it.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    id: u64,
    session: u128,
    layer: Option<u64>,
    /// When it ended in the record.
    ends: Option<Duration>,
}

/// One world's cache. All keep their results in one store, under secrets of their own.
struct World {
    layer: CacheLayer,
    /// The number of the call that was made last.
    used: u64,
}

/// Sends recorded calls through the cache layer.
pub(crate) struct Driver {
    config: CacheConfig,
    store: MokaStore,
    worlds: HashMap<u128, World>,
    running: FuturesUnordered<Running>,
    ahead: HashMap<u128, Vec<Ahead>>,
    tally: Tally,
    started: Instant,
    gap: Duration,
    longest: u64,
    sent: u64,
}

/// So many calls may be on their way at once; with more, the next one waits.
const AT_ONCE: usize = 4_096;

/// So many worlds are remembered; of those used longest ago, the results are forgotten.
const WORLDS: usize = 512;

/// A recorded call takes no longer.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The clock goes no further: what takes time then, takes none.
const END_OF_TIME: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Driver {
    /// Starts with empty caches. `longest` is how long a result is made at most.
    pub(crate) fn new(options: &Options, config: CacheConfig, longest: u64) -> Self {
        Self {
            store: MokaStore::new(&config),
            config,
            worlds: HashMap::new(),
            running: FuturesUnordered::new(),
            ahead: HashMap::new(),
            tally: Tally::new("callward", options.assumed_duration),
            started: Instant::now(),
            gap: options.gap,
            longest,
            sent: 0,
        }
    }

    /// Returns how late it is.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits until it is the call's turn.
    pub(crate) async fn await_turn(&mut self, timed: &Timed) {
        if self.worlds.len() >= WORLDS && !self.worlds.contains_key(&timed.place.world) {
            self.forget_half().await;
        }
        if let Some(at) = timed.at {
            self.run_until(at).await;
        }
        let alone = !self.is_layer_of(timed);
        while self.must_wait(timed) || self.running.len() >= AT_ONCE {
            self.end_next().await;
        }
        if timed.at.is_none() && alone && !self.gap.is_zero() && self.now() < END_OF_TIME {
            self.run_until(self.now().saturating_add(self.gap)).await;
        }
    }

    /// Sends a call. It has begun when this returns.
    pub(crate) async fn send(&mut self, timed: &Timed, tool: Arc<Tool>, facts: Facts) {
        let Timed {
            call, place, at, ..
        } = timed;
        self.sent += 1;
        let (id, world) = (self.sent, place.world);
        let takes = self.takes(timed);
        let server = Recorded::new(facts, call.delivery, takes, self.longest);
        let record = Arc::new(CallRecord::new());
        let prepared = ToolCall::new(tool, call.arguments().to_owned())
            .with_caller(Arc::new(Caller::new(principal(place))))
            .with_record(record.clone());
        let answered = self.cache(world).layer(server.clone()).oneshot(prepared);
        let mut running: Running = Box::pin(async move {
            let answer = answered.await;
            let did = match answer {
                Ok(output) if !server.was_asked() => {
                    let kept = answer::read(&output);
                    match record.cache() {
                        CacheStatus::Joined => Did::Joined(kept),
                        _ => Did::Hit(kept),
                    }
                }
                _ => Did::Ran,
            };
            Ended {
                world,
                id,
                facts,
                did,
            }
        });
        // begun now, so that calls begin in their order
        let begun = poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await;
        if let Poll::Ready(ended) = begun {
            self.tally.count(&ended.facts, ended.did);
            return;
        }
        self.running.push(running);
        self.ahead.entry(world).or_default().push(Ahead {
            id,
            session: place.session,
            layer: call.layer,
            ends: at.and_then(|at| Some(at.saturating_add(call.duration_ms?.duration()))),
        });
    }

    /// Lets all calls end and returns the figures.
    pub(crate) async fn end(mut self) -> Figures {
        while !self.running.is_empty() {
            self.end_next().await;
        }
        self.tally.end(self.store.usage().bytes)
    }

    /// Returns the cache of a world.
    fn cache(&mut self, world: u128) -> &CacheLayer {
        let used = self.sent;
        let (config, store) = (&self.config, &self.store);
        let known = self.worlds.entry(world).or_insert_with(|| World {
            layer: CacheLayer::with_store(config.clone(), store.clone()),
            used,
        });
        known.used = used;
        &known.layer
    }

    /// Forgets the worlds used longest ago. Lets all calls end before, so that none is cut off.
    async fn forget_half(&mut self) {
        while !self.running.is_empty() {
            self.end_next().await;
        }
        let mut used: Vec<u64> = self.worlds.values().map(|world| world.used).collect();
        let (_, middle, _) = used.select_nth_unstable(WORLDS / 2);
        let middle = *middle;
        self.worlds.retain(|_, world| world.used >= middle);
    }

    /// How long the server is to take: as long as it did, if it worked at all.
    fn takes(&self, timed: &Timed) -> Duration {
        match timed.call.duration_ms {
            Some(duration) if self.now() < END_OF_TIME => duration.duration().min(LONGEST),
            _ => Duration::ZERO,
        }
    }

    fn is_layer_of(&self, timed: &Timed) -> bool {
        let running = self.ahead.get(&timed.place.world);
        running.is_some_and(|ahead| ahead.iter().any(|one| one.is_made_with(timed)))
    }

    /// Says whether a call of the same world must end before this one begins.
    fn must_wait(&self, timed: &Timed) -> bool {
        let overlaps = |one: &Ahead| match (timed.at, one.ends) {
            (Some(at), Some(ends)) => at < ends,
            _ => false,
        };
        let running = self.ahead.get(&timed.place.world);
        running.is_some_and(|ahead| {
            ahead
                .iter()
                .any(|one| !one.is_made_with(timed) && !overlaps(one))
        })
    }

    async fn end_next(&mut self) {
        if let Some(ended) = self.running.next().await {
            self.note(&ended);
        }
    }

    async fn run_until(&mut self, at: Duration) {
        let until = sleep_until(self.started + at.min(END_OF_TIME));
        tokio::pin!(until);
        loop {
            tokio::select! {
                biased;
                Some(ended) = self.running.next() => self.note(&ended),
                () = &mut until => return,
            }
        }
    }

    fn note(&mut self, ended: &Ended) {
        self.tally.count(&ended.facts, ended.did);
        if let Some(ahead) = self.ahead.get_mut(&ended.world) {
            ahead.retain(|one| one.id != ended.id);
            if ahead.is_empty() {
                self.ahead.remove(&ended.world);
            }
        }
    }
}

impl Ahead {
    /// Says whether a call was made at once with this one.
    fn is_made_with(&self, timed: &Timed) -> bool {
        self.layer.is_some()
            && self.layer == timed.call.layer
            && self.session == timed.place.session
    }
}

/// Says which calls of a world repeat the last write to it.
#[derive(Debug, Default)]
pub(crate) struct LastWrites(HashMap<u128, u128>);

impl LastWrites {
    /// Says whether the write repeats the last one, and takes it for the last.
    pub(crate) fn is_repeated(&mut self, place: &Place) -> bool {
        self.0.insert(place.world, place.key) == Some(place.key)
    }
}
