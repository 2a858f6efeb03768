//! The servers, and what those of one replica set must agree on.

use std::collections::BTreeMap;
use std::time::Duration;

use callward::{Caching, ReplicaSetId, ServerId, ToolName, Weight};
use callward_mcp::upstream::HttpSpec;

use super::super::file::{Hints, Prefix, Server};
use super::super::units::parse_duration;
use super::super::{ServerConfig, TargetConfig, ToolConfig, hints, rules, scopes};
use super::Faults;

/// The bounds of `max_message`, in bytes. A greeting has to fit, and memory has to hold one message.
const LEAST_MESSAGE: usize = 4 << 10;
const MOST_MESSAGE: usize = 1 << 30;

impl Faults<'_, '_> {
    pub(super) fn server(&mut self, key: &str, server: Server) -> Option<ServerConfig> {
        let root = ["servers", key];
        let id = self.ok(ServerId::new(key), &root);
        let at = |name| ["servers", key, name];
        let set = match &server.set {
            Some(set) => self.ok(ReplicaSetId::new(set), &at("set")),
            None => id.clone().map(ReplicaSetId::from),
        };
        let weight = self.ok(Weight::new(server.weight), &at("weight"));
        let limits = self.server_limits(key, &server);
        let instances = self.instances(key, &server);
        self.server_traits(key, &server);
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
            let said = self.tool(key, tool, written.clone());
            tools.extend(name.map(|name| (name, said)));
        }
        let caching = self.caching(&root, server.ttl, server.cache);
        let target = self.target(key, &server);
        let max_message = usize::try_from(server.max_message.0).unwrap_or(usize::MAX);
        self.expect(
            (LEAST_MESSAGE..=MOST_MESSAGE).contains(&max_message),
            &at("max_message"),
            "expected 4KiB to 1GiB",
        );
        Some(ServerConfig {
            id: id?,
            target: target?,
            set: set?,
            weight: weight?,
            categories: server.categories,
            capabilities: server.capabilities,
            zone: server.zone,
            cost_factor: server.cost_factor,
            trust: server.trust,
            prefix,
            limits,
            idempotency_keys: server.idempotency_keys,
            instances,
            era: server.era,
            max_message,
            state: server.state,
            caching,
            defaults,
            tools,
        })
    }

    fn tool(&mut self, server: &str, tool: &str, mut written: Hints) -> ToolConfig {
        let root = ["servers", server, "tools", tool];
        let rules = written.remove("rules");
        let verify_with = self.reader(&root, tool, &mut written);
        let max_concurrent = self.places(&root, &mut written);
        let caching = self.tool_caching(&root, &mut written);
        let scopes = scopes::take(&mut written, |path, message| {
            self.at(&[&root, path].concat(), message);
        });
        let hints = hints::read(&written, |name, message| {
            self.at(&[&root[..], &[name]].concat(), message);
        });
        let rules = rules.map(|rules| {
            rules::read(&rules, |path, message| {
                self.at(&[&root[..], &["rules"], path].concat(), message);
            })
        });
        ToolConfig {
            hints,
            rules: rules.unwrap_or_default(),
            scopes,
            verify_with,
            caching,
            max_concurrent,
        }
    }

    /// Reads whether results are kept, and for how long.
    fn caching(
        &mut self,
        root: &[&str],
        ttl: Option<Duration>,
        cache: Option<bool>,
    ) -> Option<Caching> {
        self.expect(
            ttl.is_none() || cache != Some(false),
            &[root, &["ttl"]].concat(),
            "expected either `ttl` or `cache = false`, found both",
        );
        match (ttl, cache) {
            (_, Some(false)) => Some(Caching::Never),
            (Some(ttl), _) => Some(Caching::For(ttl)),
            (None, Some(true)) => Some(Caching::ByMode),
            (None, None) => None,
        }
    }

    /// Takes `ttl` and `cache` out of a tool's table.
    fn tool_caching(&mut self, root: &[&str], written: &mut Hints) -> Option<Caching> {
        let mut take = |key, expected, is_right: fn(&toml::Value) -> bool| {
            let value = written.remove(key)?;
            self.expect(is_right(&value), &[root, &[key]].concat(), expected);
            Some(value)
        };
        let is_time = |value: &toml::Value| {
            value
                .as_str()
                .is_some_and(|text| parse_duration(text).is_ok())
        };
        let ttl = take("ttl", "expected a duration, such as \"30s\"", is_time);
        let cache = take("cache", "expected `true` or `false`", toml::Value::is_bool);
        let ttl = ttl.and_then(|value| parse_duration(value.as_str()?).ok());
        self.caching(root, ttl, cache.and_then(|value| value.as_bool()))
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
    pub(super) fn sets(&mut self, servers: &[ServerConfig]) {
        self.instances_of_sets(servers);
        for (index, server) in servers.iter().enumerate() {
            let same_prefix = |other: &&ServerConfig| {
                other.set != server.set && server.prefix.is_some() && other.prefix == server.prefix
            };
            if let Some(other) = servers[..index].iter().find(same_prefix) {
                let message = format!(
                    "expected another prefix than that of `servers.{}`: tools of two sets would have \
                     the same names",
                    other.id
                );
                self.at(&["servers", server.id.as_str(), "prefix"], message);
            }
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
            if first.state != server.state {
                conflict(first, &["state"], "the same state");
            }
            if first.caching != server.caching {
                conflict(first, &["ttl"], "the same `ttl` and `cache`");
            }
            if first.defaults != server.defaults {
                conflict(first, &["annotations"], "the same hints");
            }
            for (tool, said) in &server.tools {
                let mut others = servers[..index]
                    .iter()
                    .filter(|other| other.set == server.set);
                let clash = |other| clash(said, other);
                let found =
                    others.find_map(|other| Some((other, other.tools.get(tool).and_then(clash)?)));
                if let Some((other, (key, what))) = found {
                    let path = [&["tools", tool.as_str()], key].concat();
                    conflict(other, &path, what);
                }
            }
        }
    }
}

/// Says in what two servers of one set contradict each other about a tool, by the key below the
/// tool's. How many calls each of them gets at once is its own, and contradicts nothing.
fn clash(said: &ToolConfig, other: &ToolConfig) -> Option<(&'static [&'static str], &'static str)> {
    if !said.speaks_for_set() || !other.speaks_for_set() {
        return None;
    }
    let same = said.hints == other.hints
        && said.rules == other.rules
        && said.scopes == other.scopes
        && said.caching == other.caching;
    if !same {
        Some((&[], "the same hints, rules and scopes for the tool"))
    } else if said.verify_with != other.verify_with {
        Some((&["verify_with"], "the same tool to verify with"))
    } else {
        None
    }
}
