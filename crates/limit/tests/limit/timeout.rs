//! The attempt timeout, with progress and human delay, on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ProgressSink, ToolCall, ToolError, ToolOutput};
use callward_limit::{AttemptTimeout, AttemptTimeoutLayer, Cap};
use callward_testkit::{MockService, call, share, tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

/// A call with an attempt timeout of 20 s, ten times the estimated duration.
fn request() -> ToolCall {
    let slow = tool("slow").hint(|hints| hints.estimated_duration = Some(2000.0));
    call(&slow.build(), json!({}))
}

fn within(secs: u64, call: ToolCall) -> ToolCall {
    call.with_deadline((Instant::now() + Duration::from_secs(secs)).into_std())
}

fn limited(service: &MockService) -> AttemptTimeout<MockService> {
    AttemptTimeoutLayer::new().layer(service.clone())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_after_its_timeout_or_at_a_sooner_deadline() {
    let by_timeout = "no answer and no progress within 20s";
    let by_deadline = "no answer before the call's deadline, after 7s";
    for (deadline, secs, kind, why) in [
        (None, 20, ErrorKind::Timeout, by_timeout),
        (Some(90), 20, ErrorKind::Timeout, by_timeout),
        (Some(7), 7, ErrorKind::DeadlineExceeded, by_deadline),
    ] {
        let (service, _gate) = MockService::gated();
        let start = Instant::now();
        let call = match deadline {
            Some(secs) => within(secs, request()),
            None => request(),
        };
        let error = limited(&service).oneshot(call).await.unwrap_err();
        assert_eq!(start.elapsed().as_secs(), secs);
        assert_eq!((error.kind, error.delivery), (kind, Delivery::Unknown));
        let rest = "(attempt timeout of 20s, at most 200s with progress); no progress was reported";
        assert_eq!(error.message, format!("{why} {rest}"));
        assert_eq!(service.cancelled(), 1, "the server's call is dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_has_passed_is_not_sent() {
    let service = MockService::counting();
    let late = within(1, request());
    tokio::time::advance(Duration::from_secs(4)).await;
    let error = limited(&service).oneshot(late).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery, Delivery::NotSent);
    assert!(error.message.contains("3s ago"), "{error}");
    assert_eq!(service.started(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_moment_of_the_timeout_is_in_time() {
    let service = MockService::new(|_, _| async {
        sleep(Duration::from_secs(20)).await;
        Ok(ToolOutput::text("just in time"))
    });
    limited(&service).oneshot(request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exhausts_the_coop_budget_times_out() {
    // uses up tokio's cooperative budget in every poll
    let service = MockService::new(|_, _| async {
        loop {
            tokio::task::coop::consume_budget().await;
            if !tokio::task::coop::has_budget_remaining() {
                tokio::time::advance(Duration::from_secs(1)).await;
            }
        }
    });
    let error = limited(&service).oneshot(request()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
}

/// Runs a call against a server that follows a script and then hangs; returns when it was over.
///
/// A step comes some seconds after the one before: `r15` reports progress, `q15` asks a person,
/// `s15` has the answer, `a15` ends the call. `...` repeats the steps before.
async fn run(
    cap: Cap,
    call: ToolCall,
    script: &'static str,
) -> (u64, Result<ToolOutput, ToolError>) {
    let service = MockService::new(move |call, _| async move {
        let sink = call.progress().unwrap().clone();
        // reports come from the connection's task, not from the call's
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let steps = script.trim_end_matches("...").split_whitespace();
            let times = if script.ends_with("...") { 100 } else { 1 };
            let count = times * steps.clone().count();
            for step in steps.cycle().take(count) {
                let (step, secs) = step.split_at(1);
                sleep(Duration::from_secs(secs.parse().unwrap())).await;
                match step {
                    "a" => return answer.send(()).unwrap(),
                    "q" => sink.waits_for_person(true),
                    "r" => sink.report(b"{}"),
                    _ => sink.waits_for_person(false),
                }
            }
            std::future::pending::<()>().await;
        });
        let answered = answered.await;
        server.abort();
        answered.unwrap();
        Ok(ToolOutput::text("done"))
    });
    let start = Instant::now();
    let layer = AttemptTimeoutLayer::new().with_cap(cap);
    let result = layer.layer(service).oneshot(call).await;
    (start.elapsed().as_secs(), result)
}

/// The cap, as a multiple or in seconds, the script, when the call ends, and a part of the error.
const SCRIPTS: &str = "
    cap  script                        ends  error
    x10  r15 r19 r1 a19                54    none
    x10  r15 r10                       45    timeout of 20s, at most 200s
    x10  r15 r10                       45    the last progress was 20s ago
    x10  r15 ...                       200   within 200s
    x10  r15 ...                       200   the last progress was 5s ago
    70   r15 ...                       70    within 70s
    x1   r15 ...                       20    timeout of 20s
    1    r15 ...                       20    timeout of 20s
    x10  q10 s3600 a9                  3619  none
    x10  q10 s3600                     3620  3600s of waiting for a person are not counted
    x3   r15 q1 s3600 r15 r15 r15 r15  3660  3600s of waiting for a person are not counted
    x10  q10 q10 s100 s100 a9          229   none
    x10  s5 s5                         20    timeout of 20s
";

#[tokio::test(start_paused = true)]
async fn progress_restarts_the_timeout_and_human_delay_does_not_count() {
    for line in SCRIPTS.trim().lines().skip(1) {
        let cells = line.split("  ").map(str::trim);
        let cells: Vec<_> = cells.filter(|cell| !cell.is_empty()).collect();
        let [cap, script, ends, shows] = cells.try_into().unwrap();
        let cap = match cap.strip_prefix('x') {
            Some(times) => Cap::Times(times.parse().unwrap()),
            None => Cap::At(Duration::from_secs(cap.parse().unwrap())),
        };
        let (ended, result) = run(cap, request(), script).await;
        assert_eq!(ended.to_string(), ends, "{line}");
        match result {
            Ok(_) => assert_eq!(shows, "none", "{line}"),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Timeout, "{line}");
                assert_eq!(error.delivery, Delivery::Unknown, "{line}");
                assert!(error.message.contains(shows), "{line}: {error}");
            }
        }
    }
    // the deadline holds despite both
    let (secs, result) = run(Cap::default(), within(50, request()), "r10 q10").await;
    let error = result.unwrap_err();
    assert_eq!((secs, error.kind), (50, ErrorKind::DeadlineExceeded));
    let shows = "the last progress was 40s ago";
    assert!(error.message.contains(shows), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_share_ends_the_attempt_only_if_a_retry_follows() {
    let (timeout, deadline) = (ErrorKind::Timeout, ErrorKind::DeadlineExceeded);
    for (script, share_secs, retried, idle, secs, fails) in [
        ("", 7, true, 0, 7, Some(timeout)),
        ("q2 s100", 7, true, 0, 107, Some(timeout)),
        // it counts from when the attempt is sent
        ("", 3, true, 4, 3, Some(timeout)),
        ("a9", 3, false, 990, 9, None),
        ("", 3, false, 990, 10, Some(deadline)),
    ] {
        let mut call = within(1000, request());
        call.attempt_mut().share = Some(share(Duration::from_secs(share_secs), retried));
        tokio::time::advance(Duration::from_secs(idle)).await;
        let (ended, result) = run(Cap::default(), call, script).await;
        let error = result.err();
        assert_eq!(error.as_ref().map(|error| error.kind), fails, "{script:?}");
        assert_eq!(ended, secs, "{script:?}");
        if fails == Some(timeout) && script.is_empty() {
            let message = error.unwrap().message.to_string();
            let within = format!("no answer within {share_secs}s, its share");
            assert!(message.starts_with(&within), "{message}");
        }
    }
}

#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl ProgressSink for Noted {
    fn report(&self, _: &[u8]) {
        self.0.lock().push("report".to_owned());
    }

    fn waits_for_person(&self, waits: bool) {
        self.0.lock().push(waits.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn the_sink_of_the_caller_gets_each_report() {
    let noted = Arc::new(Noted::default());
    let call = request().with_progress(noted.clone());
    run(Cap::default(), call, "r1 q1 s1 a1").await.1.unwrap();
    assert_eq!(*noted.0.lock(), ["report", "true", "false"]);
}
