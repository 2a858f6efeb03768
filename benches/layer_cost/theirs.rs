//! The same layers of `tower-resilience`, set as nearly the same as they allow.

use std::time::Duration;

use tollgate::{ToolCall, ToolError, ToolOutput};
use tower::Layer;
use tower_resilience_bulkhead::BulkheadLayer;
use tower_resilience_cache::SharedCacheLayer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_resilience_retry::{RetryBudgetBuilder, RetryLayer};
use tower_resilience_timelimiter::TimeLimiterLayer;

use crate::calls::AtOnce;
use crate::measure::Subject;
use crate::rows::key;

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
        .failure_classifier(|result: &Result<ToolOutput, ToolError>| match result {
            Ok(_) => false,
            Err(error) => error.kind().blames_server(),
        })
        .build()
        .unwrap();
    Subject::service(layer.layer(AtOnce))
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
