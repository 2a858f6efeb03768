//! A queue without a writer, and a file that cannot be written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{SecurityLevel, ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::sleep;
use tower::ServiceExt;
use tower_layer::Layer;

use super::*;
use crate::service::Answer;
use crate::{Audit, AuditLayer, Fsync, verify};

fn leveled(level: SecurityLevel) -> ToolCall {
    let pay = tool("pay").hint(|hints| hints.security_level = Some(level));
    call(&pay.build(), json!({}))
}

/// A call that needs a full record.
fn restricted() -> ToolCall {
    leveled(SecurityLevel::Restricted)
}

/// An audited server.
struct Bed {
    log: AuditLog,
    server: MockService,
    service: Audit<MockService>,
}

impl Bed {
    fn new(log: AuditLog, server: MockService) -> Self {
        Self {
            service: AuditLayer::new(log.clone()).layer(server.clone()),
            log,
            server,
        }
    }

    async fn call(&self, call: ToolCall) -> Answer {
        self.service.clone().oneshot(call).await
    }

    fn spawn(&self) -> tokio::task::JoinHandle<Answer> {
        tokio::spawn(self.service.clone().oneshot(restricted()))
    }

    /// Sends calls in sequence; returns how many were answered before the first that waits.
    async fn answered(&self, calls: usize) -> usize {
        for made in 0..calls {
            let call = self.spawn();
            tokio::task::yield_now().await;
            if !call.is_finished() {
                return made;
            }
        }
        calls
    }

    /// Acts as the writer after a write: a written record releases its permit.
    fn write_one(&self, messages: &Receiver<Message>) {
        drop(messages.try_recv().unwrap());
        self.log.0.state.lock().written(1);
    }
}

/// A log whose queue nothing takes records from.
fn stuck(change: impl FnOnce(&mut AuditConfig)) -> (Bed, Receiver<Message>) {
    let mut config = AuditConfig::new("nowhere");
    change(&mut config);
    let (log, messages, _) = AuditLog::queue(&config);
    (Bed::new(log, MockService::counting()), messages)
}

#[tokio::test(start_paused = true)]
async fn with_on_full_block_calls_wait_and_no_record_is_dropped() {
    let (bed, messages) = stuck(|config| config.queue = 4);
    let tasks: Vec<_> = (0..10).map(|_| bed.spawn()).collect();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(bed.server.started(), 4);
    for _ in 0..10 {
        bed.write_one(&messages);
        sleep(Duration::from_millis(1)).await;
    }
    assert!(messages.try_recv().is_err());
    assert_eq!(bed.server.started(), 10);
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(bed.log.stats().dropped, 0);
}

#[tokio::test(start_paused = true)]
async fn with_on_full_drop_records_are_dropped_and_no_answer_waits() {
    let (bed, messages) = stuck(|config| (config.queue, config.on_full) = (1500, OnFull::Drop));
    assert_eq!(bed.answered(1).await, 1);
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(bed.answered(2000).await, 2000);
    assert_eq!((bed.server.started(), bed.log.stats().dropped), (2001, 501));
    assert_eq!(messages.try_iter().count(), 1500);
    assert_eq!(bed.answered(1).await, 1);
    assert_eq!(bed.log.stats().dropped, 501);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_leaves_the_queue_is_not_sent_and_holds_no_permit() {
    let (bed, messages) = stuck(|config| config.queue = 4);
    assert_eq!(bed.answered(4).await, 4);
    let before = Instant::now();
    let deadline = before + Duration::from_secs(2);
    let late = restricted().with_deadline(deadline.into_std());
    let error = bed.call(late).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery, Delivery::NotSent);
    assert_eq!((before.elapsed().as_secs(), bed.server.started()), (2, 4));
    let waited = tokio::time::timeout(Duration::from_secs(1), bed.call(restricted())).await;
    assert!(waited.is_err());
    assert_eq!(bed.log.stats().dropped, 2);
    (0..4).for_each(|_| bed.write_one(&messages));
    assert!(messages.try_recv().is_err());
    bed.call(restricted()).await.unwrap();
    assert_eq!(bed.server.started(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_result_larger_than_the_queue_takes_all_permits() {
    let (Bed { log, .. }, messages) = stuck(|config| config.queue = 4);
    let large = ToolOutput::text("x".repeat(1 << 20));
    let bed = Bed::new(log, MockService::sequence(vec![Ok(large)]));
    let answer = bed.spawn();
    sleep(Duration::from_secs(1)).await;
    assert!(answer.is_finished());
    assert!(bed.log.try_permits(1).is_none());
    bed.write_one(&messages);
    assert!(bed.log.try_permits(4).is_some());
}

#[tokio::test(start_paused = true)]
async fn with_fsync_every_record_an_answer_waits_for_the_disk() {
    let (bed, messages) = stuck(|config| config.fsync = Fsync::EveryRecord);
    let answer = bed.spawn();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(bed.server.finished(), 1);
    assert!(!answer.is_finished());
    // the message holds what the answer waits for
    bed.write_one(&messages);
    answer.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn answers_wait_while_1000_records_are_unwritten() {
    let (bed, messages) = stuck(|_| {});
    assert_eq!(bed.answered(2000).await, 1000);
    let late = bed.spawn();
    tokio::task::yield_now().await;
    // both calls ended, and their records are queued: only the answers wait
    assert_eq!(bed.server.finished(), 1002);
    for _ in 0..1002 {
        assert!(!late.is_finished());
        bed.write_one(&messages);
        tokio::task::yield_now().await;
    }
    late.await.unwrap().unwrap();
    assert_eq!(bed.answered(2000).await, 1000);
}

#[tokio::test(start_paused = true)]
async fn answers_wait_while_a_record_stays_unwritten() {
    for (fsync, longest) in [
        (Fsync::Interval(Duration::from_secs(60)), 250),
        (Fsync::Interval(Duration::from_millis(50)), 50),
        (Fsync::Never, 250),
    ] {
        let (bed, messages) = stuck(|config| config.fsync = fsync);
        assert_eq!(bed.answered(1).await, 1);
        sleep(Duration::from_millis(longest - 1)).await;
        assert_eq!(bed.answered(1).await, 1, "{fsync:?}");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(bed.answered(1).await, 0, "{fsync:?}");
        bed.write_one(&messages);
        // the second is younger
        assert_eq!(bed.answered(1).await, 1, "{fsync:?}");
    }
}

/// A log of one file whose disk can fail. An answer waits for its record.
fn failing(on_failure: OnFailure) -> (tempfile::TempDir, AuditLog, Arc<AtomicBool>) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = AuditConfig::new(folder.path().join("a.jsonl"));
    config.open_world_path.clone_from(&config.path);
    (config.on_failure, config.fsync) = (on_failure, Fsync::EveryRecord);
    let main = LogFile::open(&config.path, &config).unwrap();
    let fails = main.fails.clone();
    let log = AuditLog::start(&config, main, None).unwrap();
    (folder, log, fails)
}

/// Closes a log; returns the calls that it has and that it states as lost.
async fn closed(log: &AuditLog) -> (u64, u64) {
    log.close().await;
    let reports = verify(&[log.paths()[0].to_owned()], None);
    let report = reports.unwrap().remove(0);
    assert!(report.is_whole(), "{report:?}");
    (report.calls, report.lost)
}

#[tokio::test]
async fn fail_closed_refuses_calls_that_need_a_full_record() {
    let (_folder, log, fails) = failing(OnFailure::FailClosed);
    let bed = Bed::new(log.clone(), MockService::counting());
    fails.store(true, Ordering::Relaxed);
    // the first record that cannot be written shows it
    bed.call(restricted()).await.unwrap();
    assert!(log.stats().is_failing);
    let error = bed.call(restricted()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert_eq!(error.delivery, Delivery::NotSent);
    assert!(error.message.contains("no space"), "{error}");
    bed.call(leveled(SecurityLevel::Internal)).await.unwrap();
    assert_eq!((bed.server.started(), log.stats().refused_calls), (2, 1));

    fails.store(false, Ordering::Relaxed);
    bed.call(leveled(SecurityLevel::Internal)).await.unwrap();
    assert!(!log.stats().is_failing);
    bed.call(restricted()).await.unwrap();
    // nothing is missing: the records were buffered
    assert_eq!(closed(&log).await, (5, 0));
    assert_eq!(log.stats().failed, 0);
}

#[tokio::test]
async fn fail_open_counts_lost_records_and_states_them() {
    let (_folder, log, fails) = failing(OnFailure::FailOpen);
    let text = "x".repeat(60_000);
    let bed = Bed::new(
        log.clone(),
        MockService::new(move |_, _| std::future::ready(Ok(ToolOutput::text(&text)))),
    );
    fails.store(true, Ordering::Relaxed);
    for _ in 0..100 {
        bed.call(restricted()).await.unwrap();
    }
    let lost = log.stats().failed;
    assert!((20..60).contains(&lost), "{lost}");
    fails.store(false, Ordering::Relaxed);
    assert_eq!(closed(&log).await, (100 - lost, lost));
    assert_eq!(log.stats().written, 100 - lost);
}
