//! The defaults in `docs/behavior.md` are those of the code. `CALLWARD_WRITE_PAGES=1 cargo test -p
//! callward-gateway --bin callward defaults` writes its tables.

use std::path::Path;

use callward::telemetry::export::OtlpConfig;
use callward_testkit::page::{holds, table};

use super::file::File;
use super::units::show_duration;

/// The file's tables, each under the name it has in a file.
const SECTIONS: [&str; 17] = [
    "",
    "http",
    "admin",
    "cache",
    "loop_guard",
    "retry",
    "hedge",
    "limits",
    "breaker",
    "breaker.server",
    "discovery",
    "router",
    "router.affinity",
    "router.ping",
    "audit",
    "telemetry",
    "servers.NAME",
];

/// Returns every key that a table may have: the reader itself lists them when it meets another.
fn keys(section: &str) -> Vec<String> {
    let text = match section {
        "" => "nobody = 1".to_owned(),
        section => format!("[{section}]\nnobody = 1"),
    };
    let error = toml::from_str::<File>(&text).unwrap_err();
    let (_, listed) = error.message().split_once("expected ").unwrap();
    let listed = listed.strip_prefix("one of ").unwrap_or(listed);
    listed
        .split(", ")
        .map(|key| key.trim_matches('`').to_owned())
        .collect()
}

/// What a key without a value comes to, where that is something.
fn derived(section: &str, key: &str) -> Option<String> {
    let quoted = |time| Some(format!("`\"{}\"`", show_duration(time)));
    match (section, key) {
        ("admin", "listen") => Some("`127.0.0.1:7421`, or a free port if it is taken".into()),
        ("limits", "attempt_timeout") => Some("the profile's".into()),
        ("breaker" | "breaker.server", _) => None,
        ("telemetry", "otlp_timeout") => quoted(OtlpConfig::DEFAULT_TIMEOUT),
        ("telemetry", "otlp_queue") => Some(format!("`{}`", OtlpConfig::DEFAULT_QUEUE)),
        ("telemetry", "otlp_batch") => Some(format!("`{}`", OtlpConfig::DEFAULT_BATCH)),
        ("telemetry", "otlp_interval") => quoted(OtlpConfig::DEFAULT_INTERVAL),
        ("telemetry", "otlp_metrics_interval") => quoted(OtlpConfig::DEFAULT_METRICS_INTERVAL),
        ("telemetry", "sampling") => Some("`1.0`".into()),
        ("cache", "ttl") => Some("`\"5m\"`, the profile's".into()),
        ("cache", "idempotent_ttl") => Some("by the mode".into()),
        ("servers.NAME", "set") => Some("`NAME`".into()),
        ("servers.NAME", "state") => Some("`\"shared\"`".into()),
        ("servers.NAME", "prefix") => Some("the set's name".into()),
        ("servers.NAME", "instances") => Some("as the server shows".into()),
        ("servers.NAME", "idempotency_keys") => Some("as the server declares".into()),
        _ => None,
    }
}

/// One table: every key of a section with its default, as the whole file of docs/config.md has it.
/// That file is held to the code by the tests of `pages`.
fn section(name: &str, whole: &toml::Table) -> String {
    let path = name.split('.').filter(|part| !part.is_empty());
    let mut written = whole;
    for part in path {
        let part = if part == "NAME" { "files" } else { part };
        written = written[part].as_table().unwrap();
    }
    // what the example's server says for itself is no default
    let example = ["command", "args", "env", "set", "prefix", "annotations"];
    let rows = keys(name).into_iter().filter_map(|key| {
        let is_example = name == "servers.NAME" && example.contains(&key.as_str());
        let value = written.get(&key).filter(|_| !is_example);
        let shown = match value {
            // a table of its own
            Some(toml::Value::Table(_)) => return None,
            Some(value) => format!("`{}`", serde_json::to_string(value).unwrap()),
            None => derived(name, &key).unwrap_or_else(|| "not set".into()),
        };
        Some([format!("`{key}`"), shown])
    });
    table(&["key", "default"], rows)
}

#[test]
fn the_page_about_behavior_has_every_key_with_its_default() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let whole: toml::Table = super::pages::whole_file().parse().unwrap();
    let names: Vec<_> = SECTIONS.map(|name| format!("defaults: [{name}]")).into();
    let tables = SECTIONS.map(|name| section(name, &whole));
    let names = names.iter().map(String::as_str);
    let made: Vec<_> = names.zip(tables).collect();
    holds(&docs.join("behavior.md"), "defaults: ", &made);
}

/// Every table of the whole file is one of the sections.
#[test]
fn no_section_is_left_out() {
    fn tables(table: &toml::Table, before: &str, found: &mut Vec<String>) {
        for (key, value) in table {
            if let Some(inner) = value.as_table() {
                found.push(format!("{before}{key}"));
                tables(inner, &format!("{before}{key}."), found);
            }
        }
    }
    let mut whole: toml::Table = super::pages::whole_file().parse().unwrap();
    whole.remove("servers");
    // verbs of one's own: all lists are empty
    whole.remove("lexicon");
    let mut found = vec![String::new(), "servers.NAME".into()];
    tables(&whole, "", &mut found);
    let mut known = SECTIONS.map(ToOwned::to_owned);
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known);
}

/// A key that the whole file leaves out has no value in the code either.
#[test]
fn what_is_not_set_has_no_value() {
    let whole: toml::Table = super::pages::whole_file().parse().unwrap();
    let code = format!("{:#?}", File::default());
    for name in SECTIONS {
        if name == "servers.NAME" {
            continue;
        }
        let mut written = Some(&whole);
        for part in name.split('.').filter(|part| !part.is_empty()) {
            written = written.and_then(|table| table.get(part)?.as_table());
        }
        for key in keys(name) {
            if written.is_some_and(|table| !table.contains_key(&key)) {
                let none = ["None", "{}", "[]"].map(|none| format!("{key}: {none},"));
                assert!(none.iter().any(|none| code.contains(none)), "{name}.{key}");
            }
        }
    }
}
