//! The tables of `docs/config.md` have every key with its default, as the code has it.

use std::collections::BTreeMap;
use std::path::Path;

use callward::telemetry::export::OtlpConfig;

use super::file::File;
use super::units::show_duration;

/// The file's tables, each under the name it has in a file.
pub(super) const SECTIONS: [&str; 17] = [
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
        "" => "unknown = 1".to_owned(),
        section => format!("[{section}]\nunknown = 1"),
    };
    let error = toml::from_str::<File>(&text).unwrap_err();
    let (_, listed) = error.message().split_once("expected ").unwrap();
    let listed = listed.strip_prefix("one of ").unwrap_or(listed);
    listed
        .split(", ")
        .map(|key| key.trim_matches('`').to_owned())
        .collect()
}

/// Returns the default of a key that has no value in the file, if there is one.
pub(super) fn derived(section: &str, key: &str) -> Option<String> {
    let quoted = |time| Some(format!("`\"{}\"`", show_duration(time)));
    match (section, key) {
        ("admin", "listen") => Some("`127.0.0.1:7421`, or a free port if it is taken".into()),
        ("limits", "attempt_timeout") => Some("the profile's".into()),
        ("breaker", "slow_rate") => Some("`0.5`".into()),
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

/// Returns the rows of a section's table in the page: each key with its default.
pub(super) fn documented(section: &str) -> BTreeMap<String, String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let text = std::fs::read_to_string(page).unwrap();
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

#[test]
fn the_page_has_every_key_and_no_other() {
    for section in SECTIONS {
        let mut expected = keys(section);
        expected.retain(|key| {
            let table = format!("{section}.{key}");
            let table = table.trim_start_matches('.');
            !SECTIONS.contains(&table)
                && !["lexicon", "servers", "servers.NAME.tools"].contains(&table)
        });
        expected.sort_unstable();
        let documented = documented(section);
        let found: Vec<_> = documented.keys().cloned().collect();
        assert_eq!(found, expected, "[{section}]");
        for (key, default) in documented {
            match derived(section, &key) {
                Some(derived) => assert_eq!(default, derived, "[{section}] {key}"),
                None => assert!(default == "unset" || default.starts_with('`'), "{key}"),
            }
        }
    }
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
