//! Calls through the layer.

use std::sync::Arc;
use std::time::Duration;

use callward_approval::{ApprovalConfig, ApprovalLayer, Approvals, LocalStore, State};
use callward_core::{Delivery, ErrorKind, Method, ProgressSink, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, contract, tool};
use parking_lot::Mutex;
use tokio::time::{Instant, advance};
use tower::{Layer, Service, ServiceExt};

use crate::bed::{Bed, approval, by, call, settle, wipe};

const HOLD: Duration = Duration::from_secs(50);

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract_on_and_off() {
    let config = ApprovalConfig::default();
    let approvals = Approvals::open(LocalStore::default(), config)
        .await
        .unwrap();
    // the contract's calls have no hints, so their plans would ask
    let none = ApprovalLayer::new(approvals, |_: &ToolCall| None);
    for layer in [none, ApprovalLayer::default()] {
        contract::check(|inner| layer.layer(inner)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_ask_allocates_nothing_and_runs_at_once() {
    let bed = Bed::new().await;
    let server = callward_testkit::at_once(ToolOutput::text("x"));
    let mut service = ApprovalLayer::from(bed.approvals.clone()).layer(server);
    let call = ToolCall::new(tool("get").read_only().build(), "{}");
    service.ready().await.unwrap();
    let counted = allocation_counter::measure(|| drop(service.call(call)));
    assert_eq!(counted.count_total, 0);
}

#[tokio::test(start_paused = true)]
async fn an_approved_call_runs_at_once_with_the_stored_arguments() {
    let bed = Bed::new().await;
    let made = Instant::now();
    let deadline = made + Duration::from_secs(5);
    let sent = call(r#"{ "b": 1, "a": 2 }"#).with_deadline(deadline.into_std());
    let running = bed.start(sent).await;
    assert_eq!(bed.server.started(), 0);
    advance(Duration::from_secs(30)).await;
    bed.decide(true).await;
    assert!(!running.await.unwrap().unwrap().is_error());
    assert_eq!(made.elapsed(), Duration::from_secs(30));
    let seen = bed.server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].arguments(), br#"{"a":2,"b":1}"#);
    assert_eq!(seen[0].caller().principal.as_str(), "ada");
    let left = seen[0].deadline.unwrap() - deadline.into_std();
    assert_eq!(
        left,
        Duration::from_secs(30),
        "the wait is not of the call's time"
    );
    assert_eq!(bed.states().await, [State::Succeeded]);
    // the next call needs an approval of its own
    let running = bed.start(call(r#"{"a":2,"b":1}"#)).await;
    assert_eq!(bed.states().await, [State::Succeeded, State::Pending]);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_long_enough_is_asked_to_come_again() {
    let bed = Bed::new().await;
    let began = Instant::now();
    let waiting = approval(&bed.run(call("{}")).await);
    assert_eq!(began.elapsed(), HOLD);
    let id = bed.pending().await.id.clone();
    assert_eq!(waiting["state"], "waiting");
    assert_eq!(waiting["request"], id.as_str());
    assert_eq!(waiting["ask_again"], true);
    assert!(waiting["expires"].as_str().unwrap().ends_with('Z'));
    assert_eq!(bed.server.started(), 0);
    // approved meanwhile, it runs when it comes again
    bed.decide(true).await;
    let began = Instant::now();
    assert!(!bed.run(call("{}")).await.unwrap().is_error());
    assert_eq!((began.elapsed(), bed.server.started()), (Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn denied_expired_and_withdrawn_calls_have_answers_of_their_own() {
    let bed = Bed::new().await;
    let running = bed.start(call("1")).await;
    bed.decide(false).await;
    let denied = approval(&running.await.unwrap());
    assert_eq!(
        (&denied["state"], &denied["note"]),
        (&"denied".into(), &"use the archive".into())
    );
    let list = bed.approvals.list().await.unwrap();
    let end = Duration::from_millis(list[0].since_ms) + bed.approvals.config().cool_off;
    let end = std::time::UNIX_EPOCH + end;
    let end = humantime::format_rfc3339_seconds(end).to_string();
    assert_eq!(denied["expires"], end, "the end of the cool-off");
    let barred = bed.run(call("1")).await;
    assert_eq!(
        approval(&barred),
        denied,
        "within the cool-off it is not asked again"
    );

    let running = bed.start(call("2")).await;
    let id = bed.pending().await.id.clone();
    bed.approvals
        .withdraw(&id, by("ada").principal.clone())
        .await
        .unwrap();
    assert_eq!(approval(&running.await.unwrap())["state"], "withdrawn");

    assert_eq!(approval(&bed.run(call("3")).await)["state"], "waiting");
    advance(Duration::from_secs(15 * 60) - HOLD - Duration::from_secs(5)).await;
    let began = Instant::now();
    let expired = approval(&bed.run(call("3")).await);
    assert_eq!(
        (&expired["state"], &expired["note"]),
        (&"expired".into(), &().into())
    );
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(bed.server.started(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_answer_says_how_to_approve() {
    let bed = Bed::new().await;
    let waiting = bed.run(call("1")).await.unwrap();
    let running = bed.start(call("2")).await;
    bed.decide(false).await;
    let denied = running.await.unwrap().unwrap();
    for output in [waiting, denied] {
        let body: serde_json::Value = serde_json::from_slice(output.body()).unwrap();
        let text = body["content"][0]["text"].as_str().unwrap().to_lowercase();
        assert!(
            !text.contains("callward") && !text.contains("cli"),
            "{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_equal_calls_one_runs_and_the_other_says_so() {
    let bed = Bed::new().await;
    let (one, two) = (bed.start(call("{}")).await, bed.start(call("{}")).await);
    assert_eq!(bed.states().await, [State::Pending]);
    bed.decide(true).await;
    let outputs = [one.await.unwrap(), two.await.unwrap()];
    let ran = outputs
        .iter()
        .filter(|output| !output.as_ref().unwrap().is_error())
        .count();
    assert_eq!((ran, bed.server.started()), (1, 1));
    let other = outputs
        .iter()
        .find(|output| output.as_ref().unwrap().is_error());
    assert_eq!(approval(other.unwrap())["state"], "used");
}

#[tokio::test(start_paused = true)]
async fn each_end_of_a_call_is_stored_and_only_unsent_calls_may_repeat() {
    let error = |delivery| Err(ToolError::new(ErrorKind::Timeout, delivery, "x"));
    for (result, state) in [
        (Ok(ToolOutput::text("x")), State::Succeeded),
        (Ok(ToolOutput::error_text("x")), State::Failed),
        (error(Delivery::Answered), State::Failed),
        (error(Delivery::Unknown), State::Unknown),
        (error(Delivery::NotSent), State::Approved),
    ] {
        let server = MockService::new(move |_, _| std::future::ready(result.clone()));
        let bed = Bed::with(LocalStore::default(), server).await;
        let running = bed.start(call("{}")).await;
        bed.decide(true).await;
        let _ = running.await.unwrap();
        assert_eq!(bed.states().await, [state]);
        // once more: it runs only if it was not sent
        let again = bed.start(call("{}")).await;
        assert_eq!(
            bed.server.started(),
            if state == State::Approved { 2 } else { 1 }
        );
        again.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_ends_no_request_and_repeats_no_call() {
    let (server, gate) = MockService::gated();
    let bed = Bed::with(LocalStore::default(), server).await;
    bed.start(call("{}")).await.abort();
    settle().await;
    assert_eq!(bed.states().await, [State::Pending]);
    bed.decide(true).await;
    let running = bed.start(call("{}")).await;
    assert_eq!(
        (bed.server.running(), bed.states().await),
        (1, vec![State::Consumed])
    );
    running.abort();
    settle().await;
    assert_eq!(bed.states().await, [State::Unknown]);
    gate.open(1);
    assert_eq!(approval(&bed.run(call("{}")).await)["state"], "waiting");
    assert_eq!(bed.server.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_definition_principal_or_argument_is_another_request() {
    let changed = tool("wipe").destructive().hint(|hints| {
        hints.open_world_hint = Some(true);
    });
    for other in [
        ToolCall::new(changed.build(), "{}").with_caller(by("ada")),
        call("{}").with_caller(by("eve")),
        call(r#"{"all":true}"#),
    ] {
        let bed = Bed::new().await;
        bed.start(call("{}")).await.abort();
        bed.decide(true).await;
        assert_eq!(approval(&bed.run(other).await)["state"], "waiting");
        assert_eq!(bed.server.started(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_no_person_can_judge_are_refused() {
    let bed = Bed::new().await;
    let large = format!("\"{}\"", "x".repeat(256 * 1024));
    for arguments in [r#"{"a":1,"a":2}"#, "not JSON", &large] {
        let error = bed.run(call(arguments)).await.unwrap_err();
        assert_eq!(
            (error.kind, error.delivery),
            (ErrorKind::InvalidCall, Delivery::NotSent)
        );
    }
    assert_eq!(bed.states().await, []);
}

#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl ProgressSink for Noted {
    fn report(&self, params: &[u8]) {
        self.0
            .lock()
            .push(String::from_utf8(params.to_vec()).unwrap());
    }

    fn waits_for_person(&self, waits: bool) {
        self.0.lock().push(waits.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_wants_progress_gets_some_each_ten_seconds() {
    let bed = Bed::new().await;
    let noted = Arc::new(Noted::default());
    let waiting = bed.run(call("{}").with_progress(noted.clone())).await;
    assert_eq!(approval(&waiting)["state"], "waiting");
    let noted = std::mem::take(&mut *noted.0.lock());
    let [begin, reports @ .., end] = &noted[..] else {
        panic!("{noted:?}");
    };
    assert_eq!((begin.as_str(), end.as_str()), ("true", "false"));
    let done = reports.iter().map(|report| {
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        report["progress"].as_u64().unwrap()
    });
    assert_eq!(done.collect::<Vec<_>>(), [10, 20, 30, 40]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_holds_no_readiness_and_takes_it_again() {
    let server = MockService::counting().ready_after(3);
    let bed = Bed::with(LocalStore::default(), server).await;
    let mut service = bed.service.clone();
    let asked = service.ready().await.unwrap().call(call("{}"));
    let asked = tokio::spawn(asked);
    // the same instance has to be made ready again: the mock panics otherwise
    let read = ToolCall::new(tool("get").read_only().build(), "{}");
    service.ready().await.unwrap().call(read).await.unwrap();
    settle().await;
    bed.decide(true).await;
    asked.await.unwrap().unwrap();
    assert_eq!(bed.server.started(), 2);

    let never = ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, "never ready");
    let server = MockService::counting().never_ready(never);
    let mut service = ApprovalLayer::from(bed.approvals.clone()).layer(server);
    let running = tokio::spawn(service.call(call("[]")));
    settle().await;
    bed.decide(true).await;
    running.await.unwrap().unwrap_err();
    let states = bed.states().await;
    assert!(states.contains(&State::Approved), "nothing was used up");
}

#[tokio::test(start_paused = true)]
async fn requests_about_a_task_are_not_asked_about() {
    let bed = Bed::new().await;
    let config = ApprovalConfig::default();
    let approvals = Approvals::open(LocalStore::default(), config)
        .await
        .unwrap();
    let all = ApprovalLayer::new(approvals.clone(), |_: &ToolCall| Some("all are".into()));
    let service = all.layer(bed.server.clone());
    let task = Arc::new(wipe().of_task(Method::CancelTask));
    service
        .clone()
        .oneshot(ToolCall::new(task, "{}"))
        .await
        .unwrap();
    let read = ToolCall::new(tool("get").read_only().build(), "{}");
    assert_eq!(approval(&service.oneshot(read).await)["state"], "waiting");
    assert_eq!(&*approvals.list().await.unwrap()[0].asked.reason, "all are");
}
