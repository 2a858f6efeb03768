//! The layers of the stack, put around a server one at a time, each as the stack has it.

use std::sync::Arc;

use callward::breaker::{BreakerLayer, BreakerSet};
use callward::cache::CacheLayer;
use callward::limit::{
    AttemptTimeoutLayer, ConcurrencyLimitLayer, RateLimitConfig, RateLimitLayer,
};
use callward::loopguard::LoopGuardLayer;
use callward::retry::RetryLayer;
use callward::retry::hedge::HedgeLayer;
use callward::router::{Member, Pool, Router};
use callward::telemetry::{AttemptSpanLayer, CallSpanLayer};
use callward::{ToolCall, ToolServer, ToolService};
use tower::{Layer, ServiceExt, service_fn};

use crate::calls::{calls, server};
use crate::measure::{Once, Subject, prepared};
use crate::rows::{DISTINCT, Part, Row};

/// One server, called, as it stands innermost in the stack.
pub(crate) fn leaf() -> impl ToolService {
    let server = Arc::new(server(10));
    service_fn(move |call| server.call(call))
}

/// Returns a row for each layer, innermost first, with calls made like `call`.
pub(crate) fn passed(call: &ToolCall) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name, subject| rows.push(Row::new(name, Part::Passed, subject));
    let id = callward::ServerId::new("bench").unwrap();
    let breakers = BreakerSet::default();

    let leaf = leaf();
    add("the service behind its one box", around(&leaf, call));
    let timed = AttemptTimeoutLayer::new().layer(leaf);
    add("attempt timeout", around(&timed, call));
    let limited = ConcurrencyLimitLayer::default().layer(timed);
    add("concurrency limit", around(&limited, call));
    let rate = RateLimitConfig::default();
    let mut of_server = rate;
    of_server.tools = false;
    let rated = RateLimitLayer::new(of_server).unwrap().layer(limited);
    add("rate limit of the server", around(&rated, call));
    let of_tool = BreakerLayer::new(breakers.clone(), id.clone()).layer(rated);
    add("breaker of the tool", around(&of_tool, call));
    let of_server = BreakerLayer::of_server(breakers, id.clone()).layer(of_tool);
    add("breaker of the server", around(&of_server, call));
    let pool = Arc::new(Pool::new());
    pool.set_members(id.clone().into(), vec![Member::new(id, of_server)]);
    let routed = Router::new(pool);
    add("router", around(&routed, call));
    let spanned = AttemptSpanLayer::default().layer(routed);
    add("attempt span", around(&spanned, call));
    let rated = RateLimitLayer::new(rate).unwrap().layer(spanned);
    add("rate limit of tools and principals", around(&rated, call));
    let hedged = HedgeLayer::off().layer(rated);
    add("hedge, off", around(&hedged, call));
    let retried = RetryLayer::default().layer(hedged);
    add("retry", around(&retried, call));
    let guarded = LoopGuardLayer::default().layer(retried);
    add("loop guard", around(&guarded, call));
    let cached = CacheLayer::default().layer(guarded);
    add("cache, a write passes", around(&cached, call));
    let spanned = CallSpanLayer::default().layer(cached);
    add("call span", around(&spanned, call));
    rows
}

/// Returns a row for each layer that a hit passes, innermost first.
pub(crate) fn hit(call: &ToolCall) -> Vec<Row> {
    let cached = CacheLayer::default().layer(leaf());
    let spanned = CallSpanLayer::default().layer(cached.clone());
    vec![
        Row::new("cache layer alone", Part::Hit, around(&cached, call)),
        Row::new("call span around it", Part::Hit, around(&spanned, call)),
    ]
}

fn around(service: &impl ToolService, call: &ToolCall) -> Subject {
    Subject::new(DISTINCT, once(service, call))
}

/// Returns what makes a function that calls a service again and again.
pub(crate) fn once<S: ToolService>(service: &S, call: &ToolCall) -> impl Fn() -> Once + use<S> {
    let service = service.clone();
    let calls = calls(call.tool(), DISTINCT);
    move || {
        let mut service = service.clone();
        let calls = calls.clone();
        prepared(
            move |number| calls[number].clone(),
            move |call| {
                // a service that is always ready, as all of these are, needs no clone
                let answer = service.ready();
                let answer = futures_util::FutureExt::now_or_never(answer);
                answer
                    .expect("always ready")
                    .expect("never fails")
                    .call(call)
            },
        )
    }
}
