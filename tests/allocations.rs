//! A call through the whole stack allocates little: bounds that a mistake would exceed.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use callward::{Annotations, Stack, StackFuture, ToolCall, ToolOutput, ToolSpec, Tools};
use callward_testkit::at_once;
use futures_util::FutureExt;

const ARGUMENTS: &str = r#"{"id":123456,"query":"everything that was ordered and never sent"}"#;

async fn stack() -> Stack {
    let reads = Annotations::default().with_read_only(true);
    let writes = Annotations::default().with_read_only(false);
    let answer = ToolOutput::text("x".repeat(200)).compact();
    let mut tools = Tools::new("orders").unwrap();
    for (name, hints) in [("get_order", reads), ("add_order", writes)] {
        let spec = ToolSpec::new(name).annotations(hints);
        tools = tools.service(spec, at_once(answer.clone())).unwrap();
    }
    Stack::builder().server(tools).build().await.unwrap()
}

/// Counts what a call allocates that was prepared before.
fn allocated(stack: &Stack, call: ToolCall) -> u64 {
    allocation_counter::measure(|| {
        let answer = stack.run(call).now_or_never();
        answer.expect("the answer must be there at once").unwrap();
    })
    .count_total
}

#[tokio::test(start_paused = true)]
async fn a_hit_allocates_at_most_four_times() {
    let stack = stack().await;
    let read = stack.prepare("orders.get_order", ARGUMENTS).unwrap();
    let sent = allocated(&stack, read.clone());
    assert!(sent > allocated(&stack, read.clone()), "the first is sent");
    for hit in 0..100 {
        let count = allocated(&stack, read.clone());
        assert!(count <= 4, "hit {hit}: {count}");
    }
    assert_eq!(stack.cache().stats().hits, 101);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_sent_allocates_at_most_twelve_times() {
    let stack = stack().await;
    let write = || stack.prepare("orders.add_order", ARGUMENTS).unwrap();
    allocated(&stack, write());
    for _ in 0..100 {
        let count = allocated(&stack, write());
        assert!(count <= 12, "{count}");
    }
}

/// A future is moved wherever its call is passed on, and a hit pays for all of its bytes.
#[test]
fn the_future_of_a_call_is_small() {
    let size = size_of::<StackFuture>();
    assert!(size <= 80, "{size} bytes");
}
