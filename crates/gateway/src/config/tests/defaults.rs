//! The tables of `docs/config.md` have every key with its default, as the code has it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::pages::{defaults, docs};

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

/// Returns every key that a section may have, with its default.
fn keys(section: &str) -> Map<String, Value> {
    let parts = section.split('.').filter(|part| !part.is_empty());
    let parts = parts.map(|part| if part == "NAME" { "files" } else { part });
    let defaults = defaults();
    let found = parts.fold(&defaults, |found, part| &found[part]);
    found.as_object().unwrap().clone()
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
fn plain(value: &impl serde::Serialize) -> String {
    json!(value).to_string().replace(".0 ", "").replace(' ', "")
}

#[test]
fn the_page_has_every_key_with_its_default() {
    for section in SECTIONS {
        let mut defaults = keys(section);
        defaults.retain(|key, _| {
            let table = format!("{section}.{key}");
            let table = table.trim_start_matches('.');
            !SECTIONS.contains(&table)
                && !["lexicon", "servers", "servers.NAME.tools"].contains(&table)
        });
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
