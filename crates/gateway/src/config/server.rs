//! `[servers.ID]`: how a server is reached and called, and what the operator says about its tools.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use callward::cache::{ScopeTemplate, StateGroup};
use callward::core::human::{duration, size};
use callward::limit::{ConcurrencyLimitLayer, Shed};
use callward::registry::Shown;
use callward::{Annotations, Caching, Instances, ReplicaSetId, ServerId, ToolName, Trust, Weight};
use callward_mcp::client::EraChoice;
use callward_mcp::wire::DEFAULT_MAX_LINE;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::rules::Rule;
use super::with_defaults;

with_defaults! {
    /// The table of a server as it is written.
    #[derive(Clone, Serialize, Deserialize)]
    #[serde(default)]
    pub(crate) struct Server {
        pub(crate) command: Option<String>,
        #[serde(serialize_with = "hidden")]
        pub(crate) args: Vec<String>,
        #[serde(serialize_with = "hidden")]
        pub(crate) env: BTreeMap<String, String>,
        /// The values of references in `args`.
        #[serde(skip)]
        pub(crate) secret_args: Vec<String>,
        #[serde(serialize_with = "hidden")]
        pub(crate) url: Option<String>,
        #[serde(serialize_with = "hidden")]
        pub(crate) headers: BTreeMap<String, String>,
        pub(crate) set: Option<ReplicaSetId>,
        pub(crate) weight: Weight,
        pub(crate) categories: Vec<String>,
        pub(crate) capabilities: Vec<String>,
        pub(crate) zone: Option<String>,
        /// What a call costs here, for each unit of its tool's cost.
        pub(crate) cost_factor: f64 = 1.0,
        pub(crate) trust: Trust,
        /// `None` for the replica set's name.
        pub(crate) prefix: Option<Prefix>,
        pub(crate) max_concurrent: usize = ConcurrencyLimitLayer::DEFAULT_MAX_IN_FLIGHT,
        pub(crate) max_waiting: usize = ConcurrencyLimitLayer::DEFAULT_MAX_WAITING,
        pub(crate) shed: Shed,
        pub(crate) max_concurrent_per_tool: Option<usize>,
        pub(crate) calls_per_minute: Option<f64>,
        /// `None` if the server declares whether it takes them.
        pub(crate) idempotency_keys: Option<bool>,
        /// `None` if the server shows whether it keeps state for its clients.
        pub(crate) instances: Option<Instances>,
        /// `None` for 1, or 0 if there is only one instance.
        pub(crate) spare: Option<usize>,
        #[serde(with = "duration")]
        pub(crate) idle: Duration = Duration::from_secs(300),
        pub(crate) max_instances: usize = 32,
        pub(crate) era: EraChoice,
        #[serde(with = "size")]
        pub(crate) max_message: u64 = DEFAULT_MAX_LINE as u64,
        /// Which other sets share its state.
        pub(crate) state: StateGroup,
        #[serde(with = "duration")]
        pub(crate) ttl: Option<Duration>,
        pub(crate) cache: Option<bool>,
        /// Whether arguments are checked against the schemas of tools.
        pub(crate) check_arguments: bool,
        pub(crate) annotations: Annotations,
        pub(crate) tools: BTreeMap<ToolName, ToolConfig>,
    }
}

/// What the operator says about one tool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ToolConfig {
    /// The first that matches a call's arguments wins.
    pub(crate) rules: Option<Vec<Rule>>,
    /// Which state its calls read and write.
    pub(crate) reads: Option<Vec<ScopeTemplate>>,
    pub(crate) writes: Option<Vec<ScopeTemplate>>,
    /// The tool that shows whether a call with an unknown outcome took effect.
    pub(crate) verify_with: Option<ToolName>,
    /// The name that clients see.
    pub(crate) name: Option<String>,
    /// Whether clients neither see nor call it.
    pub(crate) hidden: Option<bool>,
    pub(crate) description: Option<String>,
    /// Arguments that every call has, and clients do not see.
    pub(crate) arguments: Map<String, Value>,
    /// How many calls of it this server gets at once.
    pub(crate) max_concurrent: Option<NonZeroUsize>,
    #[serde(with = "duration")]
    pub(crate) ttl: Option<Duration>,
    pub(crate) cache: Option<bool>,
    #[serde(flatten)]
    pub(crate) hints: Annotations,
}

impl ToolConfig {
    /// Returns what clients see of it; `None` if that is what the server lists.
    pub(crate) fn shown(&self) -> Option<Shown> {
        let mut shown = Shown::default();
        shown.name.clone_from(&self.name);
        shown.hidden = self.hidden == Some(true);
        shown.description.clone_from(&self.description);
        shown.fixed.clone_from(&self.arguments);
        (shown != Shown::default()).then_some(shown)
    }
}

/// Returns whether results are kept, and for how long.
pub(crate) fn caching(ttl: Option<Duration>, cache: Option<bool>) -> Option<Caching> {
    match (ttl, cache) {
        (_, Some(false)) => Some(Caching::Never),
        (Some(ttl), _) => Some(Caching::For(ttl)),
        (None, Some(true)) => Some(Caching::ByMode),
        (None, None) => None,
    }
}

/// Does not show what may have secrets.
fn hidden<T, S: Serializer>(_: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_none()
}

/// The prefix of the names that clients see.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a name; `false` for unprefixed tools")]
pub(crate) enum Prefix {
    /// The replica set's name, or nothing.
    Set(bool),
    Named(String),
}

/// A server whose table was checked.
#[derive(Clone)]
pub(crate) struct ServerConfig {
    pub(crate) id: ServerId,
    pub(crate) set: ReplicaSetId,
    pub(crate) prefix: Option<String>,
    /// The rest of the table.
    pub(crate) table: Server,
}

impl ServerConfig {
    /// Takes a table that has no set and no prefix.
    pub(crate) fn new(id: ServerId, table: Server) -> Self {
        Self {
            set: ReplicaSetId::from(id.clone()),
            id,
            prefix: None,
            table,
        }
    }
}
