//! Scripted servers behind a router, and the layer in front of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward_core::{
    CallRecord, Delivery, ErrorKind, ReplicaSetId, ServerId, ToolCall, ToolError, ToolOutput,
};
use callward_retry::hedge::{Hedge, HedgeConfig, HedgeLayer};
use callward_retry::{RetryConfig, RetryLayer};
use callward_router::{Member, Pool, Router, StrategyName};
use callward_testkit::{MockClient, MockService};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

use crate::bed::{Output, ms, read};

/// How an attempt ends, `ok`, `lost`, `unsent` or never (`hangs`), and after how many milliseconds;
/// `asks` asks the client then, and ends a second later, `input` is a result that asks.
pub(crate) type Fate = (&'static str, u64);

pub(crate) struct Bed {
    servers: Vec<MockService>,
    pub(crate) layer: HedgeLayer,
    pub(crate) retry: RetryLayer,
    pub(crate) service: Hedge<Router<MockService>>,
}

/// How a call ended.
pub(crate) struct Ended {
    pub(crate) result: Output,
    pub(crate) took: Duration,
    pub(crate) record: Arc<CallRecord>,
}

impl Bed {
    /// Servers that take turns; the n-th attempt of all, counted from 1, has the fate of that
    /// number.
    pub(crate) fn new(
        servers: usize,
        fate: impl Fn(usize) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let (budget, config) = (RetryConfig::default(), HedgeConfig::default());
        Self::with(servers, budget, config, fate)
    }

    pub(crate) fn with(
        servers: usize,
        budget: RetryConfig,
        config: HedgeConfig,
        fate: impl Fn(usize) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let (fate, attempts) = (Arc::new(fate), Arc::new(AtomicUsize::new(0)));
        let server = |place| {
            let (fate, attempts) = (fate.clone(), attempts.clone());
            MockService::new(move |call, _| {
                let n = attempts.fetch_add(1, Ordering::SeqCst) + 1;
                run(place, n, fate(n), call)
            })
        };
        let servers: Vec<_> = (0..servers).map(server).collect();
        let members = servers.iter().enumerate();
        let members = members.map(|(place, server)| Member::new(name(place), server.clone()));
        let pool = Arc::new(Pool::new());
        pool.set_members(ReplicaSetId::new("test").unwrap(), members.collect());
        let router = Router::new(pool).with_strategy(StrategyName::RoundRobin);
        let retry = RetryLayer::new(budget).unwrap();
        let layer = retry.hedge(config).unwrap();
        Self {
            servers,
            service: layer.layer(router),
            layer,
            retry,
        }
    }

    pub(crate) async fn send(&self, call: ToolCall) -> Ended {
        let record = Arc::new(CallRecord::new());
        let begin = Instant::now();
        let call = call.with_record(record.clone());
        Ended {
            result: self.service.clone().oneshot(call).await,
            took: begin.elapsed(),
            record,
        }
    }

    pub(crate) async fn read(&self) -> Ended {
        self.send(read()).await
    }

    /// Sends this many reads, one after the other.
    pub(crate) async fn reads(&self, count: usize) {
        for _ in 0..count {
            self.read().await.result.unwrap();
        }
    }

    /// Returns how many attempts were started, run, and were cancelled.
    pub(crate) fn attempts(&self) -> [usize; 3] {
        let count = |of: fn(&MockService) -> usize| self.servers.iter().map(of).sum();
        [
            count(MockService::started),
            count(MockService::running),
            count(MockService::cancelled),
        ]
    }

    pub(crate) fn started(&self) -> usize {
        self.attempts()[0]
    }
}

pub(crate) fn name(place: usize) -> ServerId {
    ServerId::new(format!("s{place}")).unwrap()
}

/// Ends as it is fated; an answer names the attempt.
async fn run(place: usize, n: usize, (end, after): Fate, call: ToolCall) -> Output {
    sleep(ms(after)).await;
    let delivery = match end {
        "ok" => return Ok(ToolOutput::text(n.to_string())),
        "asks" => {
            MockClient::ask(&call, "").await;
            sleep(ms(1000)).await;
            return Ok(ToolOutput::text(n.to_string()));
        }
        "input" => return Ok(ToolOutput::from_json(r#"{"resultType":"input_required"}"#).unwrap()),
        "lost" => Delivery::Unknown,
        "unsent" => Delivery::NotSent,
        _ => std::future::pending().await,
    };
    let text = format!("attempt {n} failed");
    let error = ToolError::new(ErrorKind::ConnectionLost, delivery, text);
    Err(error.with_server(name(place)))
}
