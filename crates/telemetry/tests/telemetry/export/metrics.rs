//! Metrics, among them the outcomes of spans.

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;

use super::*;
use callward_telemetry::names;

#[tokio::test(flavor = "multi_thread")]
async fn metrics_arrive_with_the_outcomes_of_spans() {
    let collector = Collector::start().await;
    let mut config = to(&collector);
    (config.queue, config.batch) = (4, 4);
    let exporter = config.start().unwrap();
    let provider = SdkMeterProvider::builder()
        .with_resource(exporter.resource())
        .with_reader(exporter.metric_reader().unwrap().unwrap())
        .build();
    exporter.observe(&provider.meter("test"));
    calls(&exporter, 2).await;
    within("the batch", collector.until_spans(4)).await;
    // the exporter may not have read the answer yet
    let flush = provider.clone();
    within("the end", async move {
        tokio::task::spawn_blocking(move || flush.shutdown())
            .await
            .unwrap()
            .unwrap();
    })
    .await;
    let mut points = collector.metric(names::metric::TELEMETRY_SPANS.name);
    points.sort_by_key(|point| point.attributes[names::metric::label::RESULT].to_string());
    let results = points
        .iter()
        .map(|point| &point.attributes[names::metric::label::RESULT]);
    assert_eq!(
        results.collect::<Vec<_>>(),
        ["dropped", "exported", "failed"]
    );
    assert_eq!(points[0].value, 0.0);
    assert_eq!(exporter.shutdown(NEVER).await.exported, 4);
}
