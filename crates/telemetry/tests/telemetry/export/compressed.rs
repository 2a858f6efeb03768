//! Compression, which the environment asks for.

use std::process::Command;

use super::*;
use callward_telemetry::names;

const VARIABLE: &str = "OTEL_EXPORTER_OTLP_COMPRESSION";
const NAME: &str = "export::compressed::compressed_spans_arrive_complete";

/// Runs itself again with the variable: it must not be set in the process of the other tests, whose
/// exporters read it too.
#[tokio::test(flavor = "multi_thread")]
async fn compressed_spans_arrive_complete() {
    if std::env::var_os(VARIABLE).is_none() {
        let again = Command::new(std::env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .env(VARIABLE, "gzip")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&again.stdout);
        assert!(output.contains("1 passed"), "{output}");
        return;
    }
    let collector = Collector::start().await;
    let exporter = in_batches(&collector, 20);
    calls(&exporter, 50).await;
    let counts = exporter.shutdown(NEVER).await;
    assert_eq!((counts.exported, counts.lost()), (100, 0));
    let requests = collector.requests();
    let mut bytes = 0;
    for request in requests {
        assert_eq!(request["content-encoding"], "gzip");
        let length = request["content-length"].to_str().unwrap();
        bytes += length.parse::<usize>().unwrap();
    }
    // several hundred bytes per span without compression
    assert!(bytes < 100 * 200, "{bytes} bytes for 100 spans");
    let spans = collector.spans();
    let calls: Vec<_> = spans.iter().filter(|span| span.parent.is_none()).collect();
    assert_eq!((spans.len(), calls.len()), (100, 50));
    for call in calls {
        assert_eq!(call.service(), "test");
        assert_eq!(call.attributes[names::TOOL], "read_order");
    }
}
