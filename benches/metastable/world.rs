//! Servers that queue, the machines they stand on, and what befalls them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use callward::core::BoxFuture;
use callward::{
    Delivery, ErrorKind, ServerId, ToolCall, ToolDefinition, ToolError, ToolOutput, ToolServer,
};
use callward_testkit::WorkQueue;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::figures::Tally;

/// How large the world is, and for how long it is watched.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    pub(crate) sets: usize,
    /// Servers of each set.
    pub(crate) replicas: usize,
    /// Calls that a server works on at once; the others queue.
    pub(crate) workers: usize,
    pub(crate) clients: usize,
    /// Calls offered, as a share of what all servers together can do.
    pub(crate) load: f64,
    pub(crate) quiet: Duration,
    pub(crate) outage: Duration,
    pub(crate) after: Duration,
}

impl Size {
    /// Calls a second that one set can answer.
    pub(crate) fn capacity(&self) -> f64 {
        (self.replicas * self.workers) as f64 / SERVICE.as_secs_f64()
    }

    /// Calls a second that are offered to all sets together.
    pub(crate) fn offered(&self) -> f64 {
        self.load * self.capacity() * self.sets as f64
    }

    pub(crate) fn length(&self) -> Duration {
        self.quiet + self.outage + self.after
    }

    pub(crate) fn window(&self) -> Range<Duration> {
        self.quiet..self.quiet + self.outage
    }

    /// Set and number of each server.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.sets).flat_map(|set| (0..self.replicas).map(move |at| (set, at)))
    }

    /// Each machine carries a server of four sets.
    fn machines(&self) -> usize {
        self.sets.div_ceil(4) * self.replicas
    }

    fn machine_of(&self, set: usize, replica: usize) -> usize {
        (set * self.replicas + replica) % self.machines()
    }
}

/// What befalls servers while the outage lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outage {
    /// In every second set more than half of the servers become ten times as slow.
    Partial,
    /// All servers of one set: some are gone, and the others take calls and never answer.
    Total,
}

/// What befalls one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Hangs,
    Refuses,
    Slow,
    Well,
}

impl Outage {
    pub(crate) const ALL: [Self; 2] = [Self::Partial, Self::Total];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Partial => "partial outage",
            Self::Total => "total outage of a set",
        }
    }

    fn fate(self, size: &Size, set: usize, replica: usize) -> Fate {
        match self {
            Self::Partial if set.is_multiple_of(2) && replica * 2 <= size.replicas => Fate::Slow,
            Self::Total if set == 0 && replica.is_multiple_of(2) => Fate::Refuses,
            Self::Total if set == 0 => Fate::Hangs,
            _ => Fate::Well,
        }
    }

    /// Returns `true` if anything befalls a server of the set.
    pub(crate) const fn strikes(self, set: usize) -> bool {
        match self {
            Self::Partial => set.is_multiple_of(2),
            Self::Total => set == 0,
        }
    }

    /// Says of each set whether it is not struck, but shares a machine with a server that is.
    pub(crate) fn neighbours(self, size: &Size) -> Vec<bool> {
        let struck: Vec<_> = size
            .places()
            .filter(|(set, at)| self.fate(size, *set, *at) != Fate::Well)
            .map(|(set, at)| size.machine_of(set, at))
            .collect();
        let near = |set: usize, at| struck.contains(&size.machine_of(set, at));
        (0..size.sets)
            .map(|set| !self.strikes(set) && (0..size.replicas).any(|at| near(set, at)))
            .collect()
    }
}

/// All servers, and the moment that their times count from.
pub(crate) struct World {
    pub(crate) size: Size,
    pub(crate) epoch: Instant,
    pub(crate) servers: Vec<Arc<QueueingServer>>,
    pub(crate) tally: Arc<Tally>,
}

impl World {
    /// Makes the world as it is at its first moment, which is now.
    pub(crate) fn new(size: &Size, outage: Option<Outage>, seed: u64) -> Self {
        let epoch = Instant::now();
        let tally = Arc::new(Tally::new(size));
        let machines: Vec<_> = (0..size.machines())
            .map(|_| Arc::<Machine>::default())
            .collect();
        let server = |(set, replica)| {
            Arc::new(QueueingServer {
                id: ServerId::new(format!("set-{set}-{replica}")).expect("a valid id"),
                set,
                seed,
                epoch,
                fate: outage.map_or(Fate::Well, |outage| outage.fate(size, set, replica)),
                window: size.window(),
                machine: machines[size.machine_of(set, replica)].clone(),
                queue: Mutex::new(Queue::of(size.workers)),
                tally: tally.clone(),
            })
        };
        Self {
            size: size.clone(),
            epoch,
            servers: size.places().map(server).collect(),
            tally,
        }
    }
}

/// What every attempt passes before a server sees it, whatever becomes of it: connections are
/// accepted and calls are read one after another.
#[derive(Debug, Default)]
struct Machine {
    free: Mutex<Duration>,
}

impl Machine {
    fn pass(&self, now: Duration) -> Duration {
        let mut free = self.free.lock();
        *free = now.max(*free) + FRONT;
        *free
    }
}

/// One server: this many workers and one queue. A call that its caller gave up is worked on like
/// any other, because the server is not notified.
pub(crate) struct QueueingServer {
    id: ServerId,
    pub(crate) set: usize,
    seed: u64,
    epoch: Instant,
    fate: Fate,
    window: Range<Duration>,
    machine: Arc<Machine>,
    queue: Mutex<Queue>,
    tally: Arc<Tally>,
}

struct Queue {
    calls: WorkQueue,
    restarted: bool,
}

impl Queue {
    fn of(workers: usize) -> Self {
        Self {
            calls: WorkQueue::new(workers),
            restarted: false,
        }
    }
}

/// What becomes of an attempt, known when it arrives.
enum Outcome {
    Answered(Duration),
    Failed(Duration, ToolError),
    Never,
}

impl QueueingServer {
    fn take(&self, call: &ToolCall) -> Outcome {
        let now = self.tally.attempt(self.set, self.epoch);
        let arrived = self.machine.pass(now);
        let is_down = matches!(self.fate, Fate::Hangs | Fate::Refuses);
        let lost = |at, kind, delivery, message| match self.fate {
            Fate::Hangs => Outcome::Never,
            _ => Outcome::Failed(at, ToolError::new(kind, delivery, message)),
        };
        if is_down && self.window.contains(&arrived) {
            let (kind, sent) = (ErrorKind::ConnectFailed, Delivery::NotSent);
            return lost(arrived, kind, sent, "connection refused");
        }
        let mut queue = self.queue.lock();
        if is_down && arrived >= self.window.end && !queue.restarted {
            // it comes back without what it had
            *queue = Queue::of(queue.calls.workers());
            queue.restarted = true;
        }
        if queue.calls.waiting(arrived) >= LONGEST_QUEUE {
            let (kind, sent) = (ErrorKind::Overloaded, Delivery::Answered);
            return Outcome::Failed(arrived, ToolError::new(kind, sent, "503"));
        }
        let end = queue.calls.push(arrived, |begin| {
            let slow = self.fate == Fate::Slow && self.window.contains(&begin);
            self.work(call) * if slow { SLOWER } else { 1 }
        });
        if is_down && arrived < self.window.start && end > self.window.start {
            let (kind, sent) = (ErrorKind::ConnectionLost, Delivery::Unknown);
            return lost(self.window.start, kind, sent, "connection reset");
        }
        Outcome::Answered(end)
    }

    /// How long the call takes a worker: the same in every run of one seed, whatever runs before
    /// it. The sum of four draws, so that few calls are much longer than most.
    fn work(&self, call: &ToolCall) -> Duration {
        let digits = call.arguments().iter().filter(|byte| byte.is_ascii_digit());
        let id = digits.fold(0_u64, |id, digit| id * 10 + u64::from(digit - b'0'));
        let attempt = u64::from(call.attempt().number);
        let seed = self.seed ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (attempt << 56);
        let mut chance = fastrand::Rng::with_seed(seed);
        let drawn: f64 = (0..4).map(|_| -(1.0 - chance.f64()).ln()).sum();
        SERVICE.mul_f64(drawn / 4.0)
    }
}

impl ToolServer for QueueingServer {
    fn id(&self) -> &ServerId {
        &self.id
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        let tool = json!({
            "name": TOOL,
            "description": "Returns an item",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "estimatedDuration": 500},
        });
        let listed = ToolDefinition::from_json(tool.to_string()).expect("a valid definition");
        Box::pin(std::future::ready(Ok(vec![listed])))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (outcome, epoch) = (self.take(&call), self.epoch);
        Box::pin(async move {
            match outcome {
                Outcome::Answered(at) => {
                    sleep_until(epoch + at).await;
                    Ok(ToolOutput::text("item"))
                }
                Outcome::Failed(at, error) => {
                    sleep_until(epoch + at).await;
                    Err(error)
                }
                Outcome::Never => std::future::pending().await,
            }
        })
    }
}

/// The one tool of every set.
pub(crate) const TOOL: &str = "get_item";
/// How long a call takes a worker on average.
const SERVICE: Duration = Duration::from_millis(100);
/// What an attempt takes the machine.
const FRONT: Duration = Duration::from_millis(5);
const SLOWER: u32 = 10;
/// A server refuses what comes when this many calls wait.
const LONGEST_QUEUE: usize = 1000;
