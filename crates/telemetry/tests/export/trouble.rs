//! Collectors that are dead, slow or of another opinion.

use super::*;
use callward_testkit::collector::Mood;

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_collector_costs_spans_and_no_call() {
    let dead = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let exporter = OtlpConfig::new(&format!("http://{dead}"))
        .unwrap()
        .with_queue(64)
        .with_batch(64)
        .with_interval(NEVER)
        .start()
        .unwrap();
    calls(&exporter, 1_000).await;
    let counts = exporter.shutdown(Duration::ZERO).await;
    assert_eq!(counts.exported, 0);
    assert_eq!(counts.lost(), 2_000, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_collector_loses_what_has_no_place_and_not_one_more() {
    let collector = Collector::start().await;
    collector.behave(Mood::Hangs);
    let exporter = to(&collector)
        .with_queue(100)
        .with_batch(10)
        .with_timeout(NEVER)
        .start()
        .unwrap();
    calls(&exporter, 5).await;
    within("a request", collector.until(|now| now.requests().pop())).await;
    // ten are on their way; of two thousand a hundred find a place
    calls(&exporter, 1_000).await;
    assert_eq!(exporter.counts().dropped, 1_900);
    assert_eq!(exporter.counts().exported, 0);

    collector.behave(Mood::Takes);
    let spans = within("what waited", collector.until_spans(110)).await;
    assert_eq!(spans.len(), 110);
    let counts = exporter.shutdown(NEVER).await;
    assert_eq!(
        (counts.exported, counts.dropped, counts.failed),
        (110, 1_900, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_leaves_a_hanging_collector_behind() {
    let collector = Collector::start().await;
    collector.behave(Mood::Hangs);
    let exporter = to(&collector)
        .with_batch(10)
        .with_timeout(NEVER)
        .start()
        .unwrap();
    calls(&exporter, 5).await;
    within("a request", collector.until(|now| now.requests().pop())).await;
    calls(&exporter, 2).await;
    let counts = within("the end", exporter.shutdown(Duration::from_millis(1))).await;
    assert_eq!((counts.exported, counts.dropped, counts.failed), (0, 4, 10));
    calls(&exporter, 1).await;
    assert_eq!(exporter.counts().dropped, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_has_failed_and_what_is_refused_in_part_in_part() {
    let collector = Collector::start().await;
    collector.behave(Mood::Refuses(400));
    let exporter = to(&collector).with_batch(4).start().unwrap();
    calls(&exporter, 2).await;
    within("an answer", collector.until(|now| now.answers().pop())).await;
    collector.behave(Mood::Rejects(3));
    calls(&exporter, 2).await;
    let counts = exporter.shutdown(NEVER).await;
    assert_eq!((counts.exported, counts.dropped, counts.failed), (1, 0, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_pass_is_sent_again() {
    let collector = Collector::start().await;
    collector.behave(Mood::Refuses(503));
    let exporter = to(&collector).with_batch(4).start().unwrap();
    calls(&exporter, 2).await;
    within("an answer", collector.until(|now| now.answers().pop())).await;
    collector.behave(Mood::Takes);
    within("the repeat", collector.until_spans(4)).await;
    let counts = exporter.shutdown(NEVER).await;
    assert_eq!((counts.exported, counts.lost()), (4, 0));
    assert!(collector.answers().ends_with(&[503, 200]));
}
