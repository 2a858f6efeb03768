//! A call that falls under no limit of rate costs no allocation, nor does one that finds its cell or
//! a free place.

use std::future::{Future, Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use callward_limit::{ConcurrencyLimitLayer, RateLimitConfig, RateLimitLayer};
use callward_testkit::{call, tool};
use serde_json::json;
use tower::{Layer, Service};

/// Answers at once, with no allocation of its own.
#[derive(Debug, Clone)]
struct Answers(ToolOutput);

impl Service<ToolCall> for Answers {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        ready(Ok(self.0.clone()))
    }
}

fn allocations(mut service: impl ToolService, request: &ToolCall) -> u64 {
    let mut once = || {
        let request = request.clone();
        let mut cx = Context::from_waker(Waker::noop());
        let answered = pin!(service.call(request)).poll(&mut cx);
        assert!(matches!(answered, Poll::Ready(Ok(_))));
    };
    // what is made once per tool or principal is made now
    once();
    allocation_counter::measure(once).count_total
}

#[tokio::test(start_paused = true)]
async fn what_need_not_wait_allocates_nothing() {
    let answers = Answers(ToolOutput::text("x"));
    let plain = call(&tool("plain").build(), json!({}));
    let limited = tool("limited").hint(|hints| hints.rate_limit_hint = Some(600.0));
    let limited = call(&limited.build(), json!({}));

    let rate = RateLimitLayer::new(RateLimitConfig::default()).unwrap();
    assert_eq!(allocations(rate.layer(answers.clone()), &plain), 0);
    assert_eq!(allocations(rate.layer(answers.clone()), &limited), 0);

    let config = RateLimitConfig::for_server(6000.0).with_per_principal(Some(600.0));
    let rate = RateLimitLayer::new(config).unwrap();
    assert_eq!(allocations(rate.layer(answers.clone()), &plain), 0);

    let places = ConcurrencyLimitLayer::new(4);
    assert_eq!(allocations(places.layer(answers.clone()), &plain), 0);
    let places = places.with_per_tool(2);
    assert_eq!(allocations(places.layer(answers), &plain), 0);
}
