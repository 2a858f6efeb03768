//! One round: clients that make calls of every kind, and servers that fail at every point.

use std::ops::Range;
use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::limit::ConcurrencyLimitLayer;
use callward::retry::RetryConfig;
use callward::retry::hedge::HedgeConfig;
use callward::{Server, Stack};
use callward_testkit::calls;
use callward_testkit::chaos::{Chaos, ChaosServer, Ledger};
use callward_testkit::truth::{CallerReply, Sort, Tally, judge};
use futures_util::future::join_all;

/// A runtime whose clock passes when all wait.
pub(crate) fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// How a round is set up.
pub(crate) struct Round {
    pub(crate) seed: u64,
    pub(crate) calls: Range<u64>,
    pub(crate) clients: u64,
    /// What each server's calls meet.
    pub(crate) chaos: Vec<Chaos>,
}

impl Round {
    /// Runs on a clock of its own, and judges each call.
    pub(crate) fn run(&self) -> Result<Tally, String> {
        // what the router draws
        fastrand::seed(self.seed);
        paused().block_on(self.calls_and_verdicts())
    }

    async fn calls_and_verdicts(&self) -> Result<Tally, String> {
        let ledger = Ledger::new();
        let server = |(n, chaos): (usize, &Chaos)| {
            let id = format!("s{n}").parse().unwrap();
            ChaosServer::new(id, calls::tools(), chaos.clone(), ledger.clone())
        };
        let servers: Vec<_> = self.chaos.iter().enumerate().map(server).collect();
        let stack = self.stack(&servers).await;
        let clients = (0..self.clients).map(|client| self.client(client, &stack));
        let reported = join_all(clients).await;
        for server in &servers {
            server.settled().await;
        }
        let mut tally = Tally::default();
        for (call, sort, reported) in reported.into_iter().flatten() {
            judge(sort, &reported, ledger.of(call), true, &mut tally)
                .map_err(|fault| format!("seed {}, call {call}: {fault}", self.seed))?;
        }
        Ok(tally)
    }

    /// Each seed has other settings, so that no layer hides behind another.
    async fn stack(&self, servers: &[ChaosServer]) -> Stack {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let places = rng.choice([2, 8, 64]).unwrap();
        let mut retry = RetryConfig::default();
        retry.seed = Some(self.seed);
        retry.max_attempts = rng.u32(1..=6);
        retry.budget_percent = rng.choice([20, 1000]).unwrap();
        let mut breaker = BreakerConfig::default();
        breaker.failures = rng.choice([3, 20, 1000]).unwrap();
        breaker.probes = rng.u32(1..=3);
        let mut by_share = BreakerConfig::default();
        (by_share.failures, by_share.failure_rate) = (0, Some(0.6));
        by_share.slow_after = Some(Duration::from_secs(20));
        by_share.slow_rate = Some(0.8);
        let mut builder = Stack::builder()
            .retry(retry)
            .breaker(rng.choice([breaker, by_share]).unwrap())
            .server_breaker(rng.choice([BreakerConfig::server(), by_share]).unwrap());
        if rng.bool() {
            // reads alone may be sent to two servers at once
            builder = builder.hedge(HedgeConfig::default());
        }
        if rng.bool() {
            builder = builder.call_deadline(Duration::from_secs(rng.u64(1..=90)));
        }
        for server in servers {
            builder = builder.server(
                Server::new(server.clone())
                    .in_set("set".parse().unwrap())
                    .concurrency(ConcurrencyLimitLayer::new(places))
                    .refine_tool("tabs".parse().unwrap(), calls::tabs_that_read()),
            );
        }
        builder.build().await.unwrap()
    }

    /// One client: a call, a pause, and the next.
    async fn client(&self, client: u64, stack: &Stack) -> Vec<(u64, Sort, CallerReply)> {
        let mut rng = fastrand::Rng::with_seed(self.seed ^ (client << 32));
        let mut all = Vec::new();
        let mine = (self.calls.start + client..self.calls.end)
            .step_by(usize::try_from(self.clients).unwrap());
        for call in mine {
            let (tool, sort) = rng.choice(calls::KINDS).unwrap();
            let name = format!("set.{tool}");
            let reported = match stack.prepare(&name, calls::arguments(tool, sort, call)) {
                // not listed: reported without asking a server
                Err(error) => Some(Err(error)),
                Ok(prepared) => {
                    let running = stack.run(prepared);
                    match rng.u8(0..10) {
                        0 => {
                            let patience = Duration::from_millis(rng.u64(0..20_000));
                            tokio::time::timeout(patience, running).await.ok()
                        }
                        _ => Some(running.await),
                    }
                }
            };
            all.push((call, sort, reported));
            tokio::time::sleep(Duration::from_millis(rng.u64(0..4_000))).await;
        }
        all
    }
}
