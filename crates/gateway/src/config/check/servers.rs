//! The servers, and what those of one replica set must agree on.

use std::collections::BTreeMap;

use tollgate::{ReplicaSetId, ServerId, ToolName};
use tollgate_mcp::upstream::HttpSpec;

use super::super::file::{Prefix, Server};
use super::super::{ServerConfig, TargetConfig, ToolConfig, hints, rules, scopes};
use super::Faults;

/// The most a server may weigh: shares are relative, and a bound keeps their sums small.
const MAX_WEIGHT: u32 = 1_000;

impl Faults<'_, '_> {
    pub(super) fn server(&mut self, key: &str, server: Server) -> Option<ServerConfig> {
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
    pub(super) fn sets(&mut self, servers: &[ServerConfig]) {
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
