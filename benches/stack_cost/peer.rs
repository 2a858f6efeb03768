//! The same with layers of `tower-resilience`, set as nearly the same as they allow.

use std::sync::Arc;
use std::time::Duration;

use callward::{ToolCall, ToolError, ToolOutput, ToolServer};
use siphasher::sip128::{Hasher128, SipHasher13};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_resilience_cache::SharedCacheLayer;
use tower_resilience_circuitbreaker::{CircuitBreakerError, CircuitBreakerLayer, FnClassifier};
use tower_resilience_ratelimiter::{RateLimiterLayer, RateLimiterServiceError};
use tower_resilience_retry::RetryLayer;

use crate::calls::{calls, server};
use crate::measure::{Subject, prepared};
use crate::rows::DISTINCT;

/// A keyed hash of some bytes: what a key costs at least.
pub(crate) fn sip(bytes: &[u8]) -> u128 {
    use std::hash::Hasher;

    let mut hasher = SipHasher13::new_with_keys(1, 2);
    hasher.write(bytes);
    hasher.finish128().into()
}

/// The guards without a cache: retry, rate limit, breaker.
pub(crate) fn passed(call: &ToolCall) -> Subject {
    let server = Arc::new(server(10));
    let service = ServiceBuilder::new()
        .layer(retry())
        .layer(rate())
        .layer(breaker())
        .service(service_fn(move |call| server.call(call)));
    subject(service, call)
}

/// The same behind a cache, whose key is a keyed hash of the arguments and nothing else.
pub(crate) fn hit(call: &ToolCall) -> Subject {
    let server = Arc::new(server(10));
    let cache = SharedCacheLayer::builder()
        .max_size(2 * DISTINCT)
        .ttl(Duration::from_secs(300))
        .key_extractor(|call: &ToolCall| sip(call.arguments()))
        .build()
        .unwrap();
    let service = ServiceBuilder::new()
        .layer(cache)
        .layer(retry())
        .layer(rate())
        .layer(breaker())
        .service(service_fn(move |call| server.call(call)));
    subject(service, call)
}

/// What comes out of the layers inside of the retry.
type Refused = RateLimiterServiceError<CircuitBreakerError<ToolError>>;

fn retry() -> RetryLayer<ToolCall, ToolOutput, Refused> {
    RetryLayer::<ToolCall, ToolOutput, Refused>::builder()
        .max_attempts(3)
        .exponential_backoff(Duration::from_millis(100))
        .build()
}

fn rate() -> RateLimiterLayer {
    // a rate that is never reached
    RateLimiterLayer::builder()
        .limit_for_period(100_000_000)
        .refresh_period(Duration::from_secs(1))
        .build()
        .unwrap()
}

fn breaker() -> CircuitBreakerLayer<Failed> {
    CircuitBreakerLayer::builder()
        .consecutive_failures(3)
        .failure_classifier(failed as fn(&_) -> _)
        .build()
        .unwrap()
}

type Failed = FnClassifier<fn(&Result<ToolOutput, ToolError>) -> bool>;

fn failed(result: &Result<ToolOutput, ToolError>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.kind.blames_server())
}

fn subject<S>(service: S, call: &ToolCall) -> Subject
where
    S: Service<ToolCall, Response = ToolOutput> + Clone + Send + 'static,
    S::Error: std::fmt::Debug,
{
    let calls = calls(call.tool(), DISTINCT);
    Subject::new(DISTINCT, move || {
        let (service, calls) = (service.clone(), calls.clone());
        prepared(
            move |number| calls[number].clone(),
            // a clone for each call, as the whole stack makes
            move |call| service.clone().oneshot(call),
        )
    })
}
