//! Which keys say something else than their defaults.

use std::time::Duration;

use serde_json::{Map, Value, json};

use callward::cache::StateGroup;
use callward::core::redact;
use callward::limit::Cap;
use callward::loopguard::LoopGuardConfig;
use callward::retry::hedge::HedgeConfig;
use callward::router::RouterConfig;
use callward::{Caching, LimitsConfig, PingConfig};
use callward_mcp::wire::DEFAULT_MAX_LINE;

use super::{
    CacheLimits, Config, Partition, References, ServerConfig, ServerLimits, Telemetry, check,
    show_duration, show_size,
};

/// Keys with their values, as a file would have them.
pub(crate) type Keys = Map<String, Value>;

/// Keys of a file, section by section.
pub(crate) struct Sections {
    pub(crate) cache: Keys,
    pub(crate) loop_guard: Keys,
    pub(crate) hedge: Keys,
    pub(crate) limits: Keys,
    /// Those of its tables stand under their names, as in `ping.interval`.
    pub(crate) router: Keys,
    pub(crate) telemetry: Keys,
}

impl Sections {
    /// Puts references back in the place of what they came to.
    pub(crate) fn scrubbed(self, references: &References) -> Self {
        let scrub = |keys| references.scrub_keys(keys);
        Self {
            cache: scrub(self.cache),
            loop_guard: scrub(self.loop_guard),
            hedge: scrub(self.hedge),
            limits: scrub(self.limits),
            router: scrub(self.router),
            telemetry: scrub(self.telemetry),
        }
    }
}

impl Config {
    /// Returns the keys whose values are not the defaults, section by section.
    pub(crate) fn changed(&self) -> Sections {
        let (ours, defaults) = (self.written(), check::defaults().written());
        Sections {
            cache: differing(ours.cache, &defaults.cache),
            loop_guard: differing(ours.loop_guard, &defaults.loop_guard),
            hedge: differing(ours.hedge, &defaults.hedge),
            limits: differing(ours.limits, &defaults.limits),
            router: differing(ours.router, &defaults.router),
            telemetry: differing(ours.telemetry, &defaults.telemetry),
        }
    }

    /// Returns all keys; what is off has no value.
    pub(super) fn written(&self) -> Sections {
        Sections {
            cache: self.cache.written(),
            loop_guard: loop_guard(self.loop_guard),
            hedge: hedge(self.hedge),
            limits: limits(&self.limits),
            router: router(&self.router, self.ping),
            telemetry: self.telemetry.written(),
        }
    }
}

pub(super) fn differing(mut keys: Keys, defaults: &Keys) -> Keys {
    keys.retain(|key, value| defaults.get(key) != Some(value));
    keys
}

pub(super) fn keys<const N: usize>(pairs: [(&str, Value); N]) -> Keys {
    pairs
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

fn loop_guard(config: Option<LoopGuardConfig>) -> Keys {
    let enabled = config.is_some();
    let config = config.unwrap_or_default();
    keys([
        ("enabled", json!(enabled)),
        ("failures", json!(config.failures)),
        ("wait", json!(show_duration(config.wait))),
        ("window", json!(show_duration(config.window))),
        ("capacity", json!(config.capacity)),
        ("without_session", json!(config.without_session)),
    ])
}

fn hedge(config: Option<HedgeConfig>) -> Keys {
    let enabled = config.is_some();
    let config = config.unwrap_or_default();
    keys([
        ("enabled", json!(enabled)),
        ("percentile", json!(config.percentile)),
        ("min_observations", json!(config.min_observations)),
        ("min_delay", json!(show_duration(config.min_delay))),
    ])
}

fn limits(config: &LimitsConfig) -> Keys {
    let rate = &config.rate;
    keys([
        ("tools", json!(rate.tools)),
        ("per_principal", json!(rate.per_principal)),
        ("burst", json!(show_duration(rate.burst))),
        ("max_wait", json!(show_duration(rate.max_wait))),
        ("max_keys", json!(rate.max_keys)),
        (
            "attempt_timeout",
            json!(config.attempt_timeout.map(show_duration)),
        ),
        (
            "progress_cap",
            match config.timeout.cap {
                Cap::Times(times) => json!(times),
                Cap::At(cap) => json!(show_duration(cap)),
            },
        ),
    ])
}

fn router(config: &RouterConfig, ping: Option<PingConfig>) -> Keys {
    let affinity = &config.affinity;
    let (is_pinged, ping) = (ping.is_some(), ping.unwrap_or_default());
    keys([
        ("strategy", json!(config.strategy)),
        ("cost_budget", json!(config.cost_budget)),
        ("affinity.by", json!(affinity.by)),
        ("affinity.ttl", json!(show_duration(affinity.ttl))),
        ("affinity.max_keys", json!(affinity.max_keys)),
        ("affinity.without_session", json!(affinity.without_session)),
        ("affinity.fallback", json!(affinity.fallback)),
        ("min_available", json!(config.min_available)),
        ("ping.enabled", json!(is_pinged)),
        ("ping.interval", json!(show_duration(ping.interval))),
        ("ping.timeout", json!(show_duration(ping.timeout))),
    ])
}

impl ServerConfig {
    /// Returns what is said of how the server is called that is not the default; what is said of a
    /// tool stands under `tools.TOOL`.
    pub(crate) fn changed(&self) -> Keys {
        let defaults = ServerLimits::default().written();
        let mut changed = differing(self.limits.written(), &defaults);
        if let Some(send) = self.idempotency_keys {
            changed.insert("idempotency_keys".into(), json!(send));
        }
        if self.max_message != DEFAULT_MAX_LINE {
            let size = show_size(self.max_message as u64);
            changed.insert("max_message".into(), json!(size));
        }
        changed.extend(self.instances.changed());
        if self.state != StateGroup::Shared {
            changed.insert("state".into(), json!(self.state.to_string()));
        }
        changed.extend(
            self.caching
                .map(cached)
                .map(|(key, value)| (key.into(), value)),
        );
        let traits = |capabilities: &[String], zone: Option<&str>, cost_factor: f64| {
            keys([
                ("capabilities", json!(capabilities)),
                ("zone", json!(zone)),
                ("cost_factor", json!(cost_factor)),
            ])
        };
        let ours = traits(&self.capabilities, self.zone.as_deref(), self.cost_factor);
        changed.extend(differing(ours, &traits(&[], None, 1.0)));
        for (tool, said) in &self.tools {
            if let Some(reader) = &said.verify_with {
                changed.insert(format!("tools.{tool}.verify_with"), json!(reader.as_str()));
            }
            if let Some((key, value)) = said.caching.map(cached) {
                changed.insert(format!("tools.{tool}.{key}"), value);
            }
            if let Some(places) = said.max_concurrent {
                changed.insert(format!("tools.{tool}.max_concurrent"), json!(places));
            }
        }
        changed
    }
}

/// Returns the key that says whether results are kept, and its value.
fn cached(caching: Caching) -> (&'static str, Value) {
    match caching {
        Caching::Never => ("cache", json!(false)),
        Caching::For(ttl) => ("ttl", json!(show_duration(ttl))),
        _ => ("cache", json!(true)),
    }
}

impl ServerLimits {
    fn written(&self) -> Keys {
        // taken apart, so that no key is left out
        let Self {
            max_concurrent,
            max_waiting,
            shed,
            max_concurrent_per_tool,
            calls_per_minute,
        } = self;
        keys([
            ("max_concurrent", json!(max_concurrent)),
            ("max_waiting", json!(max_waiting)),
            ("shed", json!(shed.as_str())),
            ("max_concurrent_per_tool", json!(max_concurrent_per_tool)),
            ("calls_per_minute", json!(calls_per_minute)),
        ])
    }
}

impl Telemetry {
    /// Of headers the names alone: their values are keys.
    fn written(&self) -> Keys {
        // taken apart, so that no key is left out
        let Self {
            otlp_endpoint,
            otlp_headers,
            otlp_timeout,
            otlp_queue,
            otlp_batch,
            otlp_interval,
            otlp_metrics_interval,
            sampling,
            service_name,
            resource,
            baggage,
            record_arguments,
            record_results,
            redact,
            max_recorded_bytes,
        } = self;
        let headers: Vec<_> = otlp_headers.keys().collect();
        let headers = (!headers.is_empty()).then_some(headers);
        let resource = (!resource.is_empty()).then_some(resource);
        let time = |time: &Option<Duration>| json!(time.map(show_duration));
        keys([
            (
                "otlp_endpoint",
                json!(otlp_endpoint.as_deref().map(redact::url)),
            ),
            ("otlp_headers", json!(headers)),
            ("otlp_timeout", time(otlp_timeout)),
            ("otlp_queue", json!(otlp_queue)),
            ("otlp_batch", json!(otlp_batch)),
            ("otlp_interval", time(otlp_interval)),
            ("otlp_metrics_interval", time(otlp_metrics_interval)),
            ("sampling", json!(sampling)),
            ("service_name", json!(service_name)),
            ("resource", json!(resource)),
            ("baggage", json!(baggage)),
            ("record_arguments", json!(record_arguments)),
            ("record_results", json!(record_results)),
            ("redact", json!(redact)),
            ("max_recorded_bytes", json!(show_size(max_recorded_bytes.0))),
        ])
    }
}

impl CacheLimits {
    fn written(&self) -> Keys {
        // taken apart, so that no key is left out
        let Self {
            enabled,
            max_bytes,
            max_item_bytes,
            slow_threshold,
            idempotent_writes,
            freshness,
            ttl,
            idempotent_ttl,
            burst,
            settle,
            stale_odds,
            evidence: _,
            partition,
            report,
            stale_while_revalidate,
            stale_if_error,
        } = self;
        keys([
            ("enabled", json!(enabled)),
            ("max_bytes", json!(show_size(*max_bytes))),
            ("max_item_bytes", json!(show_size(*max_item_bytes))),
            ("slow_threshold", json!(show_duration(*slow_threshold))),
            ("idempotent_writes", json!(idempotent_writes)),
            ("freshness", json!(freshness.as_str())),
            ("ttl", json!(ttl.map(show_duration))),
            ("idempotent_ttl", json!(idempotent_ttl.map(show_duration))),
            ("burst", json!(show_duration(*burst))),
            ("settle", json!(show_duration(*settle))),
            ("stale_odds", json!(stale_odds)),
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
        ])
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
            let changed = config.changed().cache;
            changed
                .iter()
                .map(|(key, value)| format!("{key} = {value}\n"))
                .collect::<String>()
        };
        assert_eq!(changed(""), "");
        assert_eq!(changed("report = false\nslow_threshold = \"500ms\"\n"), "");
        let all = "\
burst = \"1s\"
enabled = false
freshness = \"fixed\"
idempotent_ttl = \"3s\"
idempotent_writes = false
max_bytes = \"8.0 MiB\"
max_item_bytes = \"2.0 MiB\"
partition = \"shared\"
report = true
settle = \"20s\"
slow_threshold = \"2s\"
stale_if_error = \"10m\"
stale_odds = 0.05
stale_while_revalidate = \"1m 30s\"
ttl = \"1m\"
";
        assert_eq!(changed(all), all);
    }

    #[test]
    fn what_decides_how_long_results_are_served_is_shown() {
        let text = "[servers.a]\ncommand = \"x\"\nttl = \"5m\"\nstate = \"own\"\n\
                    [servers.a.tools.t]\ncache = false\n";
        let config = Config::parse(Path::new("t.toml"), text).unwrap();
        let changed = serde_json::to_value(config.servers[0].changed()).unwrap();
        let expected = serde_json::json!({"ttl": "5m", "state": "own", "tools.t.cache": false});
        assert_eq!(changed, expected);
    }

    #[test]
    fn an_invalid_threshold_is_reported_at_its_key() {
        let text = "[cache]\nslow_threshold = 500\n[servers.a]\ncommand = \"x\"\n";
        let error = Config::parse(Path::new("t.toml"), text).unwrap_err();
        let error = error.to_string();
        for part in ["`cache.slow_threshold`", "\"250ms\""] {
            assert!(error.contains(part), "{error}");
        }
    }
}
