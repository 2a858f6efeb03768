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

/// A call with an attempt timeout of 20 s, ten times the estimated duration.
fn request() -> ToolCall {
    let slow = tool("slow").hint(|hints| hints.estimated_duration = Some(2000.0));
    call(&slow.build(), json!({}))
}

fn within(secs: u64) -> std::time::Instant {
    (Instant::now() + Duration::from_secs(secs)).into_std()
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
            for step in steps
                .cycle()
                .take(times * script.split_whitespace().count())
            {
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
    let lines = SCRIPTS.trim().lines().skip(1);
    for line in lines {
        let cells = line.split("  ").map(str::trim);
        let cells: Vec<_> = cells.filter(|cell| !cell.is_empty()).collect();
        let [cap, script, ends, shows] = cells[..] else {
            panic!("{line}")
        };
        let cap = match cap.strip_prefix('x') {
            Some(times) => Cap::Times(times.parse().unwrap()),
            None => Cap::At(Duration::from_secs(cap.parse().unwrap())),
        };
        let (ended, result) = run(cap, request(), script).await;
        assert_eq!(ended.to_string(), ends, "{line}");
        match result {
            Ok(_) => assert_eq!(shows, "none", "{line}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Timeout, "{line}");
                assert_eq!(error.delivery(), Delivery::Unknown, "{line}");
                assert!(error.message().contains(shows), "{line}: {error}");
            }
        }
    }
    // the deadline holds despite both
    let call = request().with_deadline(within(50));
    let (secs, result) = run(Cap::default(), call, "r10 q10").await;
    let error = result.unwrap_err();
    assert_eq!((secs, error.kind()), (50, ErrorKind::DeadlineExceeded));
    assert!(
        error.message().contains("the last progress was 40s ago"),
        "{error}"
    );
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
    let noted = Arc::new(Noted::default());
    let call = request().with_progress(noted.clone());
    run(Cap::default(), call, "r1 q1 s1 a1").await.1.unwrap();
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
