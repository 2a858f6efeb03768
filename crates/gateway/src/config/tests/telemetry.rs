//! What is said of telemetry: read, and refused.

use serde_json::json;

use super::{are_refused, parse};

#[test]
fn what_makes_no_sense_is_refused_at_its_line_and_key() {
    are_refused(
        r#"
[telemetry] ⏎ otlp_endpoint = "localhost:4318" # telemetry.otlp_endpoint: the URL of a collector
[telemetry.otlp_headers] ⏎ "a b" = "x" # telemetry.otlp_headers.a b: the name of a header
[telemetry.otlp_headers] ⏎ key = "a\nb" # telemetry.otlp_headers.key: visible characters
[telemetry] ⏎ sampling = 1.5 # telemetry.sampling: 0.0 to 1.0
[telemetry] ⏎ sampling = nan # telemetry.sampling: 0.0 to 1.0
[telemetry] ⏎ service_name = "" # telemetry.service_name: a name
[telemetry] ⏎ baggage = ["a b"] # telemetry.baggage.1: not a key of baggage
[telemetry] ⏎ redact = ["_"] # telemetry.redact.1: names nothing
[telemetry] ⏎ endpoint = "x" # telemetry.endpoint: otlp_endpoint
"#,
    );
}

#[test]
fn the_value_of_a_header_is_never_shown() {
    let config = parse(
        "[telemetry]\notlp_endpoint = \"http://c:4318\"\notlp_headers = { key = \"hunter2\" }\n\
         [servers.a]\ncommand = \"x\"\n",
    )
    .unwrap();
    let dump = json!([config.telemetry, config.changed()]).to_string();
    assert!(dump.contains("key") && !dump.contains("hunter2"), "{dump}");
}
