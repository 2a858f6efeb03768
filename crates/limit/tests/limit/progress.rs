//! Progress and human delay under the attempt timeout, on a paused clock.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ProgressSink, ToolCall, ToolError, ToolOutput};
use callward_limit::{AttemptTimeoutLayer, Cap};
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
    cap: Cap,
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
    let layer = AttemptTimeoutLayer::new().with_cap(cap);
    let result = layer.layer(service).oneshot(call).await;
    (start.elapsed().as_secs(), result)
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Script = &'static [(u64, Step)];

const PROGRESS: Script = &[
    (15, Step::Report),
    (19, Step::Report),
    (1, Step::Report),
    (19, Step::Answer),
];
const SILENT: Script = &[(15, Step::Report), (10, Step::Report)];
const BUSY: Script = &[(15, Step::Report); 100];
const ASKED: Script = &[(10, Step::Ask), (3600, Step::Settle), (9, Step::Answer)];
const ASKED_SILENT: Script = &[(10, Step::Ask), (3600, Step::Settle)];
const ASKED_BUSY: Script = &[
    (15, Step::Report),
    (1, Step::Ask),
    (3600, Step::Settle),
    (15, Step::Report),
    (15, Step::Report),
    (15, Step::Report),
];
const NESTED: Script = &[
    (10, Step::Ask),
    (10, Step::Ask),
    (100, Step::Settle),
    (100, Step::Settle),
    (9, Step::Answer),
];
const STRAY: Script = &[(5, Step::Settle), (5, Step::Settle)];
const WAITING: Script = &[(10, Step::Report), (10, Step::Ask)];

#[tokio::test(start_paused = true)]
async fn progress_restarts_the_timeout_and_human_delay_does_not_count() {
    let at = |secs| Cap::At(Duration::from_secs(secs));
    let cap = Cap::default();
    let timeout = Some(ErrorKind::Timeout);
    let asked = "3600s of waiting for a person are not counted";
    for (script, cap, secs, fails, shows) in [
        (PROGRESS, cap, 54, None, ""),
        (SILENT, cap, 45, timeout, "timeout of 20s, at most 200s"),
        (SILENT, cap, 45, timeout, "the last progress was 20s ago"),
        (BUSY, cap, 200, timeout, "within 200s"),
        (BUSY, cap, 200, timeout, "the last progress was 5s ago"),
        (BUSY, at(70), 70, timeout, "within 70s"),
        (BUSY, Cap::Times(1), 20, timeout, "timeout of 20s"),
        (BUSY, at(1), 20, timeout, "timeout of 20s"),
        (ASKED, cap, 3619, None, ""),
        // nor after the time is taken up again
        (ASKED_SILENT, cap, 3620, timeout, asked),
        // nor against the cap
        (ASKED_BUSY, Cap::Times(3), 3660, timeout, asked),
        (NESTED, cap, 229, None, ""),
        (STRAY, cap, 20, timeout, "timeout of 20s"),
    ] {
        let (ended, result) = run(cap, request(), script).await;
        assert_eq!(ended, secs, "{script:?}");
        let error = result.err();
        assert_eq!(error.as_ref().map(ToolError::kind), fails, "{script:?}");
        if let Some(error) = error {
            assert_eq!(error.delivery(), Delivery::Unknown);
            assert!(error.message().contains(shows), "{error}");
        }
    }
    // the deadline holds despite both
    let call = request().with_deadline(within(50));
    let (secs, result) = run(Cap::default(), call, WAITING).await;
    let error = result.unwrap_err();
    assert_eq!((secs, error.kind()), (50, ErrorKind::DeadlineExceeded));
    assert!(
        error.message().contains("the last progress was 40s ago"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_share_ends_the_attempt_only_if_a_retry_follows() {
    const WAITS: Script = &[(2, Step::Ask), (100, Step::Settle)];
    const LATE: Script = &[(9, Step::Answer)];
    let (timeout, deadline) = (ErrorKind::Timeout, ErrorKind::DeadlineExceeded);
    for (script, share_secs, retried, idle, secs, fails) in [
        (&[][..], 7, true, 0, 7, Some(timeout)),
        (WAITS, 7, true, 0, 107, Some(timeout)),
        // it counts from when the attempt is sent
        (&[], 3, true, 4, 3, Some(timeout)),
        (LATE, 3, false, 990, 9, None),
        (&[], 3, false, 990, 10, Some(deadline)),
    ] {
        let mut call = request().with_deadline(within(1000));
        call.attempt_mut().share = Some(share(Duration::from_secs(share_secs), retried));
        tokio::time::advance(Duration::from_secs(idle)).await;
        let (ended, result) = run(Cap::default(), call, script).await;
        let error = result.err();
        assert_eq!(error.as_ref().map(ToolError::kind), fails, "{script:?}");
        assert_eq!(ended, secs, "{script:?}");
        if fails == Some(timeout) && script.is_empty() {
            let message = error.unwrap().message().to_owned();
            let within = format!("no answer within {share_secs}s, its share");
            assert!(message.starts_with(&within), "{message}");
        }
    }
}

#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl ProgressSink for Noted {
    fn report(&self, params: &[u8]) {
        let params = String::from_utf8_lossy(params).into_owned();
        self.0.lock().push(params);
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
    run(Cap::default(), call, SCRIPT).await.1.unwrap();
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
