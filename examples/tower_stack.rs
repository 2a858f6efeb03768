//! The layers without the stack: cache, retry and breaker around a service of one's own, in a plain
//! `ServiceBuilder`. `cargo run --example tower_stack`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use callward::breaker::{BreakerConfig, BreakerLayer, BreakerSet};
use callward::cache::{CacheConfig, CacheLayer};
use callward::core::{Resolved, Source};
use callward::retry::{RetryConfig, RetryLayer};
use callward::{
    Annotations, CallPlan, Delivery, ErrorKind, Profile, Tool, ToolCall, ToolDefinition, ToolError,
    ToolOutput,
};
use serde_json::json;
use tower::{Service, ServiceBuilder, ServiceExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // a tool, and the plan its hints lead to
    let definition = ToolDefinition::from_json(json!({"name": "get_rate"}).to_string())?;
    let mut hints = Annotations::default();
    hints.read_only_hint = Some(true);
    let resolved = Resolved::from_single(hints, Source::Operator);
    let plan = CallPlan::derive(&resolved, &Profile::standard());
    let tool = Arc::new(Tool::new("bank".parse()?, definition, resolved, plan));

    // a server whose first answer fails
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let flaky = tower::service_fn(move |_: ToolCall| {
        let run = counted.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            if run == 1 {
                let text = "temporarily out of order";
                Err(ToolError::new(
                    ErrorKind::ServerFault,
                    Delivery::Answered,
                    text,
                ))
            } else {
                Ok(ToolOutput::text(format!("answer of run {run}")))
            }
        }
    });

    let cache = CacheLayer::new(CacheConfig::default());
    let stats = cache.handle();
    let breakers = BreakerSet::new(BreakerConfig::default())?;
    let mut service = ServiceBuilder::new()
        .layer(cache)
        .layer(RetryLayer::new(RetryConfig::default())?)
        .layer(BreakerLayer::new(breakers.clone(), "rates".parse()?))
        .service(flaky);
    for _ in 0..3 {
        let call = ToolCall::new(tool.clone(), r#"{"currency":"EUR"}"#);
        println!("{}", service.ready().await?.call(call).await?.to_text());
    }
    println!(
        "{} runs, {} hits",
        runs.load(Ordering::Relaxed),
        stats.stats().hits
    );
    for breaker in breakers.snapshot() {
        println!("breaker of {}: {}", breaker.server, breaker.state.as_str());
    }
    Ok(())
}
