//! Collectors that are dead or slow, or refuse spans.

use super::*;
use callward_testkit::collector::Mood;

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_collector_fails_no_call() {
    let dead = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let mut config = OtlpConfig::new(&format!("http://{dead}")).unwrap();
    (config.queue, config.batch, config.interval) = (64, 64, NEVER);
    let exporter = config.start().unwrap();
    calls(&exporter, 1_000).await;
    let counts = exporter.shutdown(Duration::ZERO).await;
    assert_eq!(counts.exported, 0);
    assert_eq!(counts.lost(), 2_000, "{counts:?}");
}

/// Starts a collector that does not answer, and an exporter with ten spans in flight.
async fn hanging() -> (Collector, Exporter) {
    let collector = Collector::start().await;
    collector.behave(Mood::Hangs);
    let mut config = to(&collector);
    (config.queue, config.batch, config.timeout) = (100, 10, NEVER);
    let exporter = config.start().unwrap();
    calls(&exporter, 5).await;
    within("a request", collector.until(|now| now.requests().pop())).await;
    (collector, exporter)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_collector_loses_only_what_exceeds_the_queue() {
    let (collector, exporter) = hanging().await;
    // ten of a hundred are in flight; ninety of two thousand are admitted
    calls(&exporter, 1_000).await;
    assert_eq!(exporter.counts().dropped, 1_910);
    assert_eq!(exporter.counts().exported, 0);

    collector.behave(Mood::Takes);
    let spans = within("the queue", collector.until_spans(100)).await;
    assert_eq!(spans.len(), 100);
    let counts = exporter.shutdown(NEVER).await;
    let counts = (counts.exported, counts.dropped, counts.failed);
    assert_eq!(counts, (100, 1_910, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_does_not_wait_for_a_hanging_collector() {
    let (_collector, exporter) = hanging().await;
    calls(&exporter, 2).await;
    let counts = within("the end", exporter.shutdown(Duration::from_millis(1))).await;
    assert_eq!((counts.exported, counts.dropped, counts.failed), (0, 14, 0));
    // calls go on
    calls(&exporter, 1).await;
    assert_eq!(exporter.counts().exported, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_spans_are_counted_as_failed_or_retried() {
    for (status, is_transient) in [(400, false), (503, true)] {
        let collector = Collector::start().await;
        collector.behave(Mood::Refuses(status));
        let exporter = in_batches(&collector, 4);
        calls(&exporter, 2).await;
        within("an answer", collector.until(|now| now.answers().pop())).await;
        collector.behave(Mood::Takes);
        if is_transient {
            within("the retry", collector.until_spans(4)).await;
            assert!(collector.answers().ends_with(&[503, 200]));
        }
        calls(&exporter, 2).await;
        let counts = exporter.shutdown(NEVER).await;
        let lost = if is_transient { 0 } else { 4 };
        let counts = (counts.exported, counts.dropped, counts.failed);
        assert_eq!(counts, (8 - lost, 0, lost));
    }
}
