//! What a write does to the reads around it, and when its own repeat is answered from the cache.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Method, ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::{Value, json};

use crate::common::{Bench, read, write};
use crate::script::check;

#[tokio::test(start_paused = true)]
async fn each_row_about_reads_around_a_write() {
    check(
        "
        a read after a write is fresh
        | get=1 add get=3 get=3 set get=5 get=5 drop get=7 get=7
        a read that ends before an overlapping write serves no other call
        | server:gate a<get b<add open:1 a=1 open:2 b=2 get=3
        a read that ends after an overlapping write serves no other call
        | server:gate a<get b<add b! +10s open:2 a=1 get=3
        a read beside a write is not kept
        | server:gate a<add b<get open:3 a=1 b=2 get=3
        a write that did not run invalidates, and nothing waits for it
        | server:writes=unsent get=1 add=not_sent get=3 get=3
        | server:writes=refused add=refused get=5 get=5
        a lost write settles for ten seconds, and is in doubt for a minute
        | server:writes=lost add=unknown get=2 get=3 +10s-1ns get=4 +1ns get=5 get=5
        | +500ms get=6 +60s get=7 +250s get=7
        a write that failed at the server settles
        | server:writes=answered add=answered get=2 get=3 +10s-1ns get=4 +1ns get=5 get=5
        a dropped write settles
        | server:writes=hang a<add a! get=2 get=3 +10s-1ns get=4 +1ns get=5 get=5
        a panicking write settles
        | server:writes=panic a<add a=panic get=2 get=3 +10s-1ns get=4 +1ns get=5 get=5
        a write that was retried settles
        | server:writes=retried set=1 get=2 get=3 +10s-1ns get=4 +1ns get=5 get=5
        a write that was retried settles, with a record
        | server:writes=retried set~invalidated get=2 get=3 +10s-1ns get=4 +1ns get=5 get=5
        until the deadline of a lost write results are served within the burst
        | server:writes=lost add^600s=unknown +10s get=2 +500ms-1ns get=2 +1ns get=3
        | +120s get=4 +500ms-1ns get=4 +1ns get=5 +420s get=6 +500ms-1ns get=6 +1ns get=7
        | +48500ms get=8 +240s get=8
        a write that was lost settles for a second if others were quick
        | server:takes=10ms add=1 next:lost add=unknown server:takes=0s +999ms get=3 get=4
        | +1ms get=5 get=5
        a write that was lost settles for four times the p99 of its tool
        | server:takes=500ms add=1 next:lost add=unknown server:takes=0s +1999ms get=3 get=4
        | +1ms get=5 get=5
        a write that was lost settles for ten seconds at most
        | server:takes=9s add=1 next:lost add=unknown server:takes=0s +10s-1ms get=3 get=4
        | +1ms get=5 get=5
        the tool's own failure settles for a second
        | server:writes=error add=no +999ms get=2 get=3 +1ms get=4 get=4 +500ms get=5
        | +60s get=6 +60s get=6
        a write without a fingerprint runs and invalidates
        | get=1 set:{\"a\":1,\"a\":1}=2 set:{\"a\":1,\"a\":1}=3 get=4
        ",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_write_invalidates_reads_and_kept_writes_of_each_set_of_its_group() {
    // the states of the set that is read and of the set that is written
    for (read, written, meets) in [
        ("shared", "shared", true),
        ("own", "shared", false),
        ("shared", "own", false),
        ("own", "own", false),
        ("disk", "disk", true),
        ("disk", "shared", false),
        ("disk", "network", false),
    ] {
        for kept in ["get", "set"] {
            let last = if meets { 3 } else { 1 };
            check(&format!(
                "{kept} of {read}, {written} is written
                | state:test={read} state:other={written}
                | {kept}=1 {kept}=1 add@other=2 {kept}={last}"
            ))
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_never_sent_changes_nothing() {
    use tower::Service;
    let mut bench = Bench::new(MockService::counting());
    assert_eq!(bench.text(read()).await, "1");
    drop(bench.cache.call(write()));
    assert_eq!(bench.text(read()).await, "1");
    assert_eq!(bench.stats().invalidations, 0);
}

#[tokio::test(start_paused = true)]
async fn each_row_about_repeats_of_an_idempotent_write() {
    check(
        "
        only the repeat of the very last write is answered
        | set:1=1 set:1=1 set:2=2 set:2=2 set:1=3 set:1=3
        any other write in between makes a repeat run
        | set=1 add=2 set=3
        a repeat runs again after five seconds
        | set=1 +5s-1ns set=1 +1ns set=2
        the repeat of a failed write is sent
        | next:answered,error set=answered set=no +60s set=3 set=3
        overlapping writes are not kept
        | server:gate a<set:1 b<set:2 open:4 a=1 b=2 set:1=3 set:2=4
        identical writes at the same time all run
        | server:gate a<set b<set running=2 open:2 a=1 b=2
        no write is skipped while another is in flight
        | server:gate open:1 set=1 a<add b<set running=2 open:2 a=2 b=3
        a write sent while another may land is not kept
        | next:lost add=unknown set=2 set=3 +10s set=4 set=5 +50s set=6 set=6
        a write answered after another could land is not kept
        | server:gate a<add a! b<set +10s open:2 b=2 set=3
        caching can be disabled
        | conf:idempotent_writes=false set=1 set=2 #invalidations=2
        ",
    )
    .await;
    // a purge follows a change past the cache: a write in flight may have come before it
    for purge in ["all", "set", "tool=set", "who=ann"] {
        check(&format!(
            "a write that overlaps a purge is not kept: {purge}
            | server:gate a<ann/set purge:{purge} open:9 a=1 ann/set=2 ann/set=2"
        ))
        .await;
    }
}

/// Asks for the state of a task; the server says what the call states.
fn poll(id: u32, status: &str) -> ToolCall {
    let tool = tool("add").build().of_task(Method::GetTask);
    let asked = json!({"taskId": id.to_string(), "status": status});
    call(&Arc::new(tool), asked)
}

#[tokio::test(start_paused = true)]
async fn an_open_task_of_a_write_is_a_write_in_flight_then_in_doubt() {
    let server = MockService::new(|call, number| async move {
        let asked: Value = serde_json::from_slice(call.arguments()).unwrap();
        let answer = match (call.tool().definition.method, call.tool().name().as_str()) {
            (Method::GetTask, _) => json!({"status": asked["status"]}),
            (_, "add") => json!({"resultType": "task", "taskId": asked["task"], "ttlMs": 90_000}),
            _ => return Ok(ToolOutput::text(number.to_string())),
        };
        Ok(ToolOutput::from_json(answer.to_string()).unwrap())
    });
    let bench = Bench::new(server);
    let write = async |id: u32| {
        let write = call(&tool("add").build(), json!({"task": id.to_string()}));
        bench.ask(write).await.unwrap()
    };
    // whether an answer is kept for a while
    let keeps = async |time: u64| {
        let first = bench.text(read()).await;
        tokio::time::advance(Duration::from_millis(time)).await;
        bench.text(read()).await == first
    };
    for ended in ["completed", "failed", "cancelled"] {
        assert!(keeps(1_000).await);
        let before = bench.text(read()).await;
        write(1).await;
        write(2).await;
        assert!(!keeps(0).await, "in flight");
        bench.ask(poll(2, ended)).await.unwrap();
        bench.ask(poll(1, "working")).await.unwrap();
        assert!(!keeps(59_999).await, "the other one is open");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(keeps(499).await && !keeps(501).await, "in doubt");
        let doubtful = bench.text(read()).await;
        bench.ask(poll(1, ended)).await.unwrap();
        let after = bench.text(read()).await;
        assert!(after != doubtful && after != before, "invalidated");
        assert!(keeps(1_000).await, "settled");
    }
    // one that is never asked for ends when its server forgets it
    write(3).await;
    tokio::time::advance(Duration::from_secs(89)).await;
    assert!(!keeps(1_000).await);
    assert!(keeps(1_000).await);
}
