//! From what is written to what is meant, with every problem reported at its place.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tollgate::cache::{MokaStore, StoreKind};
use tollgate::core::infer::{Lexicon, VerbKind};
use tollgate::{ReplicaSetId, ServerId, ToolName};
use tollgate_mcp::face::{HostPattern, OriginPattern};
use tollgate_mcp::upstream::HttpSpec;

use super::error::{Fault, Source};
use super::file::{File, Prefix, Rules, Server};
use super::{
    CacheLimits, Config, HttpConfig, ServerConfig, TargetConfig, ToolConfig, hints, rules, scopes,
};

/// The most a server may weigh: shares are relative, and a bound keeps their sums small.
const MAX_WEIGHT: u32 = 1_000;

/// The longest a breaker may stay open.
const MAX_OPEN: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest a result may be served after its lifetime: the store counts no further.
const MAX_STALE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What a file without a single key means, but for its servers.
pub(super) fn defaults() -> Config {
    let mut faults = Faults {
        source: &Source::new(""),
        found: Vec::new(),
    };
    faults.settings(&File::default())
}

/// Checks a file.
pub(super) fn check(written: File, source: &Source<'_>) -> Result<Config, Vec<Fault>> {
    let mut faults = Faults {
        source,
        found: Vec::new(),
    };
    let mut config = faults.settings(&written);
    if written.servers.is_empty() {
        faults.at(
            &["servers"],
            "expected at least one server: a table [servers.NAME] with `command` or `url`",
        );
    }
    for (id, server) in written.servers {
        if let Some(server) = faults.server(&id, server) {
            config.servers.push(server);
        }
    }
    faults.sets(&config.servers);
    scopes::check_sets(&config.servers, |path, message| faults.at(path, message));
    if faults.found.is_empty() {
        Ok(config)
    } else {
        Err(faults.found)
    }
}

/// Reads an address to listen on: `127.0.0.1:7420`, `localhost:7420`, or a port on loopback.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: &str| {
        let port = port.parse::<u16>().ok()?;
        Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    };
    text.parse::<SocketAddr>()
        .ok()
        .or_else(|| loopback(text.strip_prefix("localhost:").unwrap_or(text)))
        .ok_or_else(|| {
            format!("expected an address with a port, such as \"127.0.0.1:7420\", found {text:?}")
        })
}

/// The problems found so far, and the text they are found in.
struct Faults<'a, 'i> {
    source: &'a Source<'i>,
    found: Vec<Fault>,
}

impl Faults<'_, '_> {
    fn at(&mut self, path: &[&str], message: impl Into<String>) {
        self.found.push(self.source.key_fault(path, message));
    }

    fn expect(&mut self, holds: bool, path: &[&str], message: &str) {
        if !holds {
            self.at(path, message);
        }
    }

    /// Takes a result apart: an error is reported at the key.
    fn ok<T, E: std::fmt::Display>(&mut self, result: Result<T, E>, path: &[&str]) -> Option<T> {
        result
            .map_err(|error| self.at(path, error.to_string()))
            .ok()
    }

    /// Everything but the servers. After a fault the value does not matter: the config is dropped.
    fn settings(&mut self, file: &File) -> Config {
        let listen = self.ok(parse_listen(&file.http.listen), &["http", "listen"]);
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
        self.expect(
            file.cache.slow_threshold.is_none() || file.cache.store == StoreKind::Moka,
            &["cache", "slow_threshold"],
            "expected only together with `store = \"moka\"`: the lean store looks at use alone",
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
            (0.0..=1.0).contains(&file.cache.verify_share),
            &["cache", "verify_share"],
            "expected a share from 0.0 to 1.0: checks per hit",
        );
        self.expect(
            file.retry.max_attempts >= 1,
            &["retry", "max_attempts"],
            "expected 1 or more: the first attempt counts (1 means no repeats)",
        );
        self.expect(
            (0.0..=1.0).contains(&file.retry.budget),
            &["retry", "budget"],
            "expected a share from 0.0 to 1.0: repeats per call",
        );
        self.expect(
            file.breaker.failures >= 1,
            &["breaker", "failures"],
            "expected 1 or more failures in a row",
        );
        self.expect(
            !file.breaker.open_for.is_zero() && file.breaker.open_for <= MAX_OPEN,
            &["breaker", "open_for"],
            "expected more than zero, and at most a day",
        );
        let lexicon = self.lexicon(&file.lexicon);
        self.expect(
            lexicon.is_none() || file.rules == Rules::Standard,
            &["lexicon"],
            "expected only together with `rules = \"standard\"`: the rules of NeuroLink know no verbs",
        );
        let slow_threshold = file.cache.slow_threshold;
        let slow_threshold = slow_threshold.unwrap_or(MokaStore::SLOW_THRESHOLD);
        let mut profile = file.profile.clone();
        if !file.cache.idempotent_writes {
            // the cache has a switch of its own; this one makes plans say so
            profile.idempotent_ttl = None;
        }
        Config {
            profile,
            rules: file.rules,
            lexicon,
            call_deadline: file.call_deadline,
            http: HttpConfig {
                listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
                allowed_hosts: file.http.allowed_hosts.clone(),
                allowed_origins: file.http.allowed_origins.clone(),
                drain: file.http.drain,
            },
            cache: CacheLimits {
                enabled: file.cache.enabled,
                max_bytes: file.cache.max_bytes.0,
                max_item_bytes: file.cache.max_item_bytes.0,
                store: file.cache.store,
                slow_threshold,
                idempotent_writes: file.cache.idempotent_writes,
                partition: file.cache.partition,
                report: file.cache.report,
                stale_while_revalidate: file.cache.stale_while_revalidate,
                stale_if_error: file.cache.stale_if_error,
                verify_share: file.cache.verify_share,
            },
            max_attempts: file.retry.max_attempts,
            retry_budget: file.retry.budget,
            breaker_failures: file.breaker.failures,
            breaker_open_for: file.breaker.open_for,
            strategy: file.router.strategy,
            servers: Vec::new(),
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

    fn server(&mut self, key: &str, server: Server) -> Option<ServerConfig> {
        let root = ["servers", key];
        let id = self.ok(ServerId::new(key), &root);
        let at = |name| ["servers", key, name];
        let set = match &server.set {
            Some(set) => self.ok(ReplicaSetId::new(set), &at("set")),
            None => id.clone().map(ReplicaSetId::from),
        };
        self.expect(
            server.weight <= MAX_WEIGHT,
            &at("weight"),
            "expected a whole number from 0 to 1000 (50 or more may take destructive calls)",
        );
        self.expect(
            server.max_concurrent >= 1,
            &at("max_concurrent"),
            "expected 1 or more",
        );
        let prefix = match &server.prefix {
            Prefix::Set => set.as_ref().map(ToString::to_string),
            Prefix::None => None,
            Prefix::Named(name) => self
                .ok(ReplicaSetId::new(name), &at("prefix"))
                .map(|name| name.to_string()),
        };
        let defaults = hints::read(&server.annotations, |name, message| {
            self.at(&["servers", key, "annotations", name], message);
        });
        let mut tools = BTreeMap::new();
        for (tool, written) in &server.tools {
            let name = self.ok(ToolName::new(tool), &["servers", key, "tools", tool]);
            let mut written = written.clone();
            let rules = written.remove("rules");
            let scopes = scopes::take(&mut written, |path, message| {
                let root = ["servers", key, "tools", tool];
                self.at(&[&root, path].concat(), message);
            });
            let hints = hints::read(&written, |name, message| {
                self.at(&["servers", key, "tools", tool, name], message);
            });
            let rules = rules.map(|rules| {
                rules::read(&rules, |path, message| {
                    let root = ["servers", key, "tools", tool, "rules"];
                    self.at(&[&root, path].concat(), message);
                })
            });
            let rules = rules.unwrap_or_default();
            let said = ToolConfig {
                hints,
                rules,
                scopes,
            };
            tools.extend(name.map(|name| (name, said)));
        }
        let target = self.target(key, &server);
        Some(ServerConfig {
            id: id?,
            target: target?,
            set: set?,
            weight: server.weight,
            categories: server.categories,
            trust: server.trust,
            prefix,
            max_concurrent: server.max_concurrent,
            era: server.era,
            defaults,
            tools,
        })
    }

    fn target(&mut self, key: &str, server: &Server) -> Option<TargetConfig> {
        let at = |name| ["servers", key, name];
        match (&server.command, &server.url) {
            (Some(program), None) => {
                self.expect(
                    !program.trim().is_empty(),
                    &at("command"),
                    "expected the program to start",
                );
                self.expect(
                    server.headers.is_empty(),
                    &at("headers"),
                    "expected only together with `url`: a child process has no HTTP headers",
                );
                Some(TargetConfig::Command {
                    program: program.clone(),
                    args: server.args.clone(),
                    env: server.env.clone(),
                })
            }
            (None, Some(url)) => {
                for (name, given) in [
                    ("args", !server.args.is_empty()),
                    ("env", !server.env.is_empty()),
                ] {
                    self.expect(!given, &at(name), "expected only together with `command`");
                }
                let spec = self.ok(HttpSpec::new(url), &at("url"));
                for (name, value) in &server.headers {
                    if let Some(spec) = spec.clone() {
                        self.ok(
                            spec.with_header(name, value),
                            &["servers", key, "headers", name],
                        );
                    }
                }
                Some(TargetConfig::Http {
                    url: url.clone(),
                    headers: server.headers.clone(),
                })
            }
            (Some(_), Some(_)) => {
                self.at(&at("url"), "expected either `command` or `url`, found both");
                None
            }
            (None, None) => {
                self.at(
                    &["servers", key],
                    "expected `command` (a program to start) or `url` (an endpoint), found neither",
                );
                None
            }
        }
    }

    /// What the servers of one set must agree on: clients see one list of tools per set.
    fn sets(&mut self, servers: &[ServerConfig]) {
        for (index, server) in servers.iter().enumerate() {
            let Some(first) = servers[..index]
                .iter()
                .find(|other| other.set == server.set)
            else {
                continue;
            };
            let mut conflict = |other: &ServerConfig, key: &[&str], what: &str| {
                let mut path = vec!["servers", server.id.as_str()];
                path.extend(key);
                let message = format!(
                    "expected {what} as in `servers.{}`: both are in set {:?}, whose tools are listed once",
                    other.id,
                    server.set.as_str()
                );
                self.at(&path, message);
            };
            if first.prefix != server.prefix {
                conflict(first, &["prefix"], "the same prefix");
            }
            if first.trust != server.trust {
                conflict(first, &["trust"], "the same trust");
            }
            if first.defaults != server.defaults {
                conflict(first, &["annotations"], "the same hints");
            }
            for (tool, said) in &server.tools {
                let other = servers[..index].iter().find(|other| {
                    other.set == server.set
                        && other.tools.get(tool).is_some_and(|other| other != said)
                });
                if let Some(other) = other {
                    let what = "the same hints, rules and scopes for the tool";
                    conflict(other, &["tools", tool.as_str()], what);
                }
            }
        }
    }
}
