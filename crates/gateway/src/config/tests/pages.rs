//! The documented files are accepted, and the whole file of `docs/config.md` has every default.

use serde_json::{Value, json};

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
            Config::load(&path).unwrap_or_else(|error| panic!("{error}"));
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

/// The first block of the page: the file with every default.
pub(super) fn whole_file() -> String {
    let text = std::fs::read_to_string(docs().join("config.md")).unwrap();
    let file = text.split("```toml\n").nth(1).unwrap();
    file.split("```").next().unwrap().to_owned()
}

/// The defaults as the file has them, with one server under the name of the whole file's.
pub(super) fn defaults() -> Value {
    let mut defaults = json!(Config::default());
    defaults["servers"] = json!({ "files": Server::default() });
    defaults
}

#[test]
fn the_whole_file_has_every_default() {
    let config = parse(&whole_file()).unwrap();
    assert_eq!(config.changed(), Keys::new());
    let mut changed = config.changed_of(&config.servers[0]);
    // what the example says about its tools
    changed.retain(|key, _| !key.starts_with("annotations") && !key.starts_with("tools"));
    assert_eq!(changed, Keys::new());
}

#[test]
fn the_whole_file_has_every_key_with_a_value() {
    fn compare(path: &str, defaults: &Value, written: Option<&toml::Value>) {
        let is_empty = [json!(null), json!([]), json!({})].contains(defaults);
        match (defaults, written) {
            (Value::Object(keys), Some(written)) => {
                for (key, value) in keys {
                    compare(&format!("{path}.{key}"), value, written.get(key));
                }
            }
            (_, None) => assert!(is_empty, "{path} is missing"),
            _ => {}
        }
    }
    let whole: toml::Value = toml::Value::Table(whole_file().parse().unwrap());
    compare("", &defaults(), Some(&whole));
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
