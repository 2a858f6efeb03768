//! One breaker for a whole server, before those of its tools.

use std::time::Duration;

use callward_breaker::{BreakerLayer, BreakerSet, BreakerState, Subject};
use callward_core::{ServerId, ToolCall};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::{Instant, advance, sleep};
use tower::{Service, ServiceBuilder, ServiceExt};

use crate::script::check;

#[tokio::test(start_paused = true)]
async fn each_row_about_the_breaker_of_a_server() {
    check(
        "
        a server that cannot be reached is asked for none of its tools
        | fails:connect_failed many:5 @server=open started=5 +4s another=6s started=5
        | says:server_`a` says:`another` says:5_failures_in_a_row says:6.0_s @another=closed
        | works +6s another=ok @server=closed
        a tool that loses its connections takes no other tool with it
        | layer:server fails:connection_lost takes:1s a<8*sick a=connection_lost @server=closed
        | a<8*sick a=connection_lost @server=closed takes:0s works well=ok +1s
        | fails:connection_lost/not_sent 4*sick @server=closed sick @server=open
        a server that loses the connections of all its tools has an open breaker
        | fails:connection_lost many:4 many:4 @server=closed many:5 @server=open another=10s
        | says:5_failures_in_a_row +10s get_7 @server=half_open get_8 @server=open
        | +20s get_7 works get_9=ok @server=closed
        a refusal of a tool's breaker does not probe the server
        | fails:connect_failed 3*sick many:2 @server=open works +10s 5*sick=20s says:`sick`
        | well=ok @server=closed
        a write does not probe as long as a read may come
        | fails:connect_failed many:5 works +10s put=10s says:this_call_is_a_write get=ok put=ok
        an idempotent write may be the probe
        | fails:connect_failed many:5 works +10s set=ok @server=closed
        where no read comes, a write is the probe
        | fails:connect_failed many:5 works +20s put=ok @server=closed
        a connection that is back closes it
        | fails:connect_failed many:5 works reset get_0=ok
        an operator holds it open, or closed
        | force:server reset get=open says:an_operator_holds_its_breaker_open release:server get=ok
        | hold:server fails:connect_failed many:20 @server=forced_closed
        ",
    )
    .await;
    let faults = "server_fault protocol timeout rate_limited invalid_call cancelled overloaded";
    for fault in faults.split(' ') {
        check(&format!(
            "the fault of one tool: {fault}
            | fails:{fault} 20*get 20*list 20*show @server=closed works another=ok"
        ))
        .await;
    }
}

fn read() -> ToolCall {
    call(&tool("get").read_only().build(), json!({}))
}

fn trip(set: &BreakerSet, server: &ServerId) {
    let circuit = set.circuit(server, Subject::Server);
    while let Ok(permit) = circuit.admit() {
        permit.fail(&"down");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_probe_hears_when_it_is_due() {
    let (set, server) = (BreakerSet::default(), ServerId::new("a").unwrap());
    let circuit = set.circuit(&server, Subject::Server);
    let start = Instant::now();
    let waiting = tokio::spawn(async move {
        circuit.probe_due().await;
        start.elapsed()
    });
    sleep(Duration::from_secs(7)).await;
    trip(&set, &server);
    assert_eq!(waiting.await.unwrap(), Duration::from_secs(17));
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_time_a_call_leaves_no_place_taken() {
    let (set, server) = (BreakerSet::default(), ServerId::new("a").unwrap());
    let (mock, gate) = MockService::gated();
    let mut service = ServiceBuilder::new()
        .layer(BreakerLayer::of_server(set.clone(), server.clone()))
        .layer(BreakerLayer::new(set.clone(), server.clone()))
        .service(mock.clone());
    trip(&set, &server);
    advance(Duration::from_secs(10)).await;
    for _ in 0..5 {
        // the probe of both, dropped before it is polled, and after
        drop(service.ready().await.unwrap().call(read()));
        let mut probe = Box::pin(service.clone().oneshot(read()));
        assert!(futures_util::poll!(&mut probe).is_pending());
        assert!(service.clone().oneshot(read()).await.is_err());
    }
    gate.open(1);
    service.oneshot(read()).await.unwrap();
    let state = set.circuit(&server, Subject::Server).state();
    assert_eq!(state, BreakerState::Closed);
}
