//! A queue that nobody empties, and a file that cannot be written.

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
    let config = AuditConfig::new("nowhere")
        .with_queue(4)
        .with_on_full(on_full);
    AuditLog::queue(&config)
}

#[tokio::test(start_paused = true)]
async fn where_calls_wait_none_is_sent_that_has_no_room_and_none_is_lost() {
    let (log, messages) = stuck(OnFull::Block);
    let (service, server) = service(&log);
    let tasks: Vec<_> = (0..10)
        .map(|_| tokio::spawn(service.clone().oneshot(restricted())))
        .collect();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(server.started(), 4);
    assert_eq!(log.stats().waited, 6);
    // as the writer does: one is written, its place is free
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
async fn where_calls_do_not_wait_what_has_no_room_is_dropped_and_counted() {
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
async fn a_call_waits_for_room_until_its_deadline_and_is_not_sent() {
    let (log, _messages) = stuck(OnFull::Block);
    let (service, server) = service(&log);
    for _ in 0..4 {
        service.clone().oneshot(restricted()).await.unwrap();
    }
    let before = Instant::now();
    let deadline = before + Duration::from_secs(2);
    let late = restricted().with_deadline(deadline.into_std());
    let error = service.oneshot(late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!((before.elapsed().as_secs(), server.started()), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_while_it_waits_was_not_sent_and_takes_no_place() {
    let (log, messages) = stuck(OnFull::Block);
    let (service, server) = service(&log);
    for _ in 0..4 {
        service.clone().oneshot(restricted()).await.unwrap();
    }
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
async fn a_result_larger_than_the_queue_waits_for_all_of_it_and_passes() {
    let (log, messages) = stuck(OnFull::Block);
    let large = ToolOutput::text("x".repeat(1 << 20));
    let server = MockService::sequence(vec![Ok(large)]);
    let service = AuditLayer::new(log.clone()).layer(server);
    let answer = tokio::spawn(service.oneshot(restricted()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(answer.is_finished());
    assert!(log.try_place(1).is_none());
    drop(messages.try_recv().unwrap());
    assert!(log.try_place(4).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_the_disk_where_that_is_asked_for() {
    let config = AuditConfig::new("nowhere").with_fsync(Fsync::EveryRecord);
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
        panic!("a record that somebody waits for expected")
    };
    done.send(()).unwrap();
    answer.await.unwrap().unwrap();
}

/// Does what the writer does once the system has a record.
fn write_one(log: &AuditLog, messages: &Receiver<Message>) {
    drop(messages.try_recv().unwrap());
    log.0.counts.unwritten.lock().written(1);
}

/// Makes calls one after the other; returns how many were answered before the first that was not.
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
async fn answers_wait_while_a_thousand_records_are_not_written() {
    let (log, messages) = AuditLog::queue(&AuditConfig::new("nowhere"));
    let (service, server) = service(&log);
    assert_eq!(answered(&service, 2000).await, 1000);
    let late = tokio::spawn(service.clone().oneshot(restricted()));
    tokio::task::yield_now().await;
    // both were made, and their records are in the queue: only the answers wait
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
        let config = AuditConfig::new("nowhere").with_fsync(fsync);
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
async fn where_calls_do_not_wait_for_room_no_answer_waits_for_the_writer() {
    let config = AuditConfig::new("nowhere").with_on_full(OnFull::Drop);
    let (log, messages) = AuditLog::queue(&config);
    let (service, _server) = service(&log);
    assert_eq!(answered(&service, 1).await, 1);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(answered(&service, 2000).await, 2000);
    assert_eq!(messages.try_iter().count(), 2001);
}

/// A log whose disk can be taken away.
fn failing(config: &AuditConfig) -> (AuditLog, Arc<AtomicBool>) {
    let main = LogFile::open(&config.path, config).unwrap();
    let fails = main.fails.clone();
    let logs = Logs {
        main,
        open_world: None,
    };
    let (log, messages) = AuditLog::queue(config);
    let (counts, config) = (log.0.counts.clone(), config.clone());
    std::thread::spawn(move || writer::run(&messages, logs, &config, &counts));
    (log, fails)
}

#[tokio::test]
async fn while_a_file_cannot_be_written_no_call_is_sent_that_needs_a_full_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let config = AuditConfig::new(&path).with_open_world_path(&path);
    let (log, fails) = failing(&config);
    let (service, server) = service(&log);
    fails.store(true, Ordering::Relaxed);
    // it shows with the first record that cannot be written
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
    // nothing is missing: what could not be written waited
    let report = verify(&[path], None, &mut |_| {}).unwrap().remove(0);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.calls, report.lost), (4, 0));
    assert_eq!(log.stats().failed, 0);
}

#[tokio::test]
async fn where_calls_go_on_what_cannot_be_kept_is_counted_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let config = AuditConfig::new(&path)
        .with_open_world_path(&path)
        .with_on_failure(OnFailure::FailOpen);
    let (log, fails) = failing(&config);
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
    let report = verify(&[path], None, &mut |_| {}).unwrap().remove(0);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.calls, report.lost), (100 - lost, lost));
    assert_eq!(log.stats().written, 100 - lost);
}
