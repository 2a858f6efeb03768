//! The layers without the stack: cache, retry and breaker around a service, in a plain
//! `ServiceBuilder`. `cargo run --example tower_stack`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use callward::breaker::{BreakerLayer, BreakerSet};
use callward::cache::{CacheConfig, CacheLayer};
use callward::retry::{RetryConfig, RetryLayer};
use callward::{Delivery, ErrorKind, Tool, ToolCall, ToolError, ToolOutput};
use tower::{Service, ServiceBuilder, ServiceExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let flaky = tower::service_fn(move |_: ToolCall| {
        let run = counted.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            let (kind, delivery) = (ErrorKind::ServerFault, Delivery::Answered);
            match run {
                1 => Err(ToolError::new(kind, delivery, "temporarily out of order")),
                _ => Ok(ToolOutput::text(format!("answer of run {run}"))),
            }
        }
    });
    let cache = CacheLayer::new(CacheConfig::default());
    let stats = cache.handle();
    let breakers = BreakerSet::default();
    let mut service = ServiceBuilder::new()
        .layer(cache)
        .layer(RetryLayer::new(RetryConfig::default())?)
        .layer(BreakerLayer::new(breakers.clone(), "rates".parse()?))
        .service(flaky);
    for _ in 0..3 {
        let call = ToolCall::new(Tool::read_only("get_rate")?, r#"{"currency":"EUR"}"#);
        println!("{}", service.ready().await?.call(call).await?.to_text());
    }
    let (runs, hits) = (runs.load(Ordering::Relaxed), stats.stats().hits);
    let breaker = breakers.snapshot()[0].state.as_str();
    println!("{runs} runs, {hits} hits, breaker {breaker}");
    Ok(())
}
