//! What a collector receives from the binary, and that a faulty one does not affect calls.

use callward_testkit::collector::{Collector, Mood};
use serde_json::json;

use crate::support::{Gateway, within};

/// Serves the sample; spans are sent in batches of ten and by nothing else.
async fn serve(endpoint: &str, queue: &str, timeout: &str) -> Gateway {
    let variables = [
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", queue),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", timeout),
    ];
    let config = format!(
        "[telemetry]\notlp_endpoint = \"{endpoint}\"\n[servers.shop]\n\
         command = \"CALLWARD\"\nargs = [\"sample\"]\n"
    );
    Gateway::with_variables(&config, &variables).await
}

/// Makes a thousand calls, each of which has to be answered.
async fn thousand_calls(gateway: &Gateway) {
    for number in 0..1_000 {
        let order = json!({ "order_id": number % 3 + 1 });
        let answer = gateway.call("shop__get_order", order).await;
        assert!(answer["result"].is_object(), "{number}: {answer}");
    }
}

/// How many spans the gateway makes of a thousand calls.
async fn spans_of_a_thousand_calls() -> usize {
    let collector = Collector::start().await;
    let gateway = serve(collector.endpoint(), "100000", "10000").await;
    thousand_calls(&gateway).await;
    let said = gateway.stopped().await;
    assert!(!said.contains("did not reach"), "{said}");
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.service() == "callward"));
    assert!(spans.len() >= 1_000, "{}", spans.len());
    let calls = collector.metric("callward.calls");
    let calls: f64 = calls.iter().map(|series| series.value).sum();
    assert_eq!(calls, 1_000.0);
    spans.len()
}

/// Reads the number of spans with this result from the Prometheus page.
async fn counted(gateway: &Gateway, result: &str) -> usize {
    let (_, page) = gateway.get("/metrics").await;
    let series = format!("callward_telemetry_spans_total{{callward_result=\"{result}\"}} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&*series));
    value.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

#[tokio::test]
async fn a_collector_that_hangs_costs_no_call_and_each_span_is_accounted_for() {
    let made = spans_of_a_thousand_calls().await;
    let collector = Collector::start().await;
    collector.behave(Mood::Hangs);
    let gateway = serve(collector.endpoint(), "100", "3600000").await;
    thousand_calls(&gateway).await;
    // a hundred wait, ten of them in flight
    let dropped = counted(&gateway, "dropped").await;
    assert_eq!(dropped, made - 100);
    assert_eq!(counted(&gateway, "exported").await, 0);
    collector.behave(Mood::Takes);
    within("the queue", collector.until_spans(100)).await;
    let said = gateway.stopped().await;
    assert_eq!(collector.spans().len(), 100);
    let lost = format!("{dropped} of {made} spans did not reach the collector");
    assert!(said.contains(&lost), "{said}");
}
