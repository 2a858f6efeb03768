//! What is said of telemetry: read, and refused.

use serde_json::json;

use super::{is_refused, parse};

#[test]
fn what_makes_no_sense_is_refused_at_its_line_and_key() {
    for (section, lines, key, expected) in [
        (
            "telemetry",
            "otlp_endpoint = \"localhost:4318\"",
            "otlp_endpoint",
            "the URL of a collector",
        ),
        (
            "telemetry.otlp_headers",
            "\"a b\" = \"x\"",
            "a b",
            "the name of a header",
        ),
        (
            "telemetry.otlp_headers",
            "key = \"a\\nb\"",
            "key",
            "visible characters",
        ),
        ("telemetry", "sampling = 1.5", "sampling", "0.0 to 1.0"),
        ("telemetry", "sampling = nan", "sampling", "0.0 to 1.0"),
        ("telemetry", "service_name = \"\"", "service_name", "a name"),
        (
            "telemetry",
            "baggage = [\"a b\"]",
            "baggage.1",
            "not a key of baggage",
        ),
        ("telemetry", "redact = [\"_\"]", "redact.1", "names nothing"),
        ("telemetry", "endpoint = \"x\"", "endpoint", "otlp_endpoint"),
    ] {
        let text = format!("[{section}]\n{lines}\n");
        is_refused(&text, 2, &format!("{section}.{key}"), expected);
    }
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
