//! The order of the layers. This file is the only place that knows it.

use tollgate_breaker::{Breaker, BreakerLayer};
use tollgate_cache::{Cache, CacheLayer};
use tollgate_limit::{
    AttemptTimeout, AttemptTimeoutLayer, ConcurrencyLimit, ConcurrencyLimitLayer,
};
use tollgate_loopguard::{LoopGuard, LoopGuardLayer};
use tollgate_retry::hedge::{Hedge, HedgeLayer};
use tollgate_retry::{Retry, RetryLayer};
use tollgate_router::Router;
use tollgate_telemetry::{AttemptSpan, AttemptSpanLayer, CallSpan, CallSpanLayer};
use tower::ServiceBuilder;

use crate::leaf::Leaf;

/// What stands around one server, outside to inside:
///
/// 1. **breaker of the server**: one that cannot be reached is asked for none of its tools;
/// 2. **breaker of the tool**: a sick tool is not asked at all, and takes no place in the queue; what
///    it refuses tells the server's breaker nothing;
/// 3. **concurrency limit**: waiting for a place counts against no timeout;
/// 4. **attempt timeout**: covers the server's own time and nothing else;
/// 5. **leaf**: the server.
pub(crate) type Guarded = Breaker<Breaker<ConcurrencyLimit<AttemptTimeout<Leaf>>>>;

/// What a call passes, outside to inside:
///
/// 1. **call span**: sees the caller's latency and the final verdict;
/// 2. **cache**: a hit costs neither budget nor server; sees writes pass, so it can invalidate;
/// 3. **loop guard**: what is cached has not failed; counts what failed after all attempts;
/// 4. **retry**: above routing, so that a repeat may go to another server; one deadline for all
///    attempts;
/// 5. **hedge**: at most one second attempt beside each, from the same budget as repeats;
/// 6. **attempt span**: one per try;
/// 7. **router**: always ready; picks among candidates; awaits their readiness inside the call.
pub(crate) type Layers = CallSpan<Cache<LoopGuard<Retry<Hedge<AttemptSpan<Router<Guarded>>>>>>>;

/// Puts the layers around the router.
pub(crate) fn assemble(
    call_span: CallSpanLayer,
    cache: CacheLayer,
    loop_guard: LoopGuardLayer,
    retry: RetryLayer,
    hedge: HedgeLayer,
    router: Router<Guarded>,
) -> Layers {
    ServiceBuilder::new()
        .layer(call_span)
        .layer(cache)
        .layer(loop_guard)
        .layer(retry)
        .layer(hedge)
        .layer(AttemptSpanLayer::new())
        .service(router)
}

/// Puts the guards around one server.
pub(crate) fn guard(
    of_server: BreakerLayer,
    of_tool: BreakerLayer,
    limit: ConcurrencyLimitLayer,
    leaf: Leaf,
) -> Guarded {
    ServiceBuilder::new()
        .layer(of_server)
        .layer(of_tool)
        .layer(limit)
        .layer(AttemptTimeoutLayer::new())
        .service(leaf)
}
