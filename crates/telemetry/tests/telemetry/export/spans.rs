//! Spans that arrive.

use super::*;
use callward_telemetry::names;
use callward_testkit::collector::path_to;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_arrives_as_a_trace_of_two_spans() {
    let collector = Collector::start().await;
    let mut config = to(&collector).with_header("x-key", "secret").unwrap();
    let attribute = ("deployment.environment.name".into(), "test".into());
    config.resource.extend([attribute]);
    let exporter = config.start().unwrap();
    calls(&exporter, 1).await;
    let counts = exporter.shutdown(NEVER).await;
    assert_eq!((counts.exported, counts.lost()), (2, 0));

    let spans = collector.spans();
    let [attempt, call] = &spans[..] else {
        panic!("{spans:#?}")
    };
    assert_eq!((call.parent.as_ref(), &call.trace), (None, &attempt.trace));
    let path = path_to(&spans, &attempt.trace, &attempt.id);
    assert_eq!(path.len(), 2);
    assert_eq!(call.attributes[names::TOOL], "read_order");
    assert_eq!(call.service(), "test");
    assert_eq!(call.resource["deployment.environment.name"], "test");
    for extra in ["code.file.path", "thread.id", "busy_ns", "target"] {
        assert!(!call.attributes.contains_key(extra), "{extra}");
    }
    let sent = &collector.requests()[0];
    assert_eq!(sent["x-key"], "secret");
    assert_eq!(sent["content-type"], "application/x-protobuf");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_other_crates_are_ignored() {
    let collector = Collector::start().await;
    let exporter = to(&collector).start().unwrap();
    let subscriber = tracing_subscriber::registry().with(exporter.layer());
    tracing::subscriber::with_default(subscriber, || {
        let _other = tracing::info_span!(target: "hyper", "connection").entered();
        let _ours = tracing::info_span!(target: names::TARGET, "ours").entered();
        tracing::info!(target: "callward_retry", "noted");
        tracing::debug!(target: "callward_retry", "not noted");
        tracing::info!(target: "hyper", "not noted");
    });
    exporter.shutdown(NEVER).await;
    let spans = collector.spans();
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["ours"]);
    assert_eq!(spans[0].events, ["noted"]);
}
