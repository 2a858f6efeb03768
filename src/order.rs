//! The order of the layers. This file is the only place that knows it.

#[cfg(feature = "approval")]
pub(crate) use callward_approval::{Approval, ApprovalLayer};
#[cfg(feature = "audit")]
pub(crate) use callward_audit::{Audit, AuditLayer};
#[cfg(feature = "auth")]
pub(crate) use callward_auth::{Authorize, AuthorizeLayer};
use callward_breaker::{Breaker, BreakerLayer};
use callward_cache::{Cache, CacheLayer};
use callward_core::ToolCall;
#[cfg(feature = "guardrail")]
pub(crate) use callward_guardrail::{
    ArgumentGuard, ArgumentGuardLayer, ResultGuard, ResultGuardLayer,
};
use callward_limit::{
    AttemptTimeout, AttemptTimeoutLayer, ConcurrencyHandle, ConcurrencyLimit,
    ConcurrencyLimitLayer, PrincipalLimit, PrincipalLimitLayer, RateLimit, RateLimitLayer,
};
use callward_loopguard::{LoopGuard, LoopGuardLayer};
use callward_retry::hedge::{Hedge, HedgeLayer};
use callward_retry::{Retry, RetryLayer};
use callward_router::Router;
#[cfg(feature = "telemetry")]
pub(crate) use callward_telemetry::{
    AttemptSpan, AttemptSpanLayer, CallSpan, CallSpanLayer, DiscoverySpan,
};
use tower::{Service, ServiceBuilder};

#[cfg(not(feature = "approval"))]
pub(crate) use crate::absent::approval::{Approval, ApprovalLayer};
#[cfg(not(feature = "audit"))]
pub(crate) use crate::absent::audit::{Audit, AuditLayer};
#[cfg(not(feature = "auth"))]
pub(crate) use crate::absent::auth::{Authorize, AuthorizeLayer};
#[cfg(not(feature = "guardrail"))]
pub(crate) use crate::absent::guardrail::{
    ArgumentGuard, ArgumentGuardLayer, ResultGuard, ResultGuardLayer,
};
#[cfg(not(feature = "telemetry"))]
pub(crate) use crate::absent::telemetry::{
    AttemptSpan, AttemptSpanLayer, CallSpan, CallSpanLayer, DiscoverySpan,
};
use crate::leaf::Leaf;
use crate::measured::{Measure, MeasureLayer};

/// The layers around one server, from outside to inside:
///
/// 1. **breaker of the server**: one that cannot be reached gets no calls;
/// 2. **breaker of the tool**: a failing tool gets no calls, and takes no place in the queue; its
///    refusals do not count at the server's breaker;
/// 3. **rate limit** of the server: a call that waits for its turn holds no permit;
/// 4. **concurrency limit**: waiting for a permit counts against no timeout;
/// 5. **counts** of the server: a timeout is a failure, waiting for a permit is not its time;
/// 6. **attempt timeout**: covers the server's own time and nothing else;
/// 7. **leaf**: the server.
pub(crate) type Guarded =
    Breaker<Breaker<RateLimit<ConcurrencyLimit<Measure<AttemptTimeout<Leaf>>>>>>;

/// The layers that a call passes, from outside to inside:
///
/// 1. **call span**: sees the caller's latency and the final verdict;
/// 2. **audit**: cached and refused calls leave a record too; waiting for the log is part of the
///    caller's latency;
/// 3. **limits of the principal**: outside the cache and authorization, as cached answers and
///    denied calls count; what is refused costs nothing further in;
/// 4. **authorization**: outside the cache, so that no answer of one caller is given to another
///    that may not call the tool;
/// 5. **argument guard**: outside approval, as a person is not asked about what is refused anyway,
///    and sees the arguments that run;
/// 6. **loop guard**: outside approval, as it counts denied calls that are sent again; outside
///    retry, as it counts calls that failed after all attempts;
/// 7. **approval**: outside the cache, whose flights would wait for a person; once per call, and
///    before any deadline, permit or breaker;
/// 8. **cache**: a hit costs neither budget nor server; sees writes pass, so it can invalidate;
/// 9. **counts** of tools: inside the cache, which counts what it answers, so that a hit pays for
///    no clock;
/// 10. **result guard**: inside the cache, which keeps only what passed; inside approval, so that
///     it counts calls that run; outside retry, so that it counts no attempts;
/// 11. **retry**: outside routing, so that a retry may go to another server; one deadline for all
///     attempts;
/// 12. **hedge**: at most one second attempt beside each, from the retry budget;
/// 13. **rate limit** of tools: each attempt counts;
/// 14. **attempt span**: one per try;
/// 15. **router**: always ready; picks among candidates; awaits their readiness inside the call.
pub(crate) type Layers =
    CallSpan<Audit<PrincipalLimit<Authorize<ArgumentGuard<LoopGuard<Approval<Cache<Inside>>>>>>>>;

/// The layers inside the cache.
type Inside = Measure<ResultGuard<Retry<Hedge<RateLimit<AttemptSpan<Router<Guarded>>>>>>>;

/// The future of all layers.
pub(crate) type Answer = <Layers as Service<ToolCall>>::Future;

/// Calls a clone of the layers, which are shared. The outermost eight are always ready.
pub(crate) fn call(layers: &Layers, call: ToolCall) -> Answer {
    layers.clone().call(call)
}

/// Puts the layers around the router.
#[expect(
    clippy::too_many_arguments,
    reason = "one layer each, in their order, and each of its own type"
)]
pub(crate) fn assemble(
    call_span: CallSpanLayer,
    audit: AuditLayer,
    principal: PrincipalLimitLayer,
    authorize: AuthorizeLayer,
    argument_guard: ArgumentGuardLayer,
    loop_guard: LoopGuardLayer,
    approval: ApprovalLayer,
    cache: CacheLayer,
    result_guard: ResultGuardLayer,
    retry: RetryLayer,
    hedge: HedgeLayer,
    rate: RateLimitLayer,
    router: Router<Guarded>,
) -> Layers {
    ServiceBuilder::new()
        .layer(call_span)
        .layer(audit)
        .layer(principal)
        .layer(authorize)
        .layer(argument_guard)
        .layer(loop_guard)
        .layer(approval)
        .layer(cache)
        .layer(MeasureLayer::default())
        .layer(result_guard)
        .layer(retry)
        .layer(hedge)
        .layer(rate)
        .layer(AttemptSpanLayer::default())
        .service(router)
}

/// Puts the guards around one server; returns the handle that reads its concurrency limit.
pub(crate) fn guard(
    of_server: BreakerLayer,
    of_tool: BreakerLayer,
    rate: RateLimitLayer,
    concurrency: ConcurrencyLimitLayer,
    measure: MeasureLayer,
    timeout: AttemptTimeoutLayer,
    leaf: Leaf,
) -> (Guarded, ConcurrencyHandle) {
    let limited = ServiceBuilder::new()
        .layer(concurrency)
        .layer(measure)
        .layer(timeout)
        .service(leaf);
    let places = limited.handle();
    let guarded = ServiceBuilder::new()
        .layer(of_server)
        .layer(of_tool)
        .layer(rate)
        .service(limited);
    (guarded, places)
}
