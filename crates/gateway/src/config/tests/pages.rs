//! The documented files are accepted.

use serde_json::{Value, json};

use super::*;

pub(super) fn docs() -> std::path::PathBuf {
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
pub(super) fn defaults() -> Value {
    let mut defaults = json!(Config::default());
    defaults["servers"] = json!({ "files": Server::default() });
    defaults
}

#[test]
fn the_file_has_at_most_130_keys() {
    fn keys(value: &Value) -> usize {
        match value {
            Value::Object(table) if !table.is_empty() => table.values().map(keys).sum(),
            _ => 1,
        }
    }
    // of a tool beside its hints: rules, reads, writes, verify_with, max_concurrent, ttl, cache
    let found = keys(&defaults()) + 7;
    assert!(found <= 130, "{found}");
}
