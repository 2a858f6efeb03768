//! Servers that queue, how long calls take them, and what becomes of some of them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callward::core::BoxFuture;
use callward::{Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolOutput};
use callward_testkit::WorkQueue;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tower::Service;

use crate::figures::Tally;

pub(crate) const SERVERS: usize = 10;
/// Calls that a server works on at once; the others queue.
const WORKERS: usize = 4;
/// How long a call takes a worker on average.
const SERVICE: Duration = Duration::from_millis(100);
/// Calls a second: seven tenths of what all servers can do while all are well.
pub(crate) const OFFERED: f64 = 280.0;
pub(crate) const LENGTH: Duration = Duration::from_secs(40);
/// When something happens to one server; figures are taken from then on.
pub(crate) const TURN: Duration = Duration::from_secs(10);

/// How long calls take, and what happens to one server of ten at its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Nothing happens; few calls take much longer than most.
    LogNormal,
    /// Nothing happens; one call of ten takes twenty times as long as the others, which nothing
    /// tells beforehand.
    Bimodal,
    /// Nothing happens; one call of ten is of a tool that takes twenty times as long.
    TwoTools,
    OneSlow,
    OneFails,
    OneJoins,
}

impl Scenario {
    /// Returns `true` if something happens to the server of this number.
    pub(crate) const fn strikes(self, number: usize) -> bool {
        let changes = !matches!(self, Self::LogNormal | Self::Bimodal | Self::TwoTools);
        changes && number == 7
    }

    /// How many times as long calls take a struck server, so long after it was struck; `None`: each
    /// fails after a millisecond.
    fn slower(self, since: Duration) -> Option<f64> {
        match self {
            Self::OneSlow => Some(SLOWER),
            Self::OneFails => None,
            Self::OneJoins => {
                let cold = 1.0 - (since.as_secs_f64() / COLD_FOR.as_secs_f64()).min(1.0);
                Some(1.0 + (COLD - 1.0) * cold)
            }
            _ => Some(1.0),
        }
    }

    /// Draws what a call is: of the second tool or not, and how long it takes a server that is
    /// well.
    pub(crate) fn draw(self, chance: &mut fastrand::Rng) -> (bool, Duration) {
        let rare = chance.f64() < 0.1;
        let short = 1.0 / (0.9 + 0.1 * RARE);
        let (mean, sigma) = match self {
            Self::LogNormal => (1.0, 1.0),
            Self::Bimodal | Self::TwoTools if rare => (short * RARE, 0.25),
            Self::Bimodal | Self::TwoTools => (short, 0.25),
            _ => (1.0, SIGMA),
        };
        // one of the two that Box and Muller make of two others
        let (one, two) = (1.0 - chance.f64(), chance.f64());
        let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos();
        let drawn = mean * (sigma * normal - sigma * sigma / 2.0).exp();
        (rare && self == Self::TwoTools, SERVICE.mul_f64(drawn))
    }
}

/// One server: this many workers and one queue. A call that its caller gave up is worked on like
/// any other, because the server is not notified.
pub(crate) struct Simulated {
    number: usize,
    pub(crate) id: ServerId,
    scenario: Scenario,
    epoch: Instant,
    queue: Mutex<WorkQueue>,
    tally: Arc<Mutex<Tally>>,
}

impl Simulated {
    /// Makes all servers of a world that begins now.
    pub(crate) fn all(scenario: Scenario, tally: &Arc<Mutex<Tally>>) -> Vec<Arc<Self>> {
        let epoch = Instant::now();
        let server = |number| {
            Arc::new(Self {
                number,
                id: ServerId::new(format!("server-{number}")).expect("a valid id"),
                scenario,
                epoch,
                queue: Mutex::new(WorkQueue::new(WORKERS)),
                tally: tally.clone(),
            })
        };
        (0..SERVERS).map(server).collect()
    }

    fn slower(&self, at: Duration) -> Option<f64> {
        match at.checked_sub(TURN) {
            Some(since) if self.scenario.strikes(self.number) => self.scenario.slower(since),
            _ => Some(1.0),
        }
    }

    /// Returns `true` if it is there at all.
    pub(crate) fn is_there(&self, at: Duration) -> bool {
        let late = self.scenario == Scenario::OneJoins && self.scenario.strikes(self.number);
        !late || at >= TURN
    }

    /// When it would have answered a call that takes so much work: never, if it would fail.
    pub(crate) fn answers(&self, now: Duration, work: Duration) -> Duration {
        let begin = self.queue.lock().begins(now);
        match self.slower(now) {
            Some(slower) if self.is_there(now) => begin + work.mul_f64(slower),
            _ => Duration::MAX,
        }
    }

    /// Takes a call: what becomes of it, and when.
    fn take(&self, call: &ToolCall) -> (Duration, Result<ToolOutput, ToolError>) {
        let now = self.epoch.elapsed();
        let struck = self.scenario.strikes(self.number);
        self.tally.lock().arrived(struck, now);
        if self.slower(now).is_none() {
            let (kind, delivery) = (ErrorKind::ServerFault, Delivery::Answered);
            return (now + FAILS_IN, Err(ToolError::new(kind, delivery, "500")));
        }
        let work = |begin| work_of(call).mul_f64(self.slower(begin).unwrap_or(1.0));
        let end = self.queue.lock().push(now, work);
        let limit = now + call.plan().limits.attempt_timeout;
        if end > limit {
            let late = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer");
            return (limit, Err(late));
        }
        (end, Ok(ToolOutput::text("item")))
    }
}

/// Writes what a call takes into its arguments, from where servers and the oracle read it.
pub(crate) fn arguments(work: Duration) -> String {
    format!("{{\"work\":{}}}", work.as_nanos())
}

/// Reads what a call takes a server that is well.
pub(crate) fn work_of(call: &ToolCall) -> Duration {
    let digits = call.arguments().iter().filter(|byte| byte.is_ascii_digit());
    Duration::from_nanos(digits.fold(0, |work, digit| work * 10 + u64::from(digit - b'0')))
}

/// The way to a server, as the router's pool holds it.
#[derive(Clone)]
pub(crate) struct Leaf(pub(crate) Arc<Simulated>);

impl Service<ToolCall> for Leaf {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let (at, answer) = self.0.take(&call);
        let until = sleep_until(self.0.epoch + at);
        Box::pin(async move {
            until.await;
            answer
        })
    }
}

/// Spread of the service times, where the scenario is not about them: of a hundred calls one takes
/// more than three times as long as half of them do.
const SIGMA: f64 = 0.5;
/// How many times as long a rare call takes.
const RARE: f64 = 20.0;
/// How many times as long a slow server takes.
const SLOWER: f64 = 10.0;
const FAILS_IN: Duration = Duration::from_millis(1);
/// How many times as long a call takes a server that has just started, and until when it is as
/// quick as the others.
const COLD: f64 = 4.0;
const COLD_FOR: Duration = Duration::from_secs(5);
