//! Progress and human delay under the attempt timeout, on a paused clock.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ProgressSink, ToolCall, ToolError, ToolOutput};
use callward_limit::{AttemptTimeoutLayer, Cap, TimeoutConfig};
use callward_testkit::{MockService, call, share, tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

/// What a server does, some seconds after the step before.
#[derive(Debug, Clone, Copy)]
enum Step {
    Answer,
    Ask,
    Report,
    Settle,
}

/// A call with an attempt timeout of 20 s, ten times the estimated duration.
fn request() -> ToolCall {
    let slow = tool("slow").hint(|hints| hints.estimated_duration = Some(2000.0));
    call(&slow.build(), json!({}))
}

fn within(secs: u64) -> std::time::Instant {
    (Instant::now() + Duration::from_secs(secs)).into_std()
}

/// Runs a call against a server that follows the script and then hangs; returns when it was over.
async fn run(
    config: TimeoutConfig,
    call: ToolCall,
    script: &'static [(u64, Step)],
) -> (u64, Result<ToolOutput, ToolError>) {
    let service = MockService::new(move |call, _| async move {
        let sink = call.progress().unwrap().clone();
        // reports come from the connection's task, not from the call's
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            for (secs, step) in script {
                sleep(Duration::from_secs(*secs)).await;
                match step {
                    Step::Answer => break,
                    Step::Ask => sink.waits_for_person(true),
                    Step::Report => sink.report(b"{}"),
                    Step::Settle => sink.waits_for_person(false),
                }
            }
            if let Some((_, Step::Answer)) = script.last() {
                answer.send(()).unwrap();
            } else {
                std::future::pending::<()>().await;
            }
        });
        let _ends = AbortOnDrop(server);
        answered.await.unwrap();
        Ok(ToolOutput::text("done"))
    });
    let start = Instant::now();
    let layer = AttemptTimeoutLayer::new().with_config(config);
    let result = layer.layer(service).oneshot(call).await;
    (start.elapsed().as_secs(), result)
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn plain(script: &'static [(u64, Step)]) -> (u64, Result<ToolOutput, ToolError>) {
    run(TimeoutConfig::default(), request(), script).await
}

#[tokio::test(start_paused = true)]
async fn each_progress_report_restarts_the_timeout() {
    const SCRIPT: &[(u64, Step)] = &[
        (15, Step::Report),
        (19, Step::Report),
        (1, Step::Report),
        (19, Step::Answer),
    ];
    let (secs, result) = plain(SCRIPT).await;
    assert_eq!((secs, result.unwrap().to_text()), (54, "done".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn without_further_progress_the_attempt_times_out() {
    let (secs, result) = plain(&[(15, Step::Report), (10, Step::Report)]).await;
    let error = result.unwrap_err();
    assert_eq!(secs, 45);
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.delivery(), Delivery::Unknown);
    for said in ["timeout of 20s", "200s", "the last progress was 20s ago"] {
        assert!(error.message().contains(said), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_attempt_up_to_the_cap() {
    const SCRIPT: &[(u64, Step)] = &[(15, Step::Report); 100];
    for (cap, secs) in [
        (Cap::default(), 200),
        (Cap::At(Duration::from_secs(70)), 70),
        (Cap::Times(1), 20),
        (Cap::At(Duration::from_secs(1)), 20),
    ] {
        let config = TimeoutConfig::default().with_cap(cap);
        let (ended, result) = run(config, request(), SCRIPT).await;
        let error = result.unwrap_err();
        assert_eq!(ended, secs, "{cap:?}");
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(error.delivery(), Delivery::Unknown);
    }
    let (_, result) = plain(SCRIPT).await;
    let error = result.unwrap_err();
    for said in [
        "within 200s",
        "timeout of 20s",
        "the last progress was 5s ago",
    ] {
        assert!(error.message().contains(said), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn human_delay_does_not_count() {
    const SCRIPT: &[(u64, Step)] = &[(10, Step::Ask), (3600, Step::Settle), (9, Step::Answer)];
    let (secs, result) = plain(SCRIPT).await;
    assert_eq!((secs, result.is_ok()), (3619, true));
    // nor after the time is taken up again
    let (secs, result) = plain(&[(10, Step::Ask), (3600, Step::Settle)]).await;
    let error = result.unwrap_err();
    assert_eq!((secs, error.kind()), (3620, ErrorKind::Timeout));
    assert!(
        error
            .message()
            .contains("3600s of waiting for a person are not counted"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn human_delay_does_not_count_against_the_cap() {
    const SCRIPT: &[(u64, Step)] = &[
        (15, Step::Report),
        (1, Step::Ask),
        (3600, Step::Settle),
        (15, Step::Report),
        (15, Step::Report),
        (15, Step::Report),
        (15, Step::Report),
    ];
    let config = TimeoutConfig::default().with_cap(Cap::Times(3));
    let (secs, result) = run(config, request(), SCRIPT).await;
    assert_eq!(secs, 3660);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn nested_questions_and_stray_answers_are_counted_right() {
    const NESTED: &[(u64, Step)] = &[
        (10, Step::Ask),
        (10, Step::Ask),
        (100, Step::Settle),
        (100, Step::Settle),
        (9, Step::Answer),
    ];
    let (secs, result) = plain(NESTED).await;
    assert_eq!((secs, result.is_ok()), (229, true));
    let (secs, result) = plain(&[(5, Step::Settle), (5, Step::Settle)]).await;
    assert_eq!((secs, result.is_err()), (20, true));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_despite_progress_and_human_delay() {
    const SCRIPT: &[(u64, Step)] = &[(10, Step::Report), (10, Step::Ask)];
    let call = request().with_deadline(within(50));
    let (secs, result) = run(TimeoutConfig::default(), call, SCRIPT).await;
    let error = result.unwrap_err();
    assert_eq!((secs, error.kind()), (50, ErrorKind::DeadlineExceeded));
    assert!(
        error.message().contains("the last progress was 40s ago"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_share_ends_the_attempt_if_a_retry_follows() {
    let given = |secs| {
        let mut call = request().with_deadline(within(1000));
        call.attempt_mut().share = Some(share(Duration::from_secs(secs), true));
        call
    };
    let (secs, result) = run(TimeoutConfig::default(), given(7), &[]).await;
    let error = result.unwrap_err();
    assert_eq!((secs, error.kind()), (7, ErrorKind::Timeout));
    assert_eq!(error.delivery(), Delivery::Unknown);
    for said in ["within 7s", "20s", "200s"] {
        assert!(error.message().contains(said), "{error}");
    }
    const ASKED: &[(u64, Step)] = &[(2, Step::Ask), (100, Step::Settle)];
    let (secs, result) = run(TimeoutConfig::default(), given(7), ASKED).await;
    assert_eq!(
        (secs, result.unwrap_err().kind()),
        (107, ErrorKind::Timeout)
    );

    // it counts from when the attempt is sent
    let call = given(3);
    tokio::time::advance(Duration::from_secs(4)).await;
    let (secs, result) = run(TimeoutConfig::default(), call, &[]).await;
    assert_eq!((secs, result.unwrap_err().kind()), (3, ErrorKind::Timeout));
}

#[tokio::test(start_paused = true)]
async fn a_share_ends_nothing_if_no_retry_follows() {
    let given = || {
        let mut call = request().with_deadline(within(10));
        call.attempt_mut().share = Some(share(Duration::from_secs(3), false));
        call
    };
    const LATE: &[(u64, Step)] = &[(9, Step::Answer)];
    let (secs, result) = run(TimeoutConfig::default(), given(), LATE).await;
    assert_eq!((secs, result.is_ok()), (9, true));
    let (secs, result) = run(TimeoutConfig::default(), given(), &[]).await;
    let error = result.unwrap_err();
    assert_eq!((secs, error.kind()), (10, ErrorKind::DeadlineExceeded));
}

#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl ProgressSink for Noted {
    fn report(&self, params: &[u8]) {
        self.0
            .lock()
            .push(String::from_utf8_lossy(params).into_owned());
    }

    fn waits_for_person(&self, waits: bool) {
        self.0.lock().push(waits.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn the_sink_of_the_caller_gets_each_report() {
    const SCRIPT: &[(u64, Step)] = &[
        (1, Step::Report),
        (1, Step::Ask),
        (1, Step::Settle),
        (1, Step::Answer),
    ];
    let noted = Arc::new(Noted::default());
    let call = request().with_progress(noted.clone());
    run(TimeoutConfig::default(), call, SCRIPT).await.1.unwrap();
    assert_eq!(*noted.0.lock(), ["{}", "true", "false"]);
}

#[tokio::test(start_paused = true)]
async fn a_progress_report_wakes_no_task() {
    let polls = Arc::new(AtomicUsize::new(0));
    let seen = polls.clone();
    let service = MockService::new(move |call, _| {
        let (sink, polls) = (call.progress().unwrap().clone(), seen.clone());
        tokio::spawn(async move {
            for _ in 0..1000 {
                sleep(Duration::from_millis(100)).await;
                sink.report(b"{}");
            }
        });
        std::future::poll_fn(move |_| {
            polls.fetch_add(1, Ordering::Relaxed);
            std::task::Poll::Pending
        })
    });
    let start = Instant::now();
    let result = AttemptTimeoutLayer::new().layer(service).oneshot(request());
    assert!(result.await.is_err());
    assert_eq!(start.elapsed().as_secs(), 120);
    // once at the start, and whenever the timer found that it had been moved
    assert!(polls.load(Ordering::Relaxed) <= 10, "{polls:?}");
}
