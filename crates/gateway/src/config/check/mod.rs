//! Checks the keys of a file together, and reports every problem at its place.

mod servers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use callward::StackBuilder;
use callward::auth::rules::Then;
use callward::core::infer::Lexicon;
use callward::core::{BaggageFilter, InvalidConfig, Lifetime, RuleSet};
use callward::telemetry::export::OtlpConfig;
use callward_auth::signed::Signer;
use callward_auth::tokens::{Secret, Tokens};
use callward_auth::webhook::Webhook;
use callward_auth::{ResourceMetadata, TrustedProxy};
use callward_mcp::server::{HostPattern, OriginPattern};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::error::{Fault, Source, dotted};
use super::{ADMIN, Auth, Config, KeySource, PUBLIC, Server, exposed};
use crate::builtin::SERVER;
use crate::config::ListingMode;
use crate::view::with_values;
use crate::webhook;

/// The longest that anything may wait or run: no client waits a day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest a result may be served: the store counts no further.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Checks a config, derives settings from its keys, and reads its servers. Returns the faults, and
/// what is probably a mistake.
pub(super) fn check(config: &mut Config, source: &Source<'_>) -> (Vec<Fault>, Vec<Fault>) {
    // in file order: the first of two sets that want a name gets it
    let mut tables: Vec<_> = std::mem::take(&mut config.tables).into_iter().collect();
    let set = |(id, table): &(String, Server)| match &table.set {
        Some(set) => set.to_string(),
        None => id.clone(),
    };
    let mut faults = Faults {
        source,
        sets: tables.iter().map(set).collect(),
        found: Vec::new(),
        warned: Vec::new(),
    };
    faults.settings(config);
    faults.layers(config);
    faults.rules(config);
    faults.guardrails(&config.guardrails);
    derive(config);
    tables.sort_by_key(|(id, _)| source.span(&dotted("servers", id)).map(|span| span.start));
    for (id, table) in tables {
        config.servers.extend(faults.server(&id, table));
    }
    faults.sets(&config.servers);
    (faults.found, faults.warned)
}

/// Sets what follows from several keys.
fn derive(config: &mut Config) {
    let (cache, profile) = (&config.cache, &mut config.profile);
    if let Some(ttl) = cache.ttl {
        profile.read_ttl = ttl;
    }
    if cache.idempotent_ttl.is_some() {
        profile.idempotent_ttl = cache.idempotent_ttl;
        profile.idempotent_lifetime = Lifetime::Stated;
    }
    if config.audit.path.is_some() {
        profile.audit = config.audit.record;
    }
    if !cache.layer.idempotent_writes {
        // the cache has a switch of its own; this one shows in plans
        profile.idempotent_ttl = None;
    }
    config.principals.generous = config.identifies();
}

/// The problems found so far, and the text they are found in.
struct Faults<'a, 'i> {
    source: &'a Source<'i>,
    /// The replica sets.
    sets: BTreeSet<String>,
    found: Vec<Fault>,
    warned: Vec<Fault>,
}

impl Faults<'_, '_> {
    fn at(&mut self, key: &str, message: impl Into<String>) {
        self.found.push(self.source.key_fault(key, message));
    }

    fn warn(&mut self, key: &str, message: impl Into<String>) {
        self.warned.push(self.source.key_fault(key, message));
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

    /// Reports why a service cannot be asked, and what is wrong with its secret beside that.
    fn service<T>(&mut self, key: &str, made: Result<T, String>, secret: &Secret) {
        let faults = BTreeSet::from([made.err(), Signer::new(secret).err()]);
        for fault in faults.into_iter().flatten() {
            self.at(key, fault);
        }
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
                "pending_per_principal" => "pending",
                "open_time" => "open_for",
                "ttl" => "affinity.ttl",
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
        let (breaker, router) = (&config.breaker, &config.router);
        self.layer("breaker", breaker, |it| it.layer.validate());
        self.layer("breaker.server", &breaker.server, |it| {
            it.layer().validate()
        });
        self.layer("limits", &config.limits, |it| it.progress_cap.validate());
        self.layer("router", router, |it| it.layer.validate());
        self.layer("router.ping", &router.ping.config, |it| it.validate());
        self.layer("audit", &config.audit, |it| {
            let log = it.path.clone().unwrap_or_else(|| "audit.jsonl".into());
            it.layer(log).validate()
        });
        if let Some(approvals) = &config.approvals {
            self.layer("approvals", approvals, |it| it.layer().validate());
            if let Some(asked) = &approvals.webhook {
                self.service(
                    "approvals.webhook",
                    webhook::Webhook::new(asked),
                    &asked.secret,
                );
            }
        }
        let (path, open_world) = (&config.audit.path, &config.audit.open_world_path);
        for (key, path) in [("audit.path", path), ("audit.open_world_path", open_world)] {
            let folder = path.as_deref().and_then(Path::parent);
            if let Some(folder) = folder.filter(|folder| !folder.join(".").exists()) {
                let folder = folder.display();
                let message =
                    format!("the folder {folder} does not exist: the start would make it");
                self.warn(key, message);
            }
        }
    }

    fn auth(&mut self, auth: &Auth) {
        if let Some(Err(faults)) = auth.proxy.as_ref().map(TrustedProxy::new) {
            for fault in faults {
                self.at(&dotted("auth.proxy", &fault.key), fault.reason);
            }
        }
        let before = self.found.len();
        for (number, issuer) in (1_usize..).zip(&auth.issuers) {
            for (key, fault) in issuer.faults() {
                self.at(&format!("auth.issuers.{number}.{key}"), fault.to_string());
            }
        }
        if !auth.issuers.is_empty() && self.found.len() == before {
            self.ok(Tokens::new(auth.issuers.clone()), "auth.issuers");
        }
    }

    fn settings(&mut self, config: &mut Config) {
        let (http, cache) = (&config.http, &config.cache);
        let (telemetry, limits) = (&config.telemetry, &config.limits);
        let (tls, auth, on_tcp) = (&http.tls, &config.auth, config.admin.tcp());
        let unless_asked = (!config.identifies()).then_some(http.listen);
        for (address, section, advice) in [(unless_asked, "http", PUBLIC), (on_tcp, "admin", ADMIN)]
        {
            let address = address.filter(|_| !http.insecure);
            let why = address.and_then(|address| exposed(address, advice));
            self.ok(why.map_or(Ok(()), Err), &dotted(section, "listen"));
        }
        let no_paths = ["", "true", "false"].map(|text| KeySource::File(text.into()));
        let resource = auth.resource.as_deref().unwrap_or_default();
        let resource = ResourceMetadata::new(resource, "", Vec::new()).url();
        let needs_none = auth.resource.is_none() && auth.issuers.is_empty();
        self.auth(auth);
        if let Err(error) = tls.check() {
            self.at(error.key, error.message);
        }
        if let Some(asked) = &config.authorize_webhook {
            self.service("authorize_webhook", Webhook::new(asked), &asked.secret);
        }
        let pattern = str::parse::<HostPattern>;
        self.each(&http.allowed_hosts, "http.allowed_hosts", pattern);
        self.each(&config.admin.allowed_hosts, "admin.allowed_hosts", pattern);
        let pattern = str::parse::<OriginPattern>;
        self.each(&http.allowed_origins, "http.allowed_origins", pattern);
        let seconds = Duration::from_secs(1)..=Duration::from_secs(600);
        let number = 1..=1_000_000;
        let has_tools = config.toolsets.enabled || config.listing.mode != ListingMode::All;
        let held = 4 << 20..=1 << 40;
        let is_year = |time: Option<Duration>| time.is_none_or(|time| time <= YEAR);
        #[rustfmt::skip]
        let rules = [
            (!has_tools || !self.sets.contains(SERVER), "servers",
             "expected no server or set with the name `builtin`: the built-in tools have it"),
            (config.toolsets.path.is_none() || config.toolsets.enabled, "toolsets.path",
             "expected only together with `enabled = true`"),
            (config.identifies() || self.source.span("auth").is_none(), "auth",
             "expected `keys = true`, `issuers` or `proxy`: without them, no client is asked"),
            (!no_paths.contains(&auth.keys), "auth.keys", "expected `true`, or the path of a file"),
            (config.authorize_default != Then::Ask || config.asking().is_some(), "authorize_default",
             "expected `[approvals]` or `[auth]` in the file: no operator could answer"),
            (resource.is_some() || needs_none, "auth.resource",
             "expected the URL of the endpoint as clients know it, such as \
              \"https://gateway.example.com/mcp\""),
            (on_tcp != Some(http.listen) || http.listen.port() == 0, "admin.listen",
             "expected another address than `http.listen`"),
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
            (limits.rate.max_wait <= DAY, "limits.max_wait", A_DAY),
            (limits.attempt_timeout.is_none_or(|time| !time.is_zero() && time <= DAY),
             "limits.attempt_timeout", "expected more than zero, and at most a day"),
            (!matches!(limits.progress_cap, callward::limit::Cap::At(cap) if cap > DAY),
             "limits.progress_cap", A_DAY),
            ((StackBuilder::MIN_LISTING_TIMEOUT..=DAY).contains(&config.discovery.timeout),
             "discovery.timeout", "expected 5 s or more, and at most a day"),
            (config.discovery.refresh.0.is_none_or(|time| (Duration::from_secs(1)..=DAY).contains(&time)),
             "discovery.refresh", "expected 1 s or more, and at most a day"),
            (telemetry.sampling.is_none_or(|share| (0.0..=1.0).contains(&share)),
             "telemetry.sampling", "expected a share from 0.0 to 1.0: traces per call"),
            (telemetry.service_name.as_deref() != Some(""), "telemetry.service_name",
             "expected a name"),
            (config.rules == RuleSet::Standard || config.verbs.values().all(Vec::is_empty),
             "lexicon", "expected only together with `rules = \"standard\"`: the rules of NeuroLink \
             know no verbs"),
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
