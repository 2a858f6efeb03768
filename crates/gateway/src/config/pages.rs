//! The documented files and examples are read as they are written.

use std::fmt::Write as _;

use super::*;

#[test]
fn the_documented_files_are_accepted() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            Config::load(&path).unwrap_or_else(|error| panic!("{error}"));
            seen += 1;
        }
    }
    assert!(seen >= 3, "only {seen} examples found");
}

#[test]
fn the_pages_about_the_config_show_files_that_are_accepted() {
    for page in ["config.md", "cache.md"] {
        shows_files_that_are_accepted(page);
    }
}

/// The file with every default, as the tables of the page have them.
pub(super) fn whole_file() -> String {
    let mut file = String::new();
    for section in defaults::SECTIONS {
        match section {
            "" => {}
            "servers.NAME" => file.push_str("[servers.files]\ncommand = \"npx\"\n"),
            section => writeln!(file, "[{section}]").unwrap(),
        }
        for (key, default) in defaults::documented(section) {
            let code = default
                .strip_prefix('`')
                .and_then(|code| code.strip_suffix('`'));
            if let Some(value) = code.filter(|_| defaults::derived(section, &key).is_none()) {
                writeln!(file, "{key} = {value}").unwrap();
            }
        }
    }
    file
}

#[test]
fn the_whole_file_names_every_key_that_has_a_value_by_default() {
    let written: toml::Table = whole_file().parse().unwrap();
    let known = Config::without_file(Vec::new()).written();
    for (section, keys) in [
        ("cache", known.cache),
        ("loop_guard", known.loop_guard),
        ("hedge", known.hedge),
        ("limits", known.limits),
        ("router", known.router),
        ("telemetry", known.telemetry),
    ] {
        let set = keys.iter().filter(|(_, value)| !value.is_null());
        let set: Vec<_> = set.map(|(key, _)| key.as_str()).collect();
        let mut found = Vec::new();
        names(written[section].as_table().unwrap(), "", &mut found);
        found.sort_unstable();
        assert_eq!(found, set, "[{section}]");
    }
}

/// Collects the keys of a table, those of its own tables with their names before them.
fn names(table: &toml::Table, before: &str, found: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => names(inner, &format!("{before}{key}."), found),
            _ => found.push(format!("{before}{key}")),
        }
    }
}

#[test]
fn the_whole_file_has_every_default() {
    let file = whole_file();
    let mut config = Config::parse(Path::new("t.toml"), &file).unwrap();
    let server = config.servers.remove(0);
    assert_eq!(server.changed(), Keys::new());
    let defaults = Config::without_file(Vec::new());
    assert_eq!(format!("{config:#?}"), format!("{defaults:#?}"));
}

fn shows_files_that_are_accepted(page: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<_> = text
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        Config::parse(Path::new("t.toml"), block)
            .unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
}
