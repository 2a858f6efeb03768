//! Sends recorded calls through the cache layer at their recorded times.
//!
//! Calls of a session run one after another, except those of one layer, which run concurrently.
//! Where times are recorded, calls begin at their times and overlap as recorded.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use callward_cache::{CacheConfig, CacheLayer, MokaStore};
use callward_core::{CacheStatus, CallRecord, Caller, Principal, Tool, ToolCall};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};
use tower::{Layer, ServiceExt, service_fn};

use super::Options;
use super::answer::{self, Answer};
use super::order::Timed;
use super::tally::{Did, Facts, Figures, Tally};

/// A call in flight.
type Running = Pin<Box<dyn Future<Output = Ended>>>;

struct Ended {
    world: u128,
    id: u64,
    facts: Facts,
    did: Did,
}

/// A call in flight, as later calls see it.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    id: u64,
    session: u128,
    layer: Option<u64>,
    /// The recorded end.
    ends: Option<Duration>,
}

/// Sends recorded calls through the cache layer.
pub(crate) struct Driver {
    config: CacheConfig,
    store: MokaStore,
    /// The cache of each world. All share one store, with separate keys.
    worlds: HashMap<u128, CacheLayer>,
    running: FuturesUnordered<Running>,
    in_flight: HashMap<u128, Vec<InFlight>>,
    tally: Tally,
    started: Instant,
    gap: Duration,
    max_result: u64,
    sent: u64,
}

/// The limit on concurrent calls.
const MAX_IN_FLIGHT: usize = 4_096;

/// The limit on worlds; at the next one, all lose their results.
const MAX_WORLDS: usize = 1_024;

/// The limit on the duration of a call.
const MAX_DURATION: Duration = Duration::from_secs(24 * 3600);

/// The clock stops here: later calls take no time.
const END_OF_TIME: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Driver {
    /// Starts with empty caches. `max_result` limits the length of results.
    pub(crate) fn new(options: &Options, config: CacheConfig, max_result: u64) -> Self {
        Self {
            store: MokaStore::new(&config),
            config,
            worlds: HashMap::new(),
            running: FuturesUnordered::new(),
            in_flight: HashMap::new(),
            tally: Tally::new("callward", options.assumed_duration),
            started: Instant::now(),
            gap: options.gap,
            max_result,
            sent: 0,
        }
    }

    /// Returns the time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits until the call may begin.
    pub(crate) async fn await_turn(&mut self, timed: &Timed) {
        if self.worlds.len() >= MAX_WORLDS && !self.worlds.contains_key(&timed.place.world) {
            self.end_all().await;
            self.worlds.clear();
        }
        if let Some(at) = timed.at {
            self.run_until(at).await;
        }
        let alone = !self.beside(timed).any(|one| one.is_concurrent_with(timed));
        while self.must_wait(timed) || self.running.len() >= MAX_IN_FLIGHT {
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
        let recorded = Arc::new(Answer {
            facts,
            takes: self.takes(timed),
            max_length: self.max_result,
            asked: AtomicBool::new(false),
        });
        let given = recorded.clone();
        let server = service_fn(move |_: ToolCall| given.clone().give());
        let principal = Principal::new(format!("{:032x}", place.principal));
        let record = Arc::new(CallRecord::new());
        let prepared = ToolCall::new(tool, call.arguments().to_owned())
            .with_caller(Arc::new(Caller::new(principal)))
            .with_record(record.clone());
        let answered = self.cache(world).layer(server).oneshot(prepared);
        let mut running: Running = Box::pin(async move {
            let answer = answered.await;
            let did = match answer {
                Ok(output) if !recorded.asked.load(Ordering::Relaxed) => {
                    let kept = answer::read(&output);
                    match record.facts().cache {
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
        // poll once, so that calls begin in order
        let begun = poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await;
        if let Poll::Ready(ended) = begun {
            self.tally.count(&ended.facts, ended.did);
            return;
        }
        self.running.push(running);
        self.in_flight.entry(world).or_default().push(InFlight {
            id,
            session: place.session,
            layer: call.layer,
            ends: at.and_then(|at| Some(at.saturating_add(call.duration_ms?))),
        });
    }

    /// Waits for all calls and returns the figures.
    pub(crate) async fn end(mut self) -> Figures {
        self.end_all().await;
        self.tally.end(self.store.usage().bytes)
    }

    /// Returns the cache of a world.
    fn cache(&mut self, world: u128) -> &CacheLayer {
        let (config, store) = (&self.config, &self.store);
        let cache = || CacheLayer::with_store(config.clone(), store.clone());
        self.worlds.entry(world).or_insert_with(cache)
    }

    /// Returns the time that the server takes for a call.
    fn takes(&self, timed: &Timed) -> Duration {
        match timed.call.duration_ms {
            Some(duration) if self.now() < END_OF_TIME => duration.min(MAX_DURATION),
            _ => Duration::ZERO,
        }
    }

    /// Returns the calls in flight in the world of a call.
    fn beside(&self, timed: &Timed) -> impl Iterator<Item = &InFlight> {
        self.in_flight.get(&timed.place.world).into_iter().flatten()
    }

    /// Returns `true` while a call of the same world must end before this one begins.
    fn must_wait(&self, timed: &Timed) -> bool {
        let overlaps = |one: &InFlight| match (timed.at, one.ends) {
            (Some(at), Some(ends)) => at < ends,
            _ => false,
        };
        self.beside(timed)
            .any(|one| !one.is_concurrent_with(timed) && !overlaps(one))
    }

    async fn end_all(&mut self) {
        while !self.running.is_empty() {
            self.end_next().await;
        }
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
        if let Some(in_flight) = self.in_flight.get_mut(&ended.world) {
            in_flight.retain(|one| one.id != ended.id);
            if in_flight.is_empty() {
                self.in_flight.remove(&ended.world);
            }
        }
    }
}

impl InFlight {
    /// Returns `true` if both calls are of one layer.
    fn is_concurrent_with(&self, timed: &Timed) -> bool {
        self.layer.is_some()
            && self.layer == timed.call.layer
            && self.session == timed.place.session
    }
}
