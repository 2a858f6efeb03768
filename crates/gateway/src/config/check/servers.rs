//! The tables of servers, and the settings that must be equal in one replica set.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use callward::cache::{ScopeTemplate, ToolScopes};
use callward::core::human::parse_duration;
use callward::limit::RateLimitConfig;
use callward::{Caching, ReplicaSetId, ServerId, ToolName, Weight};
use callward_mcp::client::HttpSpec;
use serde::de::DeserializeOwned;

use super::super::server::{Prefix, Server, ServerConfig, Table, ToolConfig};
use super::{Faults, join};

impl Faults<'_, '_> {
    pub(super) fn server(&mut self, key: &str, table: Server) -> Option<ServerConfig> {
        let root = ["servers", key];
        let id = self.ok(ServerId::new(key), &root);
        let at = |name| ["servers", key, name];
        let set = match &table.set {
            Some(set) => self.ok(ReplicaSetId::new(set), &at("set")),
            None => id.clone().map(ReplicaSetId::from),
        };
        let prefix = match &table.prefix {
            None | Some(Prefix::Set(true)) => set.as_ref().map(ToString::to_string),
            Some(Prefix::Set(false)) => None,
            Some(Prefix::Named(name)) => self
                .ok(ReplicaSetId::new(name), &at("prefix"))
                .map(|name| name.to_string()),
        };
        self.ok(Weight::new(table.weight), &at("weight"));
        let is_word = |word: &str| !word.trim().is_empty();
        for (name, words) in [
            ("categories", &table.categories),
            ("capabilities", &table.capabilities),
        ] {
            let message = "expected a word: a blank one matches no tag";
            self.each(words, &at(name), is_word, message);
        }
        let message_size = 4 << 10..=1 << 30;
        #[rustfmt::skip]
        let rules = [
            (table.max_concurrent > 0, "max_concurrent", "expected 1 or more"),
            (table.max_concurrent_per_tool != Some(0), "max_concurrent_per_tool",
             "expected 1 or more"),
            (table.max_instances > 0, "max_instances", "expected 1 or more"),
            (table.spare.is_none_or(|spare| spare < table.max_instances.max(1)), "spare",
             "expected less than `max_instances`: a spare instance counts too"),
            (!table.idle.is_zero(), "idle",
             "expected more than 0: an instance would end with each call"),
            (table.zone.as_deref().is_none_or(is_word), "zone",
             "expected the name of a zone; leave the key out where there is none"),
            (table.cost_factor.is_finite() && table.cost_factor >= 0.0, "cost_factor",
             "expected a number of 0 or more: what a call costs here for each unit of its tool's \
              cost"),
            (message_size.contains(&table.max_message), "max_message", "expected 4KiB to 1GiB"),
        ];
        for (holds, name, message) in rules {
            self.expect(holds, &at(name), message);
        }
        let rate = RateLimitConfig::default().with_in_all(table.calls_per_minute);
        if let Err(fault) = rate.validate() {
            self.at(&at("calls_per_minute"), fault.reason);
        }
        self.target(key, &table);
        let defaults = self.hints(&at("annotations"), &table.annotations);
        let mut tools = BTreeMap::new();
        for (tool, written) in &table.tools {
            let name = self.ok(ToolName::new(tool), &["servers", key, "tools", tool]);
            let said = self.tool(key, tool, written.clone());
            tools.extend(name.map(|name| (name, said)));
        }
        let caching = self.caching(&root, table.ttl, table.cache);
        Some(ServerConfig {
            id: id?,
            set: set?,
            prefix,
            caching,
            defaults,
            tools,
            table,
        })
    }

    fn target(&mut self, key: &str, table: &Server) {
        let at = |name| ["servers", key, name];
        match (&table.command, &table.url) {
            (Some(program), None) => {
                self.program(&at("command"), program);
                self.expect(
                    table.headers.is_empty(),
                    &at("headers"),
                    "expected only together with `url`: a child process has no HTTP headers",
                );
            }
            (None, Some(url)) => {
                for (name, given) in [
                    ("args", !table.args.is_empty()),
                    ("env", !table.env.is_empty()),
                ] {
                    self.expect(!given, &at(name), "expected only together with `command`");
                }
                let Some(spec) = self.ok(HttpSpec::new(url), &at("url")) else {
                    return;
                };
                for (name, value) in &table.headers {
                    let checked = spec.clone().with_header(name, value);
                    self.ok(checked, &["servers", key, "headers", name]);
                }
            }
            (Some(_), Some(_)) => {
                self.at(&at("url"), "expected either `command` or `url`, found both");
            }
            (None, None) => self.at(
                &["servers", key],
                "expected `command` (a program to start) or `url` (an endpoint), found neither",
            ),
        }
    }

    /// A command line in one text is a mistake that a start would show much later.
    fn program(&mut self, path: &[&str], program: &str) {
        if program.trim().is_empty() {
            self.at(path, "expected the program to start");
        } else if let Some((name, args)) = program.trim().split_once(' ')
            && !std::path::Path::new(program).exists()
        {
            let args: Vec<_> = args
                .split_whitespace()
                .map(|arg| format!("{arg:?}"))
                .collect();
            let message = format!(
                "expected a program without its arguments: write command = {name:?} and args = [{}]",
                args.join(", ")
            );
            self.at(path, message);
        }
    }

    fn tool(&mut self, server: &str, tool: &str, mut written: Table) -> ToolConfig {
        let root = ["servers", server, "tools", tool];
        let at = |key| join(&root, key);
        let expected = "expected the name of a tool of the same set that only reads, as a string";
        let reader = self.take(&root, &mut written, "verify_with", expected);
        let verify_with = reader.and_then(|reader: String| {
            self.expect(
                reader != tool,
                &at("verify_with"),
                "expected another tool, one that only reads: to call this one again checks nothing",
            );
            self.ok(ToolName::new(reader), &at("verify_with"))
        });
        let expected = "expected a whole number, 1 or more: calls of the tool at once";
        let max_concurrent = self.take(&root, &mut written, "max_concurrent", expected);
        let expected = "expected a duration, such as \"30s\"";
        let ttl = self.take(&root, &mut written, "ttl", expected);
        let ttl = ttl.and_then(|text: String| {
            self.ok(parse_duration(&text).map_err(|_| expected), &at("ttl"))
        });
        let cache = self.take(&root, &mut written, "cache", "expected `true` or `false`");
        let caching = self.caching(&root, ttl, cache);
        let mut scopes = ToolScopes::default();
        scopes.reads = self.templates(&root, &mut written, "reads");
        scopes.writes = self.templates(&root, &mut written, "writes");
        let rules = written.remove("rules");
        let rules = rules.map(|rules| self.rules(&at("rules"), &rules));
        ToolConfig {
            hints: self.hints(&root, &written),
            rules: rules.unwrap_or_default(),
            scopes,
            verify_with,
            caching,
            max_concurrent: max_concurrent.map(NonZeroUsize::get),
        }
    }

    /// Takes one key out of a table, and reads it.
    fn take<T: DeserializeOwned>(
        &mut self,
        path: &[&str],
        written: &mut Table,
        key: &str,
        expected: &str,
    ) -> Option<T> {
        let value = written.remove(key)?.try_into();
        self.ok(value.map_err(|_| expected), &join(path, key))
    }

    /// Reads a list of scopes; elements are counted from 1.
    fn templates(
        &mut self,
        path: &[&str],
        written: &mut Table,
        key: &str,
    ) -> Option<Vec<ScopeTemplate>> {
        let expected = "expected a list of scopes, such as [\"order:{id}\", \"@billing\"]";
        let list: Vec<toml::Value> = self.take(path, written, key, expected)?;
        let mut scopes = Vec::new();
        for (number, written) in (1_usize..).zip(list) {
            let number = number.to_string();
            let path = [path, &[key, &number]].concat();
            let expected = "expected a scope as a string, such as \"order:{id}\"";
            let text = self.ok(written.as_str().ok_or(expected), &path);
            scopes.extend(text.and_then(|text| self.ok(text.parse(), &path)));
        }
        Some(scopes)
    }

    /// Returns whether results are kept, and for how long.
    fn caching(
        &mut self,
        root: &[&str],
        ttl: Option<Duration>,
        cache: Option<bool>,
    ) -> Option<Caching> {
        self.expect(
            ttl.is_none() || cache != Some(false),
            &join(root, "ttl"),
            "expected either `ttl` or `cache = false`, found both",
        );
        match (ttl, cache) {
            (_, Some(false)) => Some(Caching::Never),
            (Some(ttl), _) => Some(Caching::For(ttl)),
            (None, Some(true)) => Some(Caching::ByMode),
            (None, None) => None,
        }
    }

    /// Reports what the servers of one set do not agree on: clients see one list of tools per set.
    pub(super) fn sets<'a>(&mut self, servers: &'a [ServerConfig]) {
        for (index, server) in servers.iter().enumerate() {
            let id = server.id.as_str();
            let before = &servers[..index];
            let same_prefix = |other: &&ServerConfig| {
                other.set != server.set && server.prefix.is_some() && other.prefix == server.prefix
            };
            if let Some(other) = before.iter().find(same_prefix) {
                let message = format!(
                    "expected another prefix than that of `servers.{}`: tools of two sets would have \
                     the same names",
                    other.id
                );
                self.at(&["servers", id, "prefix"], message);
            }
            let in_set = || before.iter().filter(|other| other.set == server.set);
            let mut conflict = |other: &ServerConfig, key: &[&str], what: &str| {
                let message = format!(
                    "expected {what} as in `servers.{}`: both are in set {:?}, whose tools are listed \
                     once",
                    other.id,
                    server.set.as_str()
                );
                self.at(&[&["servers", id], key].concat(), message);
            };
            if let Some(first) = in_set().next() {
                let (ours, theirs) = (&server.table, &first.table);
                let modes = [ours, theirs].map(|table| table.instances.unwrap_or_default());
                #[rustfmt::skip]
                let rules = [
                    (modes[0] == modes[1], "instances", "the same instances"),
                    (first.prefix == server.prefix, "prefix", "the same prefix"),
                    (theirs.trust == ours.trust, "trust", "the same trust"),
                    (theirs.state == ours.state, "state", "the same state"),
                    (first.caching == server.caching, "ttl", "the same `ttl` and `cache`"),
                    (first.defaults == server.defaults, "annotations", "the same hints"),
                ];
                for (_, key, what) in rules.into_iter().filter(|(agree, ..)| !agree) {
                    conflict(first, &[key], what);
                }
            }
            for (tool, said) in &server.tools {
                let clashes =
                    |other: &'a ServerConfig| Some((other, clash(said, other.tools.get(tool)?)?));
                if let Some((other, (key, what))) = in_set().find_map(clashes) {
                    conflict(other, &[&["tools", tool.as_str()], key].concat(), what);
                }
            }
        }
    }

    /// Reports each scope of a replica set that no server is in.
    pub(super) fn scopes(&mut self, servers: &[ServerConfig]) {
        let sets: BTreeSet<&ReplicaSetId> = servers.iter().map(|server| &server.set).collect();
        for server in servers {
            for (tool, said) in &server.tools {
                for (key, list) in [
                    ("reads", &said.scopes.reads),
                    ("writes", &said.scopes.writes),
                ] {
                    for (number, scope) in (1_usize..).zip(list.iter().flatten()) {
                        let Some(set) = scope.set.as_ref().filter(|set| !sets.contains(set)) else {
                            continue;
                        };
                        let known = sets.iter().map(|set| set.as_str());
                        let hint = crate::similar::hint(set.as_str(), known, "sets");
                        let (server, number) = (server.id.as_str(), number.to_string());
                        let path = ["servers", server, "tools", tool.as_str(), key, &number];
                        self.at(
                            &path,
                            format!("no server is in set {:?}: {hint}", set.as_str()),
                        );
                    }
                }
            }
        }
    }
}

/// Returns the keys of a tool in which two servers of one set differ. Their concurrency limits may
/// differ.
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
