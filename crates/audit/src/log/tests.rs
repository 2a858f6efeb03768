//! A queue without a writer, and a file that cannot be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use callward_core::{ErrorKind, ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;

use super::*;
use crate::{AuditLayer, Fsync, verify};

fn restricted() -> ToolCall {
    let pay = tool("pay").hint(|hints| hints.audit_required = Some(true));
    call(&pay.build(), json!({}))
}

fn service(log: &AuditLog) -> (crate::Audit<MockService>, MockService) {
    let server = MockService::new(|_, _| async { Ok(ToolOutput::text("done")) });
    (AuditLayer::new(log.clone()).layer(server.clone()), server)
}

fn stuck(on_full: OnFull) -> (AuditLog, Receiver<Message>) {
    let mut config = AuditConfig::new("nowhere");
    config.queue = 4;
    config.on_full = on_full;
    AuditLog::queue(&config)
}

#[tokio::test(start_paused = true)]
async fn with_on_full_block_calls_wait_and_no_record_is_dropped() {
    let (log, messages) = stuck(OnFull::Block);
    let (service, server) = service(&log);
    let tasks: Vec<_> = (0..10)
        .map(|_| tokio::spawn(service.clone().oneshot(restricted())))
        .collect();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(server.started(), 4);
    assert_eq!(log.stats().waited, 6);
    // as the writer does: a written record releases its permit
    let mut written = 0;
    while let Ok(message) = messages.try_recv() {
        drop(message);
        written += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!((written, server.started()), (10, 10));
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(log.stats().dropped, 0);
}

#[tokio::test(start_paused = true)]
async fn with_on_full_drop_records_are_dropped_and_counted() {
    let (log, messages) = stuck(OnFull::Drop);
    let (service, server) = service(&log);
    for _ in 0..10 {
        service.clone().oneshot(restricted()).await.unwrap();
    }
    assert_eq!((server.started(), log.stats().dropped), (10, 6));
    assert_eq!(messages.try_iter().count(), 4);
    service.oneshot(restricted()).await.unwrap();
    assert_eq!(log.stats().dropped, 6);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_queue_until_its_deadline() {
    let (log, _messages) = stuck(OnFull::Block);
    let (service, server) = service(&log);
    assert_eq!(answered(&service, 4).await, 4);
    let before = Instant::now();
    let deadline = before + Duration::from_secs(2);
    let late = restricted().with_deadline(deadline.into_std());
    let error = service.oneshot(late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!((before.elapsed().as_secs(), server.started()), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn a_call_cancelled_in_the_queue_is_not_sent_and_holds_no_permit() {
    let (log, messages) = stuck(OnFull::Block);
    let (service, server) = service(&log);
    assert_eq!(answered(&service, 4).await, 4);
    let given_up = service.clone().oneshot(restricted());
    let waited = tokio::time::timeout(Duration::from_secs(1), given_up).await;
    assert!(waited.is_err());
    assert_eq!(log.stats().dropped, 1);
    for _ in 0..4 {
        write_one(&log, &messages);
    }
    assert!(messages.try_recv().is_err());
    service.oneshot(restricted()).await.unwrap();
    assert_eq!(server.started(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_result_larger_than_the_queue_takes_all_permits() {
    let (log, messages) = stuck(OnFull::Block);
    let large = ToolOutput::text("x".repeat(1 << 20));
    let server = MockService::sequence(vec![Ok(large)]);
    let service = AuditLayer::new(log.clone()).layer(server);
    let answer = tokio::spawn(service.oneshot(restricted()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(answer.is_finished());
    assert!(log.try_permits(1).is_none());
    drop(messages.try_recv().unwrap());
    assert!(log.try_permits(4).is_some());
}

#[tokio::test(start_paused = true)]
async fn with_fsync_every_record_an_answer_waits_for_the_disk() {
    let mut config = AuditConfig::new("nowhere");
    config.fsync = Fsync::EveryRecord;
    let (log, messages) = AuditLog::queue(&config);
    let (service, server) = service(&log);
    let answer = tokio::spawn(service.oneshot(restricted()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.finished(), 1);
    assert!(!answer.is_finished());
    let Ok(Message::Event {
        done: Some(done), ..
    }) = messages.try_recv()
    else {
        panic!("expected a record with a waiting answer")
    };
    done.send(()).unwrap();
    answer.await.unwrap().unwrap();
}

/// Acts as the writer after a write.
fn write_one(log: &AuditLog, messages: &Receiver<Message>) {
    drop(messages.try_recv().unwrap());
    log.0.state.lock().unwritten.written(1);
}

/// Sends calls in sequence; returns how many were answered before the first that waits.
async fn answered(service: &crate::Audit<MockService>, calls: usize) -> usize {
    for made in 0..calls {
        let call = tokio::spawn(service.clone().oneshot(restricted()));
        tokio::task::yield_now().await;
        if !call.is_finished() {
            return made;
        }
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn answers_wait_while_1000_records_are_unwritten() {
    let (log, messages) = AuditLog::queue(&AuditConfig::new("nowhere"));
    let (service, server) = service(&log);
    assert_eq!(answered(&service, 2000).await, 1000);
    let late = tokio::spawn(service.clone().oneshot(restricted()));
    tokio::task::yield_now().await;
    // both calls ended, and their records are queued: only the answers wait
    assert_eq!(server.finished(), 1002);
    for _ in 0..1002 {
        assert!(!late.is_finished());
        write_one(&log, &messages);
        tokio::task::yield_now().await;
    }
    late.await.unwrap().unwrap();
    assert_eq!(answered(&service, 2000).await, 1000);
}

#[tokio::test(start_paused = true)]
async fn answers_wait_while_a_record_is_unwritten_for_a_second() {
    for (fsync, longest) in [
        (Fsync::Interval(Duration::from_secs(60)), 1000),
        (Fsync::Interval(Duration::from_millis(50)), 50),
        (Fsync::Never, 1000),
    ] {
        let mut config = AuditConfig::new("nowhere");
        config.fsync = fsync;
        let (log, messages) = AuditLog::queue(&config);
        let (service, _server) = service(&log);
        assert_eq!(answered(&service, 1).await, 1);
        tokio::time::sleep(Duration::from_millis(longest - 1)).await;
        assert_eq!(answered(&service, 1).await, 1, "{fsync:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(answered(&service, 1).await, 0, "{fsync:?}");
        write_one(&log, &messages);
        // the second is younger
        assert_eq!(answered(&service, 1).await, 1, "{fsync:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_on_full_drop_no_answer_waits_for_the_writer() {
    let mut config = AuditConfig::new("nowhere");
    config.on_full = OnFull::Drop;
    let (log, messages) = AuditLog::queue(&config);
    let (service, _server) = service(&log);
    assert_eq!(answered(&service, 1).await, 1);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(answered(&service, 2000).await, 2000);
    assert_eq!(messages.try_iter().count(), 2001);
}

/// A log of one file whose disk can fail.
fn failing(on_failure: OnFailure) -> (tempfile::TempDir, AuditLog, Arc<AtomicBool>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let mut config = AuditConfig::new(&path);
    config.open_world_path = path;
    config.on_failure = on_failure;
    let main = LogFile::open(&config.path, &config).unwrap();
    let fails = main.fails.clone();
    let logs = Logs {
        main,
        open_world: None,
    };
    (folder, AuditLog::start(&config, logs).unwrap(), fails)
}

fn whole(log: &AuditLog) -> crate::Report {
    let paths = [log.paths()[0].to_owned()];
    let report = verify(&paths, None).unwrap().remove(0);
    assert!(report.is_whole(), "{report:?}");
    report
}

#[tokio::test]
async fn fail_closed_refuses_calls_that_need_a_full_record() {
    let (_folder, log, fails) = failing(OnFailure::FailClosed);
    let (service, server) = service(&log);
    fails.store(true, Ordering::Relaxed);
    // the first record that cannot be written shows it
    service.clone().oneshot(restricted()).await.unwrap();
    log.flush().await;
    assert!(log.stats().is_failing);
    let error = service.clone().oneshot(restricted()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert!(error.message().contains("no space"), "{error}");
    let look = tool("look").hint(|hints| {
        hints.security_level = Some(callward_core::SecurityLevel::Internal);
    });
    let look = call(&look.build(), json!({}));
    service.clone().oneshot(look).await.unwrap();
    assert_eq!((server.started(), log.stats().refused_calls), (2, 1));

    fails.store(false, Ordering::Relaxed);
    log.flush().await;
    assert!(!log.stats().is_failing);
    service.oneshot(restricted()).await.unwrap();
    log.close().await;
    // nothing is missing: the records were buffered
    let report = whole(&log);
    assert_eq!((report.calls, report.lost), (4, 0));
    assert_eq!(log.stats().failed, 0);
}

#[tokio::test]
async fn fail_open_counts_lost_records_and_states_them() {
    let (_folder, log, fails) = failing(OnFailure::FailOpen);
    let text = "x".repeat(60_000);
    let server = MockService::new(move |_, _| {
        let output = ToolOutput::text(&text);
        async move { Ok(output) }
    });
    let service = AuditLayer::new(log.clone()).layer(server);
    fails.store(true, Ordering::Relaxed);
    for _ in 0..100 {
        service.clone().oneshot(restricted()).await.unwrap();
        log.flush().await;
    }
    let lost = log.stats().failed;
    assert!((20..60).contains(&lost), "{lost}");
    fails.store(false, Ordering::Relaxed);
    log.flush().await;
    log.close().await;
    let report = whole(&log);
    assert_eq!((report.calls, report.lost), (100 - lost, lost));
    assert_eq!(log.stats().written, 100 - lost);
}
