//! Which keys say something else than their defaults.

use serde_json::{Map, Value, json};

use super::{CacheLimits, Partition, check, show_duration, show_size};

impl CacheLimits {
    /// Returns the keys of `[cache]` whose values are not the defaults, as a file would have them.
    pub(crate) fn changed(&self) -> Map<String, Value> {
        let defaults = check::defaults().cache.written();
        let mut changed = self.written();
        changed.retain(|key, value| defaults.get(key) != Some(value));
        changed
    }

    fn written(&self) -> Map<String, Value> {
        // taken apart, so that no key is left out
        let Self {
            enabled,
            max_bytes,
            max_item_bytes,
            store,
            slow_threshold,
            idempotent_writes,
            partition,
            report,
            stale_while_revalidate,
            stale_if_error,
            verify_share,
        } = self;
        let keys = [
            ("enabled", json!(enabled)),
            ("max_bytes", json!(show_size(*max_bytes))),
            ("max_item_bytes", json!(show_size(*max_item_bytes))),
            ("store", json!(store.as_str())),
            ("slow_threshold", json!(show_duration(*slow_threshold))),
            ("idempotent_writes", json!(idempotent_writes)),
            (
                "partition",
                json!(match partition {
                    Partition::Principal => "principal",
                    Partition::Shared => "shared",
                }),
            ),
            ("report", json!(report)),
            (
                "stale_while_revalidate",
                json!(show_duration(*stale_while_revalidate)),
            ),
            ("stale_if_error", json!(show_duration(*stale_if_error))),
            ("verify_share", json!(verify_share)),
        ];
        keys.map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;

    #[test]
    fn only_what_differs_is_told_and_as_it_may_be_written() {
        let changed = |cache: &str| {
            let text = format!("[cache]\n{cache}[servers.a]\ncommand = \"x\"\n");
            let config = Config::parse(Path::new("t.toml"), &text).unwrap();
            let changed = config.cache.changed();
            changed
                .iter()
                .map(|(key, value)| format!("{key} = {value}\n"))
                .collect::<String>()
        };
        assert_eq!(changed(""), "");
        assert_eq!(changed("report = false\nslow_threshold = \"500ms\"\n"), "");
        let all = "\
enabled = false
idempotent_writes = false
max_bytes = \"8.0 MiB\"
max_item_bytes = \"2.0 MiB\"
partition = \"shared\"
report = true
slow_threshold = \"2s\"
stale_if_error = \"10m\"
stale_while_revalidate = \"1m 30s\"
verify_share = 0.02
";
        assert_eq!(changed(all), all);
        let lean = "store = \"lean\"\n";
        assert_eq!(changed(lean), lean);
    }

    #[test]
    fn a_store_that_cannot_be_had_is_told_at_its_key() {
        for (cache, key, want) in [
            (
                "store = \"redis\"",
                "2:9: `cache.store`",
                "`moka` or `lean`",
            ),
            (
                "slow_threshold = 500",
                "`cache.slow_threshold`",
                "\"250ms\"",
            ),
            (
                "store = \"lean\"\nslow_threshold = \"1s\"",
                "`cache.slow_threshold`",
                "store = \"moka\"",
            ),
        ] {
            let text = format!("[cache]\n{cache}\n[servers.a]\ncommand = \"x\"\n");
            let error = Config::parse(Path::new("t.toml"), &text).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(key) && error.contains(want), "{error}");
        }
    }
}
