//! Calls through the breakers of a server and its tools.

use std::sync::Arc;

use callward_breaker::{BreakerConfig, BreakerLayer, BreakerSet, BreakerState, Subject};
use callward_core::{Delivery, ErrorKind, ProgressSink, ToolCall};
use callward_testkit::{MockService, contract, share};
use parking_lot::Mutex;
use tokio::time::{Instant, advance, sleep};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::bed::{Scene, down, fault, fine, of, secs, server};

#[tokio::test(start_paused = true)]
async fn the_layers_keep_the_contract() {
    let of_tool = |set| BreakerLayer::new(set, server("orders"));
    let of_server = |set| BreakerLayer::of_server(set, server("orders"));
    contract::check(|inner| of_tool(BreakerSet::default()).layer(inner)).await;
    contract::check(|inner| of_server(BreakerSet::default()).layer(inner)).await;
    let mut config = BreakerConfig::default();
    (config.failure_rate, config.slow_after) = (Some(0.5), Some(secs(5)));
    contract::check(|inner| {
        let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
        of_server(set.clone()).layer(of_tool(set).layer(inner))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_breaker_of_a_tool_refuses_its_calls_and_no_others() {
    let scene = Scene::new();
    *scene.answer.lock() = down();
    assert_eq!(scene.call("get get get").await, "connect_failed");
    advance(secs(12)).await;
    assert_eq!(scene.call("get").await, "open for 18s");
    assert_eq!(scene.mock.started(), 3);
    let error = scene.send(of("get")).await.unwrap_err().to_string();
    for part in ["`get`", "`a`", "3 failures in a row", "scripted", "18.0 s"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    *scene.answer.lock() = fine();
    assert_eq!(scene.call("other").await, "ok");
    let elsewhere = BreakerLayer::new(scene.set.clone(), server("b"));
    let elsewhere = elsewhere.layer(scene.mock.clone());
    elsewhere.oneshot(of("get")).await.unwrap();
    // a probe that is rate limited proves nothing
    advance(secs(18)).await;
    *scene.answer.lock() = fault(ErrorKind::RateLimited, Delivery::Answered);
    assert_eq!(scene.call("get").await, "rate_limited");
    assert_eq!(scene.state("get"), BreakerState::HalfOpen);
    *scene.answer.lock() = fine();
    assert_eq!(scene.call("get").await, "ok");
    assert_eq!(scene.state("get"), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_breaker_of_a_server_refuses_the_calls_of_all_its_tools() {
    let scene = Scene::new();
    *scene.answer.lock() = down();
    assert_eq!(scene.call("a b c d e").await, "connect_failed");
    advance(secs(4)).await;
    assert_eq!(scene.call("another").await, "open for 6s");
    assert_eq!(scene.mock.started(), 5);
    assert_eq!(scene.state("another"), BreakerState::Closed);
    let error = scene.send(of("another")).await.unwrap_err().to_string();
    for part in ["server `a`", "`another`", "5 failures in a row", "6.0 s"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    advance(secs(6)).await;
    *scene.answer.lock() = fine();
    assert_eq!(scene.call("another").await, "ok");
    assert_eq!(scene.server_state(), BreakerState::Closed);
    scene.set.force_open(&server("a"), Subject::Server);
    assert_eq!(scene.call("get").await, "open");
}

#[tokio::test(start_paused = true)]
async fn the_breaker_of_a_server_judges_the_way_and_that_of_a_tool_the_answer() {
    use Delivery::{Answered, NotSent, Unknown};
    for (kind, delivery, of_tool, of_server) in [
        (ErrorKind::ConnectFailed, NotSent, true, true),
        (ErrorKind::ConnectionLost, Unknown, true, true),
        (ErrorKind::ServerFault, Answered, true, false),
        (ErrorKind::UnknownTool, Answered, false, false),
    ] {
        let scene = Scene::new();
        *scene.answer.lock() = fault(kind, delivery);
        scene.call("a a a").await;
        let is_open = scene.state("a") == BreakerState::Open;
        assert_eq!(is_open, of_tool, "{kind}");
        scene.call("b c d e").await;
        let is_open = scene.server_state() == BreakerState::Open;
        assert_eq!(is_open, of_server, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_tools_breaker_refuses_does_not_probe_the_server() {
    let scene = Scene::new();
    *scene.answer.lock() = down();
    scene.call("sick sick sick b c").await;
    *scene.answer.lock() = fine();
    advance(secs(10)).await;
    assert_eq!(scene.call("sick sick").await, "open for 20s");
    assert_eq!(scene.server_state(), BreakerState::HalfOpen);
    assert_eq!(scene.call("well").await, "ok");
    assert_eq!(scene.server_state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_must_not_run_twice_waits_for_a_read_to_be_the_probe() {
    for (probe, outcome) in [("put", "open for 10s"), ("get", "ok"), ("set", "ok")] {
        let scene = Scene::new();
        *scene.answer.lock() = down();
        scene.call("a b c d e").await;
        *scene.answer.lock() = fine();
        advance(secs(10)).await;
        assert_eq!(scene.call(probe).await, outcome, "{probe}");
        if probe == "put" {
            let error = scene.send(of("put")).await.unwrap_err();
            let why = "its breaker is due for a probe, and this call is a write";
            assert!(error.message.contains(why), "{error}");
        }
        assert_eq!(scene.call("get put").await, "ok", "{probe}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_attempts_of_one_call_count_once_except_in_a_share() {
    let mut share = BreakerConfig::default();
    (share.failure_rate, share.min_calls) = (Some(0.5), 4);
    for (config, calls) in [(BreakerConfig::default(), 3), (share, 1)] {
        let scene = Scene::of_tools(config);
        *scene.answer.lock() = down();
        for n in 1..=calls {
            let mut call = of("get");
            for _ in 0..4 {
                assert_eq!(scene.state("get"), BreakerState::Closed, "call {n}");
                scene.send(call.clone()).await.unwrap_err();
                call.attempt_mut().advance(Some(&server("a")));
                if n == 3 {
                    break;
                }
            }
        }
        assert_eq!(scene.state("get"), BreakerState::Open, "{calls} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_in_a_hurry_does_not_open_it_and_a_patient_one_does() {
    for (given, ends, started) in [
        (1, true, 20),
        (4, true, 20),
        (5, true, 3),
        (60, true, 3),
        // the share did not end it: the server had all the time there was
        (1, false, 3),
    ] {
        let mock = MockService::new(move |call: ToolCall, _| async move {
            let share = call.attempt().share.as_ref();
            assert_eq!(share.map(|share| share.end(secs(100))), Some(ends));
            fault(ErrorKind::Timeout, Delivery::Unknown)
        });
        let layer = BreakerLayer::new(BreakerSet::default(), server("a"));
        let service = layer.layer(mock.clone());
        for _ in 0..20 {
            let mut call = of("get");
            call.attempt_mut().share = Some(share(secs(given), ends));
            service.clone().oneshot(call).await.unwrap_err();
        }
        assert_eq!(mock.started(), started, "{given} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_probe_hears_when_it_is_due() {
    let scene = Scene::new();
    let circuit = scene.set.circuit(&server("a"), Subject::Server);
    let start = Instant::now();
    let waiting = tokio::spawn(async move {
        circuit.probe_due().await;
        start.elapsed()
    });
    sleep(secs(7)).await;
    *scene.answer.lock() = down();
    scene.call("a b c d e").await;
    assert_eq!(waiting.await.unwrap(), secs(17));
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_time_a_call_leaves_no_place_taken() {
    let (set, server) = (BreakerSet::default(), server("a"));
    let (mock, gate) = MockService::gated();
    let mut service = ServiceBuilder::new()
        .layer(BreakerLayer::of_server(set.clone(), server.clone()))
        .layer(BreakerLayer::new(set.clone(), server.clone()))
        .service(mock.clone());
    let circuit = set.circuit(&server, Subject::Server);
    while let Ok(permit) = circuit.admit() {
        permit.fail(&"down");
    }
    advance(secs(10)).await;
    for _ in 0..5 {
        // the probe of both, dropped before it is polled, and after
        drop(service.ready().await.unwrap().call(of("get")));
        let mut probe = Box::pin(service.clone().oneshot(of("get")));
        assert!(futures_util::poll!(&mut probe).is_pending());
        assert!(service.clone().oneshot(of("get")).await.is_err());
    }
    gate.open(1);
    service.oneshot(of("get")).await.unwrap();
    assert_eq!(circuit.state(), BreakerState::Closed);
}

/// Records the progress it receives.
#[derive(Default)]
struct Recorded(Mutex<Vec<String>>);

impl ProgressSink for Recorded {
    fn report(&self, params: &[u8]) {
        let text = String::from_utf8(params.to_vec()).unwrap();
        self.0.lock().push(text);
    }

    fn waits_for_person(&self, waits: bool) {
        self.0.lock().push(format!("waits: {waits}"));
    }
}

#[tokio::test(start_paused = true)]
async fn slow_calls_count_without_the_time_of_persons() {
    let mut config = BreakerConfig::default();
    (config.slow_after, config.slow_rate) = (Some(secs(2)), Some(0.25));
    (config.window, config.min_calls) = (secs(600), 10);
    // each call takes a second, and each fourth one more; a person takes five
    let mock = MockService::new(|call: ToolCall, n| async move {
        let sink = call.progress().cloned().unwrap();
        sink.report(b"half");
        sink.waits_for_person(true);
        sleep(secs(5)).await;
        sink.waits_for_person(false);
        sleep(secs(1 + u64::from(n % 4 == 0))).await;
        fine()
    });
    let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
    let service = BreakerLayer::new(set.clone(), server("a")).layer(mock);
    for _ in 0..8 {
        service.clone().oneshot(of("get")).await.unwrap();
    }
    let window = set.snapshot()[0].window.unwrap();
    assert_eq!((window.calls, window.failed, window.slow), (8, 0, 2));
    // a sink of the caller's own still receives everything
    let reported = Arc::new(Recorded::default());
    let call = of("get").with_progress(reported.clone());
    service.clone().oneshot(call).await.unwrap();
    assert_eq!(*reported.0.lock(), ["half", "waits: true", "waits: false"]);
    for _ in 0..3 {
        service.clone().oneshot(of("get")).await.unwrap();
    }
    let status = &set.snapshot()[0];
    assert_eq!(status.state, BreakerState::Open);
    let why = status.last_trip.as_deref().unwrap();
    assert_eq!(why, "3 of 12 calls within 600s took 2s or longer");
}
