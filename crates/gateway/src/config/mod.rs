//! The config: read from TOML into the types of the layers, and checked as a whole.
//!
//! Every problem is reported, with file, line, column and key. What a file leaves out has the
//! default documented in `docs/config.md`. To add a key: a field with a default in `sections` or in
//! the layer's own config, a check in `check` if not every value makes sense, its use in
//! `assemble`, and its row in the docs.

mod changed;
mod check;
mod defaults;
mod error;
mod listen;
mod read;
mod references;
mod rules;
mod sections;
mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use callward::auth::rules::{Rule, Then};
use callward::core::human::duration;
use callward::core::infer::{Lexicon, VerbKind};
use callward::core::{Approver, RuleSet};
use callward::limit::PrincipalLimitConfig;
use callward::loopguard::LoopGuardConfig;
use callward::registry::{KeptName, ReviewOptions};
use callward::retry::RetryConfig;
use callward::retry::hedge::HedgeConfig;
use callward::{LimitsConfig, Profile};
use callward_auth::webhook::WebhookConfig;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) use callward::core::human::{parse_duration, show_duration, show_size};

pub(crate) use self::changed::Keys;
pub(crate) use self::defaults::with_defaults;
pub(crate) use self::error::ConfigError;
pub(crate) use self::listen::{ADMIN, AdminAddress, PUBLIC, exposed, parse_listen};
pub(crate) use self::references::References;
pub(crate) use self::rules::Rule as ToolRule;
pub(crate) use self::sections::{
    ApprovalWebhook, Asking, Audit, Auth, Guardrails, Http, KeySource, Listing, ListingMode,
    OnFailure, Screening, Telemetry, as_usize,
};
pub(crate) use self::server::{Server, ServerConfig, caching};

use self::error::{Fault, Source};
use self::references::Env;
use self::sections::{Admin, Breaker, Cache, Discovery, Router, Switch, Toolsets};
use self::sections::{profile, profile_name};

with_defaults! {
    /// The whole file. Derived settings are set when it is checked. It has secrets, so that it is
    /// not shown as a whole.
    #[derive(Clone, Serialize, Deserialize)]
    #[serde(default)]
    pub(crate) struct Config {
        #[serde(deserialize_with = "profile", serialize_with = "profile_name")]
        pub(crate) profile: Profile,
        pub(crate) rules: RuleSet,
        #[serde(rename = "lexicon")]
        verbs: BTreeMap<VerbKind, Vec<String>>,
        #[serde(with = "duration")]
        pub(crate) call_deadline: Duration = Duration::from_secs(600),
        /// How long the start waits for servers to list their tools.
        #[serde(with = "duration")]
        pub(crate) startup_timeout: Duration = Duration::from_secs(30),
        /// Whether each result states everything that was decided about its call.
        pub(crate) trail: bool,
        /// Whether the person at the client is asked for required arguments that a call lacks.
        pub(crate) ask_missing: bool,
        /// Which caller may call which tool, and what holds without a rule.
        pub(crate) authorize: Vec<Rule>,
        pub(crate) authorize_default: Then,
        /// Who is asked about each call that the rules allow.
        pub(crate) authorize_webhook: Option<WebhookConfig>,
        /// How operators are asked about calls; `None` if they are not.
        pub(crate) approvals: Option<Asking>,
        pub(crate) guardrails: Guardrails,
        pub(crate) http: Http,
        pub(crate) auth: Auth,
        pub(crate) admin: Admin,
        pub(crate) cache: Cache,
        pub(crate) loop_guard: Switch<LoopGuardConfig, true>,
        pub(crate) retry: RetryConfig,
        pub(crate) hedge: Switch<HedgeConfig, false>,
        pub(crate) limits: LimitsConfig,
        /// The limits of each principal; those that are unset depend on `auth`.
        pub(crate) principals: PrincipalLimitConfig,
        pub(crate) breaker: Breaker,
        pub(crate) discovery: Discovery,
        pub(crate) router: Router,
        pub(crate) audit: Audit,
        pub(crate) telemetry: Telemetry,
        pub(crate) toolsets: Toolsets,
        pub(crate) listing: Listing,
        /// The tables of servers, until they are checked.
        #[serde(rename = "servers")]
        tables: BTreeMap<String, Server>,
        #[serde(skip)]
        pub(crate) servers: Vec<ServerConfig>,
        /// The standard verbs with those of the file; none if the file has none.
        #[serde(skip)]
        pub(crate) lexicon: Option<Lexicon>,
        /// The names that tools had in the last run.
        #[serde(skip)]
        pub(crate) kept_names: Vec<KeptName>,
        /// What was approved in earlier runs, and which changes wait for approval.
        #[serde(skip)]
        pub(crate) review: ReviewOptions,
        /// What the file has that is probably a mistake, each with its place.
        #[serde(skip)]
        pub(crate) warnings: Vec<String>,
        /// The values of references in the file, which are never shown.
        #[serde(skip)]
        pub(crate) references: References,
    }
}

/// How many servers a file has to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Servers {
    /// One or more.
    Some,
    /// Any number.
    Any,
}

impl Config {
    /// Returns `true` if clients are identified.
    pub(crate) fn identifies(&self) -> bool {
        let auth = &self.auth;
        let by_token = auth.keys.is_on() || !auth.issuers.is_empty();
        by_token || auth.proxy.is_some() || self.http.tls.client_ca.is_some()
    }

    /// Returns how calls are asked about: as `[approvals]` says, or by default if clients are
    /// identified; `None` if no call has to be approved.
    pub(crate) fn asking(&self) -> Option<Asking> {
        let default = || self.identifies().then(Asking::default);
        self.approvals.clone().or_else(default)
    }

    /// Returns `true` if the file says that operators approve calls.
    pub(crate) fn needs_operators(&self) -> bool {
        let default = self.approvals.as_ref().map(|asking| asking.by);
        let by_rule = |rule: &Rule| {
            let by = rule.by.or(default).unwrap_or_default();
            rule.then == Then::Ask && by == Approver::Operator
        };
        default == Some(Approver::Operator)
            || self.authorize.iter().any(by_rule)
            || (self.authorize_default == Then::Ask && default != Some(Approver::Client))
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with every problem found.
    pub(crate) fn load(file: &Path, servers: Servers) -> Result<Self, ConfigError> {
        let refuse = |fault| ConfigError::new(file, vec![fault]);
        let bytes = std::fs::read(file).map_err(|error| {
            let message = format!("cannot be read: {error}");
            refuse(Source::new("").fault(None, String::new(), message))
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
            let message = "expected UTF-8 text".to_owned();
            refuse(Source::new(&text).fault(Some(valid..valid), String::new(), message))
        })?;
        Self::parse_with(file, &text, &|name| std::env::var_os(name), servers)
    }

    /// Checks a text, with an environment that is empty.
    #[cfg(fuzzing)]
    pub(crate) fn parse_alone(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(Path::new("fuzz.toml"), text, &|_| None, Servers::Some)
    }

    fn parse_with(
        file: &Path,
        text: &str,
        env: Env<'_>,
        servers: Servers,
    ) -> Result<Self, ConfigError> {
        let mut source = Source::new(text);
        let failed = |faults| ConfigError::new(file, faults);
        let root =
            DeTable::parse(text).map_err(|error| failed(vec![source.syntax_fault(&error)]))?;
        let mut root = Spanned::new(root.span(), DeValue::Table(root.into_inner()));
        source.index(&mut root);
        let folder = file.parent().unwrap_or_else(|| Path::new(""));
        let (references, mut faults) = References::resolve(&mut root, folder, env, &source);
        let (mut config, found) = read::read(root, &source);
        add(&mut faults, found);
        let (found, warned) = check::check(&mut config, &source);
        add(&mut faults, found);
        if let KeySource::File(path) = &mut config.auth.keys {
            *path = folder.join(&*path);
        }
        if let Some(path) = &mut config.toolsets.path {
            *path = folder.join(&*path);
        }
        let is_empty = config.servers.is_empty();
        let has_none = is_empty && (faults.is_empty() || source.span("servers").is_none());
        if servers == Servers::Some && has_none {
            let expected =
                "expected at least one server: a table [servers.NAME] with `command` or `url`";
            faults.push(source.key_fault("servers", expected));
        }
        let scrub = |fault| references.scrub_fault(fault);
        if !faults.is_empty() {
            return Err(failed(faults.into_iter().map(scrub).collect()));
        }
        let warned = warned.into_iter().map(scrub);
        config.warnings = warned.map(|fault| fault.shown(file)).collect();
        for server in &mut config.servers {
            let args = format!("servers.{}.args", server.id);
            server.table.secret_args = references.values_in(&args);
        }
        config.references = references;
        Ok(config)
    }

    /// Returns the defaults with these servers, for commands without a file.
    pub(crate) fn without_file(servers: Vec<ServerConfig>) -> Self {
        Self {
            servers,
            ..Self::default()
        }
    }
}

/// Adds the faults that are not consequences of a known one: a key that could not be read may be
/// the one that its table lacks.
fn add(faults: &mut Vec<Fault>, mut found: Vec<Fault>) {
    found.retain(|fault| !faults.iter().any(|known| is_within(&known.key, &fault.key)));
    faults.append(&mut found);
}

/// Returns `true` if a key is another one or a key of its table.
fn is_within(key: &str, table: &str) -> bool {
    key.strip_prefix(table)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests;
