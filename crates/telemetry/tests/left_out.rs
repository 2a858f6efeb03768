//! What a call costs that is left out of the trace: nothing that has to be given back. In a process of
//! its own, so that nothing else allocates meanwhile.

use std::sync::Arc;
use std::task::{Context, Waker};

use callward_core::{ToolCall, ToolError, ToolOutput, TraceContext};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, Sampling};
use callward_testkit::{AtOnce, call, tool};
use serde_json::json;
use tower::{Layer, Service};

/// Sends a call that nobody else holds, and counts what is allocated on its way.
fn allocations<S>(service: &mut S, call: ToolCall) -> u64
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
{
    let mut cx = Context::from_waker(Waker::noop());
    let counted = allocation_counter::measure(|| {
        let mut answer = std::pin::pin!(service.call(call));
        assert!(Future::poll(answer.as_mut(), &mut cx).is_ready());
    });
    counted.count_total
}

#[test]
fn a_call_that_is_left_out_allocates_nothing() {
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
    let answers = AtOnce::new(ToolOutput::text("ok"));
    let mut bare = answers.clone();
    let layer = |sampling| {
        let calls = CallSpanLayer::new().with_sampling(sampling);
        calls.layer(AttemptSpanLayer::new().layer(answers.clone()))
    };
    let tool = tool("x").build();
    let root = || call(&tool, json!({}));
    let traced = || {
        let unrecorded = TraceContext::new(7, 7, false).map(Arc::new);
        root().with_trace(unrecorded.unwrap())
    };
    for call in [&root as &dyn Fn() -> ToolCall, &traced] {
        // both ways once before, for what is made once in a thread
        allocations(&mut layer(Sampling::never()), call());
        let floor = allocations(&mut bare, call());
        assert_eq!(allocations(&mut layer(Sampling::never()), call()), floor);
    }
    // the check is one that can fail
    assert!(allocations(&mut layer(Sampling::always()), root()) > allocations(&mut bare, root()));
}
