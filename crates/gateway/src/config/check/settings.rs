//! What holds for all servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use callward::core::Lifetime;
use callward::core::infer::{Lexicon, VerbKind};
use callward_mcp::face::{HostPattern, OriginPattern};

use super::super::file::{File, Rules};
use super::super::{AdminAddress, CacheLimits, Config, HttpConfig, References, exposed};
use super::{Faults, parse_listen};
use crate::connections::ConnectionLimits;

/// The longest a result may be served after its lifetime: the store counts no further.
const MAX_STALE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How many bytes of bodies or answers may be held: of one request at least.
const HELD: std::ops::RangeInclusive<u64> = 4 << 20..=1 << 40;

/// How long a write that may still land keeps what it touched out of the cache, at most: between these.
const SETTLE: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(600);

impl Faults<'_, '_> {
    /// After a fault the value does not matter: the config is dropped.
    pub(super) fn settings(&mut self, file: &File) -> Config {
        let listen = self.ok(parse_listen(&file.http.listen), &["http", "listen"]);
        let admin = file.admin.listen.as_deref().map(AdminAddress::parse);
        let admin = admin.and_then(|parsed| self.ok(parsed, &["admin", "listen"]));
        let on_tcp = match admin {
            Some(AdminAddress::Tcp(address)) => Some(address),
            _ => None,
        };
        for (address, section) in [(listen, "http"), (on_tcp, "admin")] {
            let why = address.filter(|_| !file.http.insecure).and_then(exposed);
            self.ok(why.map_or(Ok(()), Err), &[section, "listen"]);
        }
        self.expect(
            !file.http.allowed_hosts.is_empty(),
            &["http", "allowed_hosts"],
            "expected at least one host name: an empty list would refuse every request",
        );
        for host in &file.http.allowed_hosts {
            self.ok(host.parse::<HostPattern>(), &["http", "allowed_hosts"]);
        }
        for origin in &file.http.allowed_origins {
            self.ok(
                origin.parse::<OriginPattern>(),
                &["http", "allowed_origins"],
            );
        }
        self.expect(
            !file.call_deadline.is_zero(),
            &["call_deadline"],
            "expected more than zero: every call would be over before it began",
        );
        self.expect(
            file.cache.max_item_bytes.0 <= file.cache.max_bytes.0,
            &["cache", "max_item_bytes"],
            "expected at most `cache.max_bytes`",
        );
        for (key, time) in [
            ("stale_while_revalidate", file.cache.stale_while_revalidate),
            ("stale_if_error", file.cache.stale_if_error),
        ] {
            self.expect(
                time <= MAX_STALE,
                &["cache", key],
                "expected at most a year",
            );
        }
        self.expect(
            (0.0..=0.5).contains(&file.cache.stale_odds),
            &["cache", "stale_odds"],
            "expected a probability from 0.0 to 0.5: of an answer that has changed",
        );
        for (key, time) in [
            ("ttl", file.cache.ttl),
            ("idempotent_ttl", file.cache.idempotent_ttl),
            ("burst", Some(file.cache.burst)),
        ] {
            self.expect(
                time.is_none_or(|time| time <= MAX_STALE),
                &["cache", key],
                "expected at most a year",
            );
        }
        self.expect(
            SETTLE.contains(&file.cache.settle),
            &["cache", "settle"],
            "expected a time from 1s to 10m",
        );
        for (key, number) in [
            ("max_connections", file.http.max_connections),
            (
                "max_connections_per_address",
                file.http.max_connections_per_address,
            ),
            ("max_sessions", file.http.max_sessions),
            ("max_sessions_per_client", file.http.max_sessions_per_client),
        ] {
            self.expect(
                (1..=1_000_000).contains(&number),
                &["http", key],
                "expected a number from 1 to 1000000",
            );
        }
        for (key, size) in [
            ("max_bodies", file.http.max_bodies),
            ("max_unread", file.http.max_unread),
        ] {
            self.expect(
                HELD.contains(&size.0),
                &["http", key],
                "expected a size from 4MiB to 1TiB",
            );
        }
        for (key, time) in [
            ("header_timeout", file.http.header_timeout),
            ("write_timeout", file.http.write_timeout),
            ("body_timeout", file.http.body_timeout),
        ] {
            let bounds = Duration::from_secs(1)..=Duration::from_secs(600);
            self.expect(
                bounds.contains(&time),
                &["http", key],
                "expected a time from 1s to 10m",
            );
        }
        let lexicon = self.lexicon(&file.lexicon);
        self.expect(
            lexicon.is_none() || file.rules == Rules::Standard,
            &["lexicon"],
            "expected only together with `rules = \"standard\"`: the rules of NeuroLink know no verbs",
        );
        let mut profile = file.profile.clone();
        if let Some(ttl) = file.cache.ttl {
            profile.read_ttl = ttl;
        }
        if let Some(ttl) = file.cache.idempotent_ttl {
            profile.idempotent_ttl = Some(ttl);
            profile.idempotent_lifetime = Lifetime::Stated;
        }
        if file.audit.path.is_some() {
            profile.audit = file.audit.record.into();
        }
        if !file.cache.idempotent_writes {
            // the cache has a switch of its own; this one makes plans say so
            profile.idempotent_ttl = None;
        }
        Config {
            profile,
            rules: file.rules,
            lexicon,
            call_deadline: file.call_deadline,
            startup_timeout: file.startup_timeout,
            trail: file.trail,
            http: HttpConfig {
                listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
                allowed_hosts: file.http.allowed_hosts.clone(),
                allowed_origins: file.http.allowed_origins.clone(),
                insecure: file.http.insecure,
                metrics: file.http.metrics,
                connections: ConnectionLimits {
                    all: file.http.max_connections,
                    per_address: file.http.max_connections_per_address,
                    proxies: file.http.proxies.clone(),
                    unread: as_usize(file.http.max_unread.0),
                    header: file.http.header_timeout,
                    write: file.http.write_timeout,
                },
                max_sessions: file.http.max_sessions,
                max_sessions_per_client: file.http.max_sessions_per_client,
                max_bodies: as_usize(file.http.max_bodies.0),
                body_timeout: file.http.body_timeout,
                lame_duck: file.http.lame_duck,
                drain: file.http.drain,
            },
            admin,
            cache: CacheLimits {
                enabled: file.cache.enabled,
                max_bytes: file.cache.max_bytes.0,
                max_item_bytes: file.cache.max_item_bytes.0,
                slow_threshold: file.cache.slow_threshold,
                idempotent_writes: file.cache.idempotent_writes,
                freshness: file.cache.freshness,
                ttl: file.cache.ttl,
                idempotent_ttl: file.cache.idempotent_ttl,
                burst: file.cache.burst,
                settle: file.cache.settle,
                stale_odds: file.cache.stale_odds,
                evidence: None,
                partition: file.cache.partition,
                report: file.cache.report,
                stale_while_revalidate: file.cache.stale_while_revalidate,
                stale_if_error: file.cache.stale_if_error,
            },
            loop_guard: self.loop_guard(&file.loop_guard),
            retry: self.retry(&file.retry),
            hedge: self.hedge(&file.hedge),
            limits: self.limits(&file.limits),
            breaker: self.breaker(&file.breaker),
            server_breaker: self.server_breaker(&file.breaker.server),
            discovery: self.discovery(&file.discovery),
            router: self.router(&file.router),
            ping: self.ping(&file.router.ping),
            audit: self.audit(&file.audit),
            telemetry: self.telemetry(&file.telemetry),
            servers: Vec::new(),
            kept_names: Vec::new(),
            references: References::default(),
        }
    }

    /// Adds the verbs of the file to the standard ones. One verb has one meaning.
    fn lexicon(&mut self, written: &BTreeMap<VerbKind, Vec<String>>) -> Option<Lexicon> {
        let mut seen = BTreeMap::new();
        let mut lexicon = Lexicon::standard().clone();
        for (kind, words) in written {
            for (number, word) in (1_usize..).zip(words) {
                let number = number.to_string();
                let path = ["lexicon", kind.as_str(), &number];
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

/// A size as this machine counts it.
fn as_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
