//! The same layers of `tower-resilience`, set as nearly the same as they allow.

use std::time::Duration;

use callward::{ToolCall, ToolError, ToolOutput};
use tower::Layer;
use tower_resilience_bulkhead::BulkheadLayer;
use tower_resilience_cache::SharedCacheLayer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_resilience_hedge::HedgeLayer;
use tower_resilience_ratelimiter::RateLimiterLayer;
use tower_resilience_retry::{RetryBudgetBuilder, RetryLayer};
use tower_resilience_timelimiter::TimeLimiterLayer;

use crate::calls::AtOnce;
use crate::measure::Subject;
use crate::rows::{RATE, SLOW, key};

/// Kept for as long as ours keeps reads, and with the key that costs least: the arguments.
pub(crate) fn cache_hit() -> Subject {
    cache(10_000)
}

/// With room for some of the results, as ours.
pub(crate) fn cache_miss() -> Subject {
    cache(1_000)
}

fn cache(room: usize) -> Subject {
    let layer = SharedCacheLayer::builder()
        .max_size(room)
        .ttl(Duration::from_secs(300))
        .key_extractor(key as fn(&ToolCall) -> Vec<u8>)
        .build()
        .unwrap();
    Subject::service(layer.layer(AtOnce))
}

/// Three attempts and exponential pauses, as ours. A budget is always there in ours.
pub(crate) fn retry(with_budget: bool) -> Subject {
    let mut layer = RetryLayer::<ToolCall, ToolOutput, ToolError>::builder()
        .max_attempts(3)
        .exponential_backoff(Duration::from_millis(100))
        .retry_on(|error: &ToolError| error.kind().is_transient());
    if with_budget {
        layer = layer.budget(RetryBudgetBuilder::new().aimd().build().unwrap());
    }
    Subject::service(layer.build().layer(AtOnce))
}

/// Opens after three failures in a row, as ours; one breaker, where ours has one for each tool.
pub(crate) fn breaker() -> Subject {
    let layer = CircuitBreakerLayer::builder()
        .consecutive_failures(3)
        .failure_classifier(failed)
        .build()
        .unwrap();
    Subject::service(layer.layer(AtOnce))
}

/// Counts slow calls in a window of a hundred, with the same limit and share as ours.
pub(crate) fn breaker_timed() -> Subject {
    let layer = CircuitBreakerLayer::builder()
        .sliding_window_size(100)
        .slow_call_duration_threshold(SLOW)
        .slow_call_rate_threshold(0.9)
        .failure_classifier(failed)
        .build()
        .unwrap();
    Subject::service(layer.layer(AtOnce))
}

fn failed(result: &Result<ToolOutput, ToolError>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.kind().blames_server())
}

/// Waits a second before a second attempt, which ours would find out by itself.
pub(crate) fn hedge() -> Subject {
    let layer = HedgeLayer::builder().delay(Duration::from_secs(1)).build();
    Subject::service(layer.layer(AtOnce))
}

/// A rate that is never reached, as ours.
pub(crate) fn rate() -> Subject {
    let layer = RateLimiterLayer::builder()
        .limit_for_period(RATE as usize)
        .refresh_period(Duration::from_secs(1))
        .build();
    Subject::service(layer.unwrap().layer(AtOnce))
}

/// As many calls at once as ours, the others wait, as in ours.
pub(crate) fn concurrency() -> Subject {
    let layer = BulkheadLayer::builder().max_concurrent_calls(64).build();
    Subject::service(layer.unwrap().layer(AtOnce))
}

/// A minute, as the plan of the tool says in ours.
pub(crate) fn timeout() -> Subject {
    let layer = TimeLimiterLayer::builder()
        .timeout_duration(Duration::from_secs(60))
        .build();
    Subject::service(layer.layer(AtOnce))
}
