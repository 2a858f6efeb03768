//! What arrives where the environment asks for compression.

use std::process::Command;

use super::*;
use callward_telemetry::names;

const VARIABLE: &str = "OTEL_EXPORTER_OTLP_COMPRESSION";
const NAME: &str = "compressed::spans_that_are_compressed_arrive_whole";

/// Runs itself once more, with the variable: exporters of other tests read it, too, so it cannot be set
/// in their process.
#[tokio::test(flavor = "multi_thread")]
async fn spans_that_are_compressed_arrive_whole() {
    if std::env::var_os(VARIABLE).is_none() {
        let again = Command::new(std::env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .env(VARIABLE, "gzip")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&again.stdout);
        assert!(told.contains("1 passed"), "{told}");
        return;
    }
    let collector = Collector::start().await;
    let exporter = to(&collector).with_batch(20).start().unwrap();
    calls(&exporter, 50).await;
    let counts = exporter.shutdown(NEVER).await;
    assert_eq!((counts.exported, counts.lost()), (100, 0));
    let requests = collector.requests();
    assert_eq!(requests.len(), 5);
    for request in requests {
        assert_eq!(request["content-encoding"], "gzip");
        // uncompressed it takes some hundred bytes a span
        let length: usize = request["content-length"].to_str().unwrap().parse().unwrap();
        assert!(length < 20 * 100, "{length} bytes for 20 spans");
    }
    let spans = collector.spans();
    let calls: Vec<_> = spans.iter().filter(|span| span.parent.is_none()).collect();
    assert_eq!((spans.len(), calls.len()), (100, 50));
    for call in calls {
        assert_eq!(call.service(), "test");
        assert_eq!(call.attributes[names::TOOL], "read_order");
    }
}
