//! The layers of this workspace, each alone around the service.

use std::hint::black_box;
use std::sync::Arc;

use callward::breaker::{BreakerConfig, BreakerLayer, BreakerSet, Circuit};
use callward::cache::{CacheConfig, CacheLayer};
use callward::limit::{
    AttemptTimeoutLayer, ConcurrencyLimitLayer, RateLimitConfig, RateLimitLayer,
};
use callward::loopguard::LoopGuardLayer;
use callward::retry::RetryLayer;
use callward::retry::hedge::{HedgeConfig, HedgeLayer};
use callward::router::{Member, Pool, Router};
use callward::telemetry::{AttemptSpanLayer, CallSpanLayer};
use callward::{ReplicaSetId, ServerId, ToolName};
use tower::Layer;

use crate::calls::AtOnce;
use crate::measure::Subject;
use crate::rows::{RATE, SLOW};

fn around<L>(layer: &L) -> Subject
where
    L: Layer<AtOnce>,
    L::Service: callward::ToolService,
{
    Subject::service(layer.layer(AtOnce))
}

fn server(number: usize) -> ServerId {
    ServerId::new(format!("orders-{number}")).unwrap()
}

pub(crate) fn call_span() -> Subject {
    around(&CallSpanLayer::new())
}

/// Each thread's first run fills it, which is the one that does not count.
pub(crate) fn cache_hit() -> Subject {
    around(&CacheLayer::new(CacheConfig::default()))
}

/// With room for some of the results, so that each new one drives out another.
pub(crate) fn cache_miss() -> Subject {
    let mut config = CacheConfig::default();
    config.max_bytes = 1 << 20;
    around(&CacheLayer::new(config))
}

pub(crate) fn retry() -> Subject {
    around(&RetryLayer::default())
}

pub(crate) fn hedge_off() -> Subject {
    around(&HedgeLayer::off())
}

/// It would hedge on any server: nobody names one here.
pub(crate) fn hedge() -> Subject {
    let config = HedgeConfig::default().with_unnamed_servers(true);
    around(&HedgeLayer::new(config).unwrap())
}

/// One rate for all calls, which is never reached.
pub(crate) fn rate() -> Subject {
    let config = RateLimitConfig::default().with_in_all(Some(RATE * 60.0));
    around(&RateLimitLayer::new(config).unwrap())
}

pub(crate) fn attempt_span() -> Subject {
    around(&AttemptSpanLayer::new())
}

pub(crate) fn router(servers: usize) -> Subject {
    let pool = Arc::new(Pool::new());
    let members = (0..servers).map(|number| Member::new(server(number), AtOnce));
    // the replica set of the tools that `testkit` makes
    pool.set_members(ReplicaSetId::new("test").unwrap(), members.collect());
    Subject::service(Router::new(pool))
}

pub(crate) fn breaker() -> Subject {
    around(&BreakerLayer::new(BreakerSet::default(), server(0)))
}

/// With the time of each call taken, and the share of slow ones in a window.
pub(crate) fn breaker_timed() -> Subject {
    let config = BreakerConfig::default().with_slow_calls(SLOW, 90);
    let set = BreakerSet::new(config).unwrap();
    around(&BreakerLayer::new(set, server(0)))
}

pub(crate) fn concurrency() -> Subject {
    around(&ConcurrencyLimitLayer::default())
}

pub(crate) fn timeout() -> Subject {
    around(&AttemptTimeoutLayer::new())
}

/// Nothing fails, as is usual.
pub(crate) fn loop_guard() -> Subject {
    around(&LoopGuardLayer::default())
}

/// With places of each tool before those of the server.
pub(crate) fn concurrency_of_tools() -> Subject {
    around(&ConcurrencyLimitLayer::default().with_per_tool(64))
}

fn circuit() -> Arc<Circuit> {
    Arc::new(Circuit::new("orders", BreakerConfig::default()).unwrap())
}

/// What a closed breaker does for one call, and nothing else.
pub(crate) fn breaker_check() -> Subject {
    let circuit = circuit();
    Subject::bare(move || {
        if let Ok(permit) = black_box(&circuit).admit() {
            permit.succeed();
        }
    })
}

/// The same for a call that outlives whoever holds the breaker: one count of references more.
pub(crate) fn breaker_check_owned() -> Subject {
    let circuit = circuit();
    Subject::bare(move || {
        if let Ok(permit) = black_box(&circuit).clone().admit() {
            permit.succeed();
        }
    })
}

/// The same, with the breaker looked up among a thousand.
pub(crate) fn breaker_found() -> Subject {
    let set = BreakerSet::default();
    let tool: ToolName = "get_order".parse().unwrap();
    for number in 0..1000 {
        drop(set.circuit(&server(number), &tool));
    }
    let server = server(500);
    Subject::bare(move || {
        if let Ok(permit) = set.circuit(black_box(&server), black_box(&tool)).admit() {
            permit.succeed();
        }
    })
}
