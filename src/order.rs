//! The order of the layers. This file is the only place that knows it.

use tollgate_breaker::{Breaker, BreakerLayer};
use tollgate_cache::{Cache, CacheLayer};
use tollgate_limit::{
    AttemptTimeout, ConcurrencyHandle, ConcurrencyLimit, RateLimit, RateLimitLayer,
};
use tollgate_retry::{Retry, RetryLayer};
use tollgate_router::Router;
use tollgate_telemetry::{AttemptSpan, AttemptSpanLayer, CallSpan, CallSpanLayer};
use tower::ServiceBuilder;

use crate::leaf::Leaf;
use crate::limits::ServerLayers;

/// What stands around one server, outside to inside:
///
/// 1. **breaker**: a sick tool is not asked at all, and takes no place in the queue;
/// 2. **rate limit** of the server: who waits for its turn holds no place;
/// 3. **concurrency limit**: waiting for a place counts against no timeout;
/// 4. **attempt timeout**: covers the server's own time and nothing else;
/// 5. **leaf**: the server.
pub(crate) type Guarded = Breaker<RateLimit<ConcurrencyLimit<AttemptTimeout<Leaf>>>>;

/// What a call passes, outside to inside:
///
/// 1. **call span**: sees the caller's latency and the final verdict;
/// 2. **cache**: a hit costs neither budget nor server; sees writes pass, so it can invalidate;
/// 3. **retry**: above routing, so that a repeat may go to another server; one deadline for all
///    attempts;
/// 4. **rate limit** of tools and principals: each attempt counts;
/// 5. **attempt span**: one per try;
/// 6. **router**: always ready; picks among candidates; awaits their readiness inside the call.
pub(crate) type Layers = CallSpan<Cache<Retry<RateLimit<AttemptSpan<Router<Guarded>>>>>>;

/// Puts the layers around the router.
pub(crate) fn assemble(
    call_span: CallSpanLayer,
    cache: CacheLayer,
    retry: RetryLayer,
    rate: RateLimitLayer,
    router: Router<Guarded>,
) -> Layers {
    ServiceBuilder::new()
        .layer(call_span)
        .layer(cache)
        .layer(retry)
        .layer(rate)
        .layer(AttemptSpanLayer::new())
        .service(router)
}

/// Puts the guards around one server; tells where its places can be looked at.
pub(crate) fn guard(
    breaker: BreakerLayer,
    limits: ServerLayers,
    leaf: Leaf,
) -> (Guarded, ConcurrencyHandle) {
    let limited = ServiceBuilder::new()
        .layer(limits.concurrency)
        .layer(limits.timeout)
        .service(leaf);
    let places = limited.handle();
    let guarded = ServiceBuilder::new()
        .layer(breaker)
        .layer(limits.rate)
        .service(limited);
    (guarded, places)
}
