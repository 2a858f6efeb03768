//! The documented files are accepted, and the tables of `docs/config.md` have every key with its
//! default, as the code has it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::*;

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn the_documented_files_are_accepted() {
    let mut seen = 0;
    for entry in std::fs::read_dir(docs().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            Config::load(&path, Servers::Some).unwrap_or_else(|error| panic!("{error}"));
            seen += 1;
        }
    }
    assert!(seen >= 3, "only {seen} examples found");
    for page in ["config.md", "cache.md"] {
        let text = std::fs::read_to_string(docs().join(page)).unwrap();
        let blocks = text.split("```toml\n").skip(1);
        for block in blocks.filter_map(|rest| rest.split("```").next()) {
            parse(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        }
    }
}

/// The defaults as the file has them, with one server.
fn defaults() -> Value {
    let mut defaults = json!(Config::default());
    defaults["servers"] = json!({ "files": Server::default() });
    defaults
}

#[test]
fn the_file_has_at_most_161_keys() {
    fn keys(value: &Value) -> usize {
        match value {
            Value::Object(table) if !table.is_empty() => table.values().map(keys).sum(),
            _ => 1,
        }
    }
    // of a tool beside its hints: rules, reads, writes, verify_with, max_concurrent, ttl, cache,
    // name, hidden, description, arguments
    let found = keys(&defaults()) + 11;
    assert!(found <= 161, "{found}");
}

/// Adds the file's tables, each under the name it has in a file, with the keys that it has beside
/// inner tables. Maps are empty by default.
fn add_sections(table: &Value, path: &str, to: &mut Vec<(String, Map<String, Value>)>) {
    let mut keys = table.as_object().unwrap().clone();
    keys.retain(|key, value| {
        let path = format!("{path}.{key}").replace(".servers.files", ".servers.NAME");
        let is_table = value.as_object().is_some_and(|table| !table.is_empty());
        if is_table {
            add_sections(value, &path, to);
        }
        // these have pages of their own
        !is_table && ![".lexicon", ".servers.NAME.tools"].contains(&&*path)
    });
    let name = path.trim_start_matches('.').to_owned();
    if name != "servers" {
        to.push((name, keys));
    }
}

/// Returns what the page shows for a key whose default is not a value of the file.
fn derived(section: &str, key: &str) -> Option<&'static str> {
    match (section, key) {
        ("admin", "listen") => Some("`127.0.0.1:7421`, or a free port if it is taken"),
        ("limits", "attempt_timeout") => Some("the profile's"),
        ("breaker", "slow_rate") => Some("`0.5`"),
        ("telemetry", "sampling") => Some("`1.0`"),
        ("cache", "ttl") => Some("`\"5m\"`, the profile's"),
        ("cache", "idempotent_ttl") => Some("by the mode"),
        ("servers.NAME", "set") => Some("`NAME`"),
        ("servers.NAME", "state") => Some("`\"shared\"`"),
        ("servers.NAME", "spare") => Some("`1`"),
        ("servers.NAME", "prefix") => Some("the set's name"),
        ("servers.NAME", "instances") => Some("as the server shows"),
        ("servers.NAME", "idempotency_keys") => Some("as the server declares"),
        _ => None,
    }
}

/// Returns the rows of a section's table in the page: each key with its default.
fn documented(section: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(docs().join("config.md")).unwrap();
    let heading = match section {
        "" => "\n## Top level\n".to_owned(),
        section => format!("\n## `[{section}]`\n"),
    };
    let (_, after) = text.split_once(&heading).unwrap();
    let rows = after.split("\n#").next().unwrap().lines();
    let rows = rows.filter_map(|line| {
        let (key, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (default, _) = rest.split_once(" | ")?;
        let is_key = |key: &str| key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_key(key).then(|| (key.to_owned(), default.to_owned()))
    });
    rows.collect()
}

/// Writes a value; sizes (`64.0 MiB`) without spaces and zeros.
fn plain(value: &impl Serialize) -> String {
    json!(value).to_string().replace(".0 ", "").replace(' ', "")
}

#[test]
fn the_page_has_every_key_with_its_default() {
    let mut sections = Vec::new();
    add_sections(&defaults(), "", &mut sections);
    assert!(sections.len() > 15, "{sections:?}");
    for (section, defaults) in &sections {
        let documented = documented(section);
        let mut expected: Vec<_> = defaults.keys().collect();
        expected.sort_unstable();
        assert_eq!(
            documented.keys().collect::<Vec<_>>(),
            expected,
            "[{section}]"
        );
        for (key, shown) in documented {
            let value = &defaults[&key];
            let is_empty = [json!(null), json!([]), json!({})].contains(value);
            match derived(section, &key) {
                Some(derived) => assert_eq!(shown, derived, "[{section}] {key}"),
                None if shown == "unset" => assert!(is_empty, "[{section}] {key}: {value}"),
                None => {
                    let written = format!("x = {}", shown.trim_matches('`'));
                    let written: toml::Table = written.parse().unwrap();
                    assert_eq!(plain(&written["x"]), plain(value), "[{section}] {key}");
                }
            }
        }
    }
}
