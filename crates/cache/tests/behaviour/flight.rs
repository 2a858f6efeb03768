//! Identical reads in flight run once, and no follower is stranded.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind};
use callward_testkit::MockService;
use tokio::time::Instant;

use crate::common::{Bench, read, write};
use crate::script::check;

#[tokio::test(start_paused = true)]
async fn each_row_about_flights() {
    check(
        r#"
        sixty-four identical reads run once
        | server:gate a<64*get open:64 a=1 runs=1 #misses=1 #joined=63 #hits=0
        a record notes who joined
        | server:gate a<get b<get open:1 a~miss b~joined
        a dropped leader hands over to one follower
        | server:gate a<8*get a! runs=2 running=1 open:8 a=2 runs=2
        a failing leader keeps its failure and hands over
        | server:gate next:answered,error a<get b<get c<3*get open:5 a=answered b=no c=3
        of failing leaders, twice as many run in each round
        | server:takes=1s server:reads=answered a<8*get runs=1 +1s settle runs=3 +1s settle runs=7
        | +1s settle runs=8 +1s a=answered runs=8
        a question to the leader's client releases all followers, and later calls
        | server:gate next:asks a<asked-get b<asked-get c<asked-get running=1 open:1 settle
        | running=3 d<asked-get e<asked-get running=4 open:4 a=1 b=2 c=3 d=4 e=4
        | #joined=1 #refusals.asked=1
        a read beside a write does not wait for a question
        | server:gate w<add next:asks a<asked-get b<2*asked-get running=2 open:2 settle
        | running=2 open:2 w=1 a=2 b=3 runs=3
        a result that asks for input goes to no follower
        | server:gate next:{"resultType":"input_required"} a<get b<get c<get open:3 a=1 b=2 c=2
        a panicking leader hands over
        | server:gate next:panic a<get b<3*get open:4 a=panic b=2 runs=2
        a follower that stops waiting leaves no trace
        | server:gate a<get b<2*get c<get b! b! running=1 a! runs=2 open:1 c=2
        a flight without members starts afresh
        | server:gate a<get b<get c<get c! b! a! runs=1 running=0 open:1 get=2
        a read after a write does not join one from before it
        | server:gate a<get b<add c<get running=3 b! +60s d<get running=3 open:3 c=3 a=1 d=4 get=4
        reads beside a write in flight share a run that began later
        | server:gate w<add running=1 a<get b<63*get running=2 open:2 a=2 runs=3 open:1 b=3
        | #joined=62 #bypassed=2 #entries=0
        reads beside a lost write share a run that began later
        | server:gate w<add w! running=0 a<get b<63*get running=1 open:1 a=2 runs=3 open:1 b=3
        | #joined=62 #bypassed=2 #entries=0
        a read beside a write waits two seconds for the run before it
        | server:gate w<add w! a<get b<2*get running=1 +1999ms settle running=1
        | +1ms settle running=2 open:2 a=2 b=3
        or for the p99 of its tool
        | server:gate r<get +100ms open:1 r=1 w<add w! a<get b<2*get running=1 +99ms settle
        | running=1 +1ms settle running=2 open:2 a=3 b=4
        a read beside a write that is dropped hands over
        | server:gate w<add w! a<get b<3*get a! open:4 b=3
        "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_until_its_own_deadline() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let runner = bench.start(read()).await;
    let deadline = Instant::now() + Duration::from_secs(1);
    let hurried = bench.start(read().with_deadline(deadline.into())).await;
    let error = hurried.await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery, Delivery::NotSent);
    assert_eq!(Instant::now(), deadline);
    gate.open(1);
    assert_eq!(runner.await.unwrap().unwrap().to_text(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_not_polled_blocks_no_other_call() {
    use tower::Service;
    let mut bench = Bench::new(MockService::counting());
    let held = bench.cache.call(read());
    assert_eq!(bench.text(read()).await, "1");
    assert_eq!(bench.text(write()).await, "2");
    assert_eq!(bench.text(read()).await, "3");
    assert_eq!(held.await.unwrap().to_text(), "3");
}
