//! The defaults in `docs/behavior.md` are those of the code. `CALLWARD_WRITE_PAGES=1 cargo test -p
//! callward-gateway --bin callward defaults` writes its tables.

use callward_testkit::page::{holds, table};
use serde_json::Value;

use super::pages::{defaults, whole_file};

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

/// Returns every key that a table may have.
fn keys(section: &str) -> Vec<String> {
    let defaults = defaults();
    let found = parts(section).fold(&defaults, |found, part| &found[part]);
    found.as_object().unwrap().keys().cloned().collect()
}

fn parts(section: &str) -> impl Iterator<Item = &str> {
    let parts = section.split('.').filter(|part| !part.is_empty());
    parts.map(|part| if part == "NAME" { "files" } else { part })
}

/// What a key without a value comes to, where that is something.
fn derived(section: &str, key: &str) -> Option<String> {
    match (section, key) {
        ("admin", "listen") => Some("`127.0.0.1:7421`, or a free port if it is taken".into()),
        ("limits", "attempt_timeout") => Some("the profile's".into()),
        ("breaker" | "breaker.server", _) => None,
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
    let mut written = whole;
    for part in parts(name) {
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
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let whole: toml::Table = whole_file().parse().unwrap();
    let names: Vec<_> = SECTIONS.map(|name| format!("defaults: [{name}]")).into();
    let tables = SECTIONS.map(|name| section(name, &whole));
    let names = names.iter().map(String::as_str);
    let made: Vec<_> = names.zip(tables).collect();
    holds(&docs.join("behavior.md"), "defaults: ", &made);
}

/// Every table of the file is one of the sections.
#[test]
fn every_section_has_a_table() {
    fn tables(value: &Value, path: &str, found: &mut Vec<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            // maps are empty by default
            if value.as_object().is_some_and(|table| !table.is_empty()) {
                let path = format!("{path}{key}");
                tables(value, &format!("{path}."), found);
                found.push(path);
            }
        }
    }
    let mut found = vec![String::new()];
    tables(&defaults(), "", &mut found);
    found.retain(|name| name != "servers");
    let mut known = SECTIONS.map(|name| name.replace("NAME", "files"));
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known);
}
