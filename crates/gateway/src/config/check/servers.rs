//! The tables of servers, and the settings that must be equal in one replica set.

use std::path::Path;
use std::time::Duration;

use callward::auth::rules::{Rule, Then};
use callward::core::{Approver, Glob, Method, Severity, ToolGlob};
use callward::{Annotations, ReplicaSetId, ServerId};
use callward_mcp::client::HttpSpec;

use super::super::Config;
use super::super::Guardrails;
use super::super::error::dotted;
use super::super::server::{Prefix, Server, ServerConfig, ToolConfig};
use super::Faults;
use crate::similar;

impl Faults<'_, '_> {
    pub(super) fn server(&mut self, key: &str, table: Server) -> Option<ServerConfig> {
        let root = dotted("servers", key);
        let at = |name| dotted(&root, name);
        let id = self.ok(ServerId::new(key), &root);
        let set = table.set.clone();
        let set = set.or_else(|| id.clone().map(ReplicaSetId::from));
        let prefix = match &table.prefix {
            None | Some(Prefix::Set(true)) => set.clone(),
            Some(Prefix::Set(false)) => None,
            Some(Prefix::Named(name)) => self.ok(ReplicaSetId::new(name), &at("prefix")),
        };
        let is_word = |word: &str| !word.trim().is_empty();
        let word = |word: &str| match is_word(word) {
            true => Ok(()),
            false => Err("expected a word: a blank one matches no tag"),
        };
        self.each(&table.categories, &at("categories"), word);
        self.each(&table.capabilities, &at("capabilities"), word);
        let message_size = 4 << 10..=1 << 30;
        #[rustfmt::skip]
        let rules = [
            (table.max_concurrent > 0, "max_concurrent", "expected 1 or more"),
            (table.max_concurrent_per_tool != Some(0), "max_concurrent_per_tool",
             "expected 1 or more"),
            (table.max_instances > 0, "max_instances", "expected 1 or more"),
            (table.calls_per_minute.is_none_or(|rate| rate > 0.0), "calls_per_minute",
             "expected a number of calls a minute above 0; leave it out for no limit"),
            (table.spare.is_none_or(|spare| spare < table.max_instances.max(1)), "spare",
             "expected less than `max_instances`: a spare instance counts too"),
            (!table.idle.is_zero(), "idle",
             "expected more than 0: an instance would end with each call"),
            (table.zone.as_deref().is_none_or(is_word), "zone",
             "expected the name of a zone; leave the key out where there is none"),
            (table.cost_factor >= 0.0, "cost_factor",
             "expected a number of 0 or more: what a call costs here for each unit of its tool's \
              cost"),
            (message_size.contains(&table.max_message), "max_message", "expected 4KiB to 1GiB"),
        ];
        for (holds, name, message) in rules {
            self.expect(holds, &at(name), message);
        }
        self.target(&root, &table);
        self.caching(&root, table.ttl, table.cache);
        self.hints(&at("annotations"), &table.annotations);
        for (tool, said) in &table.tools {
            let root = format!("{root}.tools.{tool}");
            self.caching(&root, said.ttl, said.cache);
            self.hints(&root, &said.hints);
            self.scopes(&root, said);
            let accepts = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
            let is_name = |name: &str| (1..=64).contains(&name.len()) && name.chars().all(accepts);
            self.expect(
                said.name.as_deref().is_none_or(is_name),
                &dotted(&root, "name"),
                "expected 1 to 64 ASCII letters, digits, `_` and `-`: model APIs accept no others",
            );
            self.expect(
                said.verify_with.as_ref() != Some(tool),
                &dotted(&root, "verify_with"),
                "expected another tool, one that only reads: to call this one again checks nothing",
            );
        }
        Some(ServerConfig {
            id: id?,
            set: set?,
            prefix: prefix.map(String::from),
            table,
        })
    }

    fn caching(&mut self, root: &str, ttl: Option<Duration>, cache: Option<bool>) {
        self.expect(
            ttl.is_none() || cache != Some(false),
            &dotted(root, "ttl"),
            "expected either `ttl` or `cache = false`, found both",
        );
    }

    fn hints(&mut self, root: &str, hints: &Annotations) {
        for problem in hints.validate() {
            let holds = problem.severity() != Severity::Error;
            let key = dotted(root, problem.field().as_str());
            self.expect(holds, &key, &problem.to_string());
        }
    }

    fn target(&mut self, root: &str, table: &Server) {
        let at = |name| dotted(root, name);
        match (&table.command, &table.url) {
            (Some(program), None) => {
                self.program(&at("command"), program);
                let message =
                    "expected only together with `url`: a child process has no HTTP headers";
                self.expect(table.headers.is_empty(), &at("headers"), message);
            }
            (None, Some(url)) => {
                let message = "expected only together with `command`";
                self.expect(table.args.is_empty(), &at("args"), message);
                self.expect(table.env.is_empty(), &at("env"), message);
                let Some(spec) = self.ok(HttpSpec::new(url), &at("url")) else {
                    return;
                };
                for (name, value) in &table.headers {
                    let checked = spec.clone().with_header(name, value);
                    self.ok(checked, &dotted(&at("headers"), name));
                }
            }
            (Some(_), Some(_)) => {
                self.at(&at("url"), "expected either `command` or `url`, found both");
            }
            (None, None) => self.at(
                root,
                "expected `command` (a program to start) or `url` (an endpoint), found neither",
            ),
        }
    }

    /// A command line in one text is a mistake that a start would show much later.
    fn program(&mut self, key: &str, program: &str) {
        let split = program.trim().split_once(' ');
        if program.trim().is_empty() {
            self.at(key, "expected the program to start");
        } else if let Some((name, args)) = split.filter(|_| !Path::new(program).exists()) {
            let args: Vec<_> = args.split_whitespace().collect();
            let message = format!(
                "expected a program without its arguments: write command = {name:?} and args = \
                 {args:?}"
            );
            self.at(key, message);
        }
    }

    /// Reports what the servers of one set do not agree on: clients see one list of tools per set.
    pub(super) fn sets(&mut self, servers: &[ServerConfig]) {
        for (index, server) in servers.iter().enumerate() {
            let root = dotted("servers", server.id.as_str());
            let (ours, before) = (&server.table, &servers[..index]);
            let same_prefix = |other: &&ServerConfig| {
                other.set != server.set && server.prefix.is_some() && other.prefix == server.prefix
            };
            if let Some(other) = before.iter().find(same_prefix) {
                let message = format!(
                    "expected another prefix than that of `servers.{}`: tools of two sets would have \
                     the same names",
                    other.id
                );
                self.at(&dotted(&root, "prefix"), message);
            }
            let in_set = || before.iter().filter(|other| other.set == server.set);
            let mut conflict = |other: &ServerConfig, key: &str, what: &str| {
                let message = format!(
                    "expected {what} as in `servers.{}`: both are in set {:?}, whose tools are listed \
                     once",
                    other.id,
                    server.set.as_str()
                );
                self.at(&dotted(&root, key), message);
            };
            if let Some(first) = in_set().next() {
                let theirs = &first.table;
                let modes = [ours, theirs].map(|table| table.instances.unwrap_or_default());
                #[rustfmt::skip]
                let rules = [
                    (modes[0] == modes[1], "instances", "the same instances"),
                    (first.prefix == server.prefix, "prefix", "the same prefix"),
                    (theirs.trust == ours.trust, "trust", "the same trust"),
                    (theirs.state == ours.state, "state", "the same state"),
                    ((theirs.ttl, theirs.cache) == (ours.ttl, ours.cache), "ttl",
                     "the same `ttl` and `cache`"),
                    (theirs.annotations == ours.annotations, "annotations", "the same hints"),
                    (theirs.check_arguments == ours.check_arguments, "check_arguments",
                     "the same check of arguments"),
                ];
                for (_, key, what) in rules.into_iter().filter(|(agree, ..)| !agree) {
                    conflict(first, key, what);
                }
            }
            for (tool, said) in &ours.tools {
                let clash = in_set().find_map(|other| {
                    let theirs = other.table.tools.get(tool)?;
                    Some((other, clash(said, theirs)?))
                });
                if let Some((other, (key, what))) = clash {
                    conflict(other, &format!("tools.{tool}{key}"), what);
                }
            }
        }
    }

    /// Reports each scope of a replica set that no server is in.
    fn scopes(&mut self, root: &str, said: &ToolConfig) {
        for (key, list) in [("reads", &said.reads), ("writes", &said.writes)] {
            for (number, scope) in (1_usize..).zip(list.iter().flatten()) {
                let set = scope.set.as_ref().map(ReplicaSetId::as_str);
                if let Some(set) = set.filter(|set| !self.sets.contains(*set)) {
                    self.at(&format!("{root}.{key}.{number}"), self.unknown(set));
                }
            }
        }
    }

    /// Checks that someone can answer where a rule asks.
    fn asks(&mut self, config: &Config, rule: &Rule, root: &str) {
        let (asks, by_client) = (rule.then == Then::Ask, rule.by == Some(Approver::Client));
        let has_approvers = !rule.approvers.elements().is_empty();
        self.expect(
            !asks || by_client || config.asking().is_some(),
            &dotted(root, "then"),
            "expected `[approvals]` or `[auth]` in the file, or `by = \"client\"` in the rule: no \
             operator could answer",
        );
        let only = "expected only together with `then = \"ask\"`";
        self.expect(asks || rule.by.is_none(), &dotted(root, "by"), only);
        self.expect(asks || !has_approvers, &dotted(root, "approvers"), only);
        self.expect(
            !(by_client && has_approvers),
            &dotted(root, "approvers"),
            "expected only where operators approve, and `by` names the client",
        );
    }

    /// Warns of authorization rules that concern no tool, or no client.
    pub(super) fn rules(&mut self, config: &Config) {
        let (auth, keys) = (&config.auth, config.auth.keys.is_on());
        let by_token = auth.issuers.iter().any(|one| one.roles_claim.is_some());
        let by_proxy = auth.proxy.iter().any(|one| one.roles_header.is_some());
        for (number, rule) in (1_usize..).zip(&config.authorize) {
            let root = format!("authorize.{number}");
            self.tools(&root, rule.tool.elements());
            self.asks(config, rule, &root);
            let has_webhook = config
                .approvals
                .as_ref()
                .is_some_and(|it| it.webhook.is_some());
            if !rule.approvers.elements().is_empty() && !keys && !by_token && !has_webhook {
                self.warn(
                    &dotted(&root, "approvers"),
                    "no operator has a role: with `auth.keys`, keys have some".to_owned(),
                );
            }
            if !rule.role.elements().is_empty() && !keys && !by_token && !by_proxy {
                self.warn(
                    &dotted(&root, "role"),
                    "no client has a role: expected `auth.keys`, the `roles_claim` of an issuer, or \
                     the `roles_header` of the proxy",
                );
            }
            if !rule.scope.elements().is_empty() && !keys && auth.issuers.is_empty() {
                let message = "no credential has scopes: expected `auth.keys` or `auth.issuers`";
                self.warn(&dotted(&root, "scope"), message);
            }
        }
    }

    /// Warns of patterns of a rule that fit no tool.
    pub(super) fn tools(&mut self, root: &str, tools: &[ToolGlob]) {
        for (number, tool) in (1_usize..).zip(tools) {
            let set = tool.set();
            if !self.sets.iter().any(|known| Glob::new(set).fits(known)) {
                let message = self.unknown(set);
                self.warn(&format!("{root}.tool.{number}"), message);
            }
            // a tool may have any name, but few have a slash
            let (name, methods) = (tool.tool(), Method::ALL.iter().map(|it| it.as_str()));
            if name.contains('/')
                && !methods.clone().any(|method| Glob::new(name).fits(method))
                && let Some(hint) = similar::near(name, methods)
            {
                let message = format!("no method is named {name:?}: {hint}");
                self.warn(&format!("{root}.tool.{number}"), message);
            }
        }
    }

    /// Checks what the layers do not read: a service that no rule asks, and one that is missing.
    pub(super) fn guardrails(&mut self, guardrails: &Guardrails) {
        for (number, rule) in (1_usize..).zip(&guardrails.rules) {
            let root = format!("guardrails.rules.{number}");
            self.tools(&root, rule.tool.elements());
            if let Err(fault) = rule.validate() {
                self.at(&dotted(&root, fault.field), fault.reason);
            }
            let has_service = !rule.webhook || guardrails.webhook.is_some();
            let expected = "expected a table [guardrails.webhook]";
            self.expect(has_service, &dotted(&root, "webhook"), expected);
        }
        if let Some(webhook) = &guardrails.webhook {
            let service = crate::guardrails::service(webhook);
            self.service("guardrails.webhook", service, &webhook.secret);
            let most = "expected at most 1 min";
            let is_short = webhook.timeout <= Duration::from_secs(60);
            self.expect(is_short, "guardrails.webhook.timeout", most);
            if !guardrails.rules.iter().any(|rule| rule.webhook) {
                let unused = "no rule has `webhook = true`, so it is not asked";
                self.warn("guardrails.webhook", unused);
            }
        }
    }

    /// States that no server is in a set.
    fn unknown(&self, set: &str) -> String {
        let hint = similar::hint(set, self.sets.iter().map(String::as_str), "sets");
        format!("no server is in set {set:?}: {hint}")
    }
}

/// Returns the key below a tool in which two servers of one set differ. Their concurrency limits
/// may differ.
fn clash(said: &ToolConfig, other: &ToolConfig) -> Option<(&'static str, &'static str)> {
    let of_set = |tool: &ToolConfig| ToolConfig {
        max_concurrent: None,
        ..tool.clone()
    };
    let (mut said, other, unsaid) = (of_set(said), of_set(other), ToolConfig::default());
    if said == other || said == unsaid || other == unsaid {
        return None;
    }
    said.verify_with.clone_from(&other.verify_with);
    Some(match said == other {
        true => (".verify_with", "the same tool to verify with"),
        false => ("", "the same settings of the tool"),
    })
}
