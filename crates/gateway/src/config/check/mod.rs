//! Checks the keys of a file together, and reports every problem at its place.

mod servers;

use std::collections::BTreeMap;
use std::time::Duration;

use callward::StackBuilder;
use callward::core::infer::Lexicon;
use callward::core::{BaggageFilter, InvalidConfig, Lifetime, RuleSet};
use callward::telemetry::export::OtlpConfig;
use callward_auth::tokens::Tokens;
use callward_auth::webhook::Webhook;
use callward_auth::{ResourceMetadata, TrustedProxy};
use callward_mcp::server::{HostPattern, OriginPattern};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::error::{Fault, Source, dotted};
use super::{ADMIN, AdminAddress, Auth, Config, KeySource, PUBLIC, exposed};
use crate::view::with_values;

/// The longest that anything may wait or run: no client waits a day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest a result may be served: the store counts no further.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Checks a config, derives settings from its keys, and reads its servers.
pub(super) fn check(config: &mut Config, source: &Source<'_>) -> Vec<Fault> {
    let mut faults = Faults {
        source,
        found: Vec::new(),
    };
    faults.settings(config);
    faults.layers(config);
    config.derive();
    // in file order: the first of two sets that want a name gets it
    let mut tables: Vec<_> = std::mem::take(&mut config.tables).into_iter().collect();
    tables.sort_by_key(|(id, _)| source.span(&dotted("servers", id)).map(|span| span.start));
    for (id, table) in tables {
        config.servers.extend(faults.server(&id, table));
    }
    faults.sets(&config.servers);
    faults.scopes(&config.servers);
    faults.found
}

impl Config {
    /// Sets what follows from several keys.
    pub(super) fn derive(&mut self) {
        let cache = &self.cache;
        if let Some(ttl) = cache.ttl {
            self.profile.read_ttl = ttl;
        }
        if cache.idempotent_ttl.is_some() {
            self.profile.idempotent_ttl = cache.idempotent_ttl;
            self.profile.idempotent_lifetime = Lifetime::Stated;
        }
        if self.audit.path.is_some() {
            self.profile.audit = self.audit.record;
        }
        self.principals.generous = self.identifies();
        if !cache.layer.idempotent_writes {
            // the cache has a switch of its own; this one shows in plans
            self.profile.idempotent_ttl = None;
        }
    }
}

/// The problems found so far, and the text they are found in.
struct Faults<'a, 'i> {
    source: &'a Source<'i>,
    found: Vec<Fault>,
}

impl Faults<'_, '_> {
    fn at(&mut self, key: &str, message: impl Into<String>) {
        self.found.push(self.source.key_fault(key, message));
    }

    fn expect(&mut self, holds: bool, key: &str, message: &str) {
        if !holds {
            self.at(key, message);
        }
    }

    /// Returns the value of a result, or reports its error at the key.
    fn ok<T, E: std::fmt::Display>(&mut self, result: Result<T, E>, key: &str) -> Option<T> {
        result.map_err(|error| self.at(key, error.to_string())).ok()
    }

    /// Checks each element of a list; elements are counted from 1.
    fn each<T, E: std::fmt::Display>(
        &mut self,
        list: &[String],
        key: &str,
        check: impl Fn(&str) -> Result<T, E>,
    ) {
        for (number, element) in (1_usize..).zip(list) {
            self.ok(check(element), &format!("{key}.{number}"));
        }
    }

    /// Reports what a layer finds wrong, unless its key has a fault. The key of a fault gets its
    /// default and the layer is asked again, so that one fault hides no other.
    fn layer<T: Serialize + DeserializeOwned + Default>(
        &mut self,
        section: &str,
        config: &T,
        validate: fn(&T) -> Result<(), InvalidConfig>,
    ) {
        let (mut ours, defaults) = (with_values(json!(config)), json!(T::default()));
        let mut checked = validate(config);
        while let Err(fault) = checked {
            let key = match fault.field {
                "backoff.ceiling" => "max_pause",
                "budget_percent" => "budget",
                "open_time" => "open_for",
                "cap" => "progress_cap",
                key => key,
            };
            let path = dotted(section, key);
            let is_known = self.found.iter().any(|fault| fault.key == path);
            self.expect(is_known, &path, fault.reason);
            match (ours.get_mut(key), defaults.get(key)) {
                (Some(ours), Some(default)) if ours != default => *ours = default.clone(),
                _ => return,
            }
            let next = T::deserialize(with_values(ours.clone()));
            checked = next.map_or(Ok(()), |next| validate(&next));
        }
    }

    fn layers(&mut self, config: &Config) {
        self.layer("loop_guard", &config.loop_guard.config, |it| it.validate());
        self.layer("hedge", &config.hedge.config, |it| it.validate());
        self.layer("retry", &config.retry, |it| it.validate());
        self.layer("breaker", &config.breaker, |it| it.layer.validate());
        self.layer("breaker.server", &config.breaker.server, |it| {
            it.layer().validate()
        });
        self.layer("limits", &config.limits, |it| it.rate.validate());
        self.layer("limits", &config.limits, |it| it.progress_cap.validate());
        self.layer("router.affinity", &config.router.layer.affinity, |it| {
            it.validate()
        });
        self.layer("router.ping", &config.router.ping.config, |it| {
            it.validate()
        });
        self.layer("audit", &config.audit, |it| {
            let log = it.path.clone().unwrap_or_else(|| "audit.jsonl".into());
            it.layer(log).validate()
        });
    }

    fn auth(&mut self, auth: &Auth) {
        if let Some(Err(fault)) = auth.proxy.as_ref().map(TrustedProxy::new) {
            self.at(&dotted("auth.proxy", &fault.key), fault.reason);
        }
        for (number, issuer) in (1_usize..).zip(&auth.issuers) {
            let key = format!("auth.issuers.{number}");
            self.ok(Tokens::new(vec![issuer.clone()]), &key);
        }
        if !auth.issuers.is_empty() && self.found.is_empty() {
            self.ok(Tokens::new(auth.issuers.clone()), "auth.issuers");
        }
        let resource = auth.resource.as_deref().unwrap_or_default();
        let is_url = ResourceMetadata::new(resource, "", Vec::new())
            .url()
            .is_some();
        let is_needed = auth.resource.is_some() || !auth.issuers.is_empty();
        self.expect(
            is_url || !is_needed,
            "auth.resource",
            "expected the URL of the endpoint as clients know it, such as \
             \"https://gateway.example.com/mcp\"",
        );
    }

    fn settings(&mut self, config: &mut Config) {
        let (http, cache) = (&config.http, &config.cache);
        let (telemetry, limits) = (&config.telemetry, &config.limits);
        let tls = &http.tls;
        let on_tcp = match config.admin.listen {
            Some(AdminAddress::Tcp(address)) => Some(address),
            _ => None,
        };
        let keys = &config.auth.keys;
        let auth = &config.auth;
        let unless_asked = (!config.identifies()).then_some(http.listen);
        for (address, section, advice) in [(unless_asked, "http", PUBLIC), (on_tcp, "admin", ADMIN)]
        {
            let address = address.filter(|_| !http.insecure);
            let why = address.and_then(|address| exposed(address, advice));
            self.ok(why.map_or(Ok(()), Err), &dotted(section, "listen"));
        }
        let is_shared = on_tcp == Some(http.listen) && http.listen.port() != 0;
        let other = "expected another address than `http.listen`";
        self.expect(!is_shared, "admin.listen", other);
        let is_open = !config.identifies() && self.source.span("auth").is_some();
        self.expect(
            !is_open,
            "auth",
            "expected `keys = true`, `issuers` or `proxy`: without them, no client is asked",
        );
        let is_path = !["", "true", "false"]
            .map(|text| KeySource::File(text.into()))
            .contains(keys);
        self.expect(
            is_path,
            "auth.keys",
            "expected `true`, or the path of a file",
        );
        self.auth(auth);
        let webhook = config.authorize_webhook.as_ref();
        let webhook = webhook.map_or(Ok(()), |webhook| Webhook::new(webhook).map(drop));
        self.ok(webhook, "authorize_webhook");
        let pattern = str::parse::<HostPattern>;
        self.each(&http.allowed_hosts, "http.allowed_hosts", pattern);
        self.each(&config.admin.allowed_hosts, "admin.allowed_hosts", pattern);
        let pattern = str::parse::<OriginPattern>;
        self.each(&http.allowed_origins, "http.allowed_origins", pattern);
        let seconds = Duration::from_secs(1)..=Duration::from_secs(600);
        let number = 1..=1_000_000;
        let held = 4 << 20..=1 << 40;
        let is_year = |time: Option<Duration>| time.is_none_or(|time| time <= YEAR);
        #[rustfmt::skip]
        let rules = [
            (!config.call_deadline.is_zero(), "call_deadline",
             "expected more than zero: every call would be over before it began"),
            (!http.allowed_hosts.is_empty(), "http.allowed_hosts",
             "expected at least one host name: an empty list would refuse every request"),
            (number.contains(&http.connections.all), "http.max_connections", NUMBER),
            (number.contains(&http.connections.per_address), "http.max_connections_per_address", NUMBER),
            (number.contains(&http.max_sessions), "http.max_sessions", NUMBER),
            (number.contains(&http.max_sessions_per_client), "http.max_sessions_per_client", NUMBER),
            (held.contains(&http.max_bodies), "http.max_bodies", HELD),
            (held.contains(&http.connections.unread), "http.max_unread", HELD),
            (seconds.contains(&http.connections.header), "http.header_timeout", SECONDS),
            (seconds.contains(&http.connections.write), "http.write_timeout", SECONDS),
            (seconds.contains(&http.body_timeout), "http.body_timeout", SECONDS),
            (tls.tls_key.is_none() || tls.tls_cert.is_some(), "http.tls_key",
             "expected only together with `http.tls_cert`"),
            (tls.tls_cert.is_none() || tls.tls_key.is_some(), "http.tls_cert",
             "expected only together with `http.tls_key`"),
            (tls.client_ca.is_none() || tls.tls_cert.is_some(), "http.client_ca",
             "expected only together with `http.tls_cert` and `http.tls_key`"),
            (cache.layer.max_item_bytes <= cache.layer.max_bytes, "cache.max_item_bytes",
             "expected at most `cache.max_bytes`"),
            (is_year(Some(cache.layer.stale_while_revalidate)), "cache.stale_while_revalidate", A_YEAR),
            (is_year(Some(cache.layer.stale_if_error)), "cache.stale_if_error", A_YEAR),
            (is_year(cache.ttl), "cache.ttl", A_YEAR),
            (is_year(cache.idempotent_ttl), "cache.idempotent_ttl", A_YEAR),
            (is_year(Some(cache.layer.burst)), "cache.burst", A_YEAR),
            (seconds.contains(&cache.layer.settle), "cache.settle", SECONDS),
            ((0.0..=0.5).contains(&cache.layer.stale_odds), "cache.stale_odds",
             "expected a probability from 0.0 to 0.5: of an answer that has changed"),
            (config.retry.max_attempts >= 1, "retry.max_attempts",
             "expected 1 or more: the first attempt counts (1 means no retries)"),
            (limits.rate.max_wait <= DAY, "limits.max_wait", A_DAY),
            (limits.attempt_timeout.is_none_or(|time| !time.is_zero() && time <= DAY),
             "limits.attempt_timeout", "expected more than zero, and at most a day"),
            (!matches!(limits.progress_cap, callward::limit::Cap::At(cap) if cap > DAY),
             "limits.progress_cap", A_DAY),
            ((StackBuilder::MIN_LISTING_TIMEOUT..=DAY).contains(&config.discovery.timeout),
             "discovery.timeout", "expected 5 s or more, and at most a day"),
            (config.router.layer.min_available <= 100, "router.min_available",
             "expected 0 to 100 percent of a replica set"),
            (config.router.layer.cost_budget.is_none_or(|cost| cost >= 0.0), "router.cost_budget",
             "expected a number of 0 or more, in the units of `costHint`"),
            (telemetry.sampling.is_none_or(|share| (0.0..=1.0).contains(&share)),
             "telemetry.sampling", "expected a share from 0.0 to 1.0: traces per call"),
            (telemetry.service_name.as_deref() != Some(""), "telemetry.service_name",
             "expected a name"),
        ];
        for (holds, path, message) in rules {
            self.expect(holds, path, message);
        }
        let is_name = |name: &str| match name.chars().any(char::is_alphanumeric) {
            true => Ok(()),
            false => Err("expected a name with a letter or digit: this one names nothing"),
        };
        self.each(&config.audit.redact, "audit.redact", is_name);
        self.each(&telemetry.redact, "telemetry.redact", is_name);
        let is_key = |key: &str| BaggageFilter::new([key]);
        self.each(&telemetry.baggage, "telemetry.baggage", is_key);
        if let Some(endpoint) = &telemetry.otlp_endpoint {
            let checked = OtlpConfig::new(endpoint).map_err(|fault| fault.reason);
            self.ok(checked, "telemetry.otlp_endpoint");
        }
        for (name, value) in &telemetry.otlp_headers {
            let checked = OtlpConfig::new("http://localhost")
                .and_then(|config| config.with_header(name, value))
                .map_err(|fault| fault.reason);
            self.ok(checked, &dotted("telemetry.otlp_headers", name));
        }
        config.lexicon = self.lexicon(config);
        self.expect(
            config.lexicon.is_none() || config.rules == RuleSet::Standard,
            "lexicon",
            "expected only together with `rules = \"standard\"`: the rules of NeuroLink know no verbs",
        );
    }

    /// Adds the verbs of the file to the standard ones. One verb has one meaning.
    fn lexicon(&mut self, config: &Config) -> Option<Lexicon> {
        let mut seen = BTreeMap::new();
        let mut lexicon = Lexicon::standard().clone();
        for (kind, words) in &config.verbs {
            for (number, word) in (1_usize..).zip(words) {
                let path = format!("lexicon.{kind}.{number}");
                if let Some(other) = seen.insert(word.to_lowercase(), *kind) {
                    self.at(&path, format!("{word:?} is under `{other}` already"));
                }
                if let Some(extended) = self.ok(lexicon.clone().with(*kind, word), &path) {
                    lexicon = extended;
                }
            }
        }
        (!seen.is_empty()).then_some(lexicon)
    }
}

const NUMBER: &str = "expected a number from 1 to 1000000";
const HELD: &str = "expected a size from 4MiB to 1TiB";
const SECONDS: &str = "expected a time from 1s to 10m";
const A_DAY: &str = "expected at most a day";
const A_YEAR: &str = "expected at most a year";
