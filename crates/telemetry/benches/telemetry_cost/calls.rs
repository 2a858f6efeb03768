//! Calls of a service that answers at once, and what stands around it.

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use callward_core::{Tool, ToolCall, ToolError, ToolOutput, ToolService};
use callward_testkit::{AtOnce, tool};
use tower::Service;

/// What is measured with telemetry around it, and without.
pub(crate) fn leaf() -> Apart<AtOnce> {
    Apart(AtOnce::new(ToolOutput::text("ok")))
}

/// Returns a function that calls a service this many times.
pub(crate) fn of<S>(mut service: S) -> impl FnMut(u32)
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
{
    let tool = tool("read").read_only().build();
    move |calls| {
        for _ in 0..calls {
            let mut cx = Context::from_waker(Waker::noop());
            let answer = pin!(service.call(call(&tool))).poll(&mut cx);
            let _ = black_box(answer.map(|result| result.is_ok_and(|o| !o.is_error())));
        }
    }
}

/// A service and its future that the compiler leaves functions of their own, as it does with real
/// ones. One that answers at once would melt into the loop that measures it, and whatever stands
/// around it would be charged with a call and its moves that every real service has.
#[derive(Clone)]
pub(crate) struct Apart<S>(S);

impl<S> Service<ToolCall> for Apart<S>
where
    S: ToolService<Future: Unpin>,
{
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Apart<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.0.poll_ready(cx)
    }

    #[inline(never)]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        Apart(self.0.call(call))
    }
}

impl<F: Future + Unpin> Future for Apart<F> {
    type Output = F::Output;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// Makes a call that is not shared, as callers do: what a layer sets is then written in place.
fn call(tool: &Arc<Tool>) -> ToolCall {
    ToolCall::new(tool.clone(), &br#"{"id":1}"#[..])
}
