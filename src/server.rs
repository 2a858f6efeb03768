//! One server in a stack, with the operator's settings.

use std::collections::HashMap;
use std::sync::Arc;

use callward_cache::{StateGroup, ToolScopes};
use callward_core::{
    Annotations, ArgumentRule, Caching, FreshnessMode, Instances, ReplicaSetId, ServerId, ToolName,
    ToolServer, Trust, Weight,
};
use callward_limit::ConcurrencyLimitLayer;
use callward_registry::{SetOptions, Shown};

use crate::leaf::Leaf;

/// One server in a stack, with the operator's settings.
///
/// Any [`ToolServer`] converts into one, with the defaults stated at each method.
///
/// ```
/// use callward::{Server, Tools, Trust};
///
/// let primary = Server::new(Tools::new("orders-1")?)
///     .in_set("orders".parse()?)
///     .weight(80)
///     .category("caching")
///     .trust(Trust::Trusted);
/// # Ok::<(), callward::core::InvalidName>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Server {
    pub(crate) server: Leaf,
    pub(crate) set: ReplicaSetId,
    pub(crate) weight: u32,
    pub(crate) categories: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) zone: Option<String>,
    pub(crate) cost_factor: f64,
    pub(crate) concurrency: ConcurrencyLimitLayer,
    pub(crate) calls_per_minute: Option<f64>,
    /// What its set's tools are read with, as far as the server says it.
    pub(crate) options: SetOptions,
    pub(crate) state: StateGroup,
    pub(crate) freshness: Option<FreshnessMode>,
    pub(crate) scopes: HashMap<ToolName, ToolScopes>,
}

impl Server {
    /// Takes a server: a replica set of one, weight 50, standard trust, at most 64 calls at once,
    /// tool names behind its own id.
    pub fn new(server: impl ToolServer) -> Self {
        Self::shared(Arc::new(server))
    }

    /// Takes a shared server; defaults as in [`new`](Self::new).
    pub fn shared(server: Arc<dyn ToolServer>) -> Self {
        let set = ReplicaSetId::from(server.id().clone());
        let mut options = SetOptions::default();
        options.prefix = Some(set.to_string());
        Self {
            set,
            server: Leaf(server),
            weight: Weight::PRIMARY.get(),
            categories: Vec::new(),
            capabilities: Vec::new(),
            zone: None,
            cost_factor: 1.0,
            concurrency: ConcurrencyLimitLayer::default(),
            calls_per_minute: None,
            options,
            state: StateGroup::default(),
            freshness: None,
            scopes: HashMap::new(),
        }
    }

    pub(crate) fn id(&self) -> &ServerId {
        self.server.0.id()
    }

    /// Puts the server into a replica set, whose name becomes the prefix of its tools.
    pub fn in_set(mut self, set: ReplicaSetId) -> Self {
        self.options.prefix = Some(set.to_string());
        self.set = set;
        self
    }

    /// Sets the weight, 0 to 100: the server's share of calls, and from 50 on permission to take
    /// destructive ones. Default: 50. Above 100 the stack does not build.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Adds a category: `caching` servers come first for idempotent tools, `high-compute` ones for
    /// complex or costly tools. Default: none.
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.categories.push(category.into());
        self
    }

    /// Adds a capability, for strategies that use them: something that the server can do and others
    /// of its set cannot. Default: none.
    pub fn capability(mut self, capability: impl Into<String>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// Sets the zone of the server, for strategies that use it. Default: none.
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// Sets what a call costs here, for each unit of its tool's `costHint`: 0 or more. Default: 1.
    pub fn cost_factor(mut self, factor: f64) -> Self {
        self.cost_factor = factor;
        self
    }

    /// Sets how far the server's own hints are trusted. Default: [`Trust::Standard`].
    pub fn trust(mut self, trust: Trust) -> Self {
        self.options.trust = trust;
        self
    }

    /// Sets the prefix before `__` in the names that clients see; `None` leaves names as they are.
    /// Default: the replica set's name.
    pub fn prefix(mut self, prefix: Option<&str>) -> Self {
        self.options.prefix = prefix.map(str::to_owned);
        self
    }

    /// Sets the limit of calls at once: how many run, how many wait in a queue, which are refused
    /// when too many do, and how many run of one tool. Default: 64 at once, 1000 wait, and of more
    /// the newest is refused.
    ///
    /// ```
    /// use callward::limit::{ConcurrencyLimitLayer, Shed};
    /// use callward::{Server, Tools};
    ///
    /// let mut limit = ConcurrencyLimitLayer::new(16);
    /// (limit.max_waiting, limit.shed) = (100, Shed::Oldest);
    /// let server = Server::new(Tools::new("search")?).concurrency(limit);
    /// # Ok::<(), callward::core::InvalidName>(())
    /// ```
    pub fn concurrency(mut self, limit: ConcurrencyLimitLayer) -> Self {
        self.concurrency = limit;
        self
    }

    /// Sets how many calls a minute the server gets; more wait in a queue. Default: no limit.
    pub fn calls_per_minute(mut self, calls: f64) -> Self {
        self.calls_per_minute = Some(calls);
        self
    }

    /// Sets hints for all of the server's tools, weaker than what it declares. Default: none.
    pub fn defaults(mut self, hints: Annotations) -> Self {
        self.options.defaults = hints;
        self
    }

    /// Sets the operator's own hints for one tool: they win over everything. Default: none.
    pub fn override_tool(mut self, tool: ToolName, hints: Annotations) -> Self {
        self.options.overrides.insert(tool, hints);
        self
    }

    /// Adds a rule over the arguments of one tool, behind those added before: the first that
    /// matches wins, and its hints are laid over the operator's own. See
    /// [`core::refine`](crate::core::refine) for what matches. Default: none.
    ///
    /// ```
    /// use callward::{Annotations, ArgumentRule, Condition, Server, Tools, When};
    ///
    /// let reads = ArgumentRule::new(
    ///     When::argument("action", Condition::one_of(["list", "show"])?)?,
    ///     Annotations::default().with_read_only(true),
    /// )?;
    /// let drafts = ArgumentRule::new(
    ///     When::argument("action", Condition::matches("close|hide")?)?
    ///         .and("/target/kind", Condition::equals("draft"))?,
    ///     Annotations::default().with_destructive(false),
    /// )?;
    /// let server = Server::new(Tools::new("web")?)
    ///     .override_tool("tabs".parse()?, Annotations::default().with_destructive(true))
    ///     .refine_tool("tabs".parse()?, reads)
    ///     .refine_tool("tabs".parse()?, drafts);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refine_tool(mut self, tool: ToolName, rule: ArgumentRule) -> Self {
        self.options.refinements.entry(tool).or_default().push(rule);
        self
    }

    /// Sets what decides how long results of reads are kept where neither the operator nor the
    /// server says it. Default: what [`ToolServer::freshness`] says, [`FreshnessMode::Learned`] for
    /// MCP servers and [`FreshnessMode::Fixed`] for tools of this process.
    pub fn freshness(mut self, mode: FreshnessMode) -> Self {
        self.freshness = Some(mode);
        self
    }

    /// Sets whether results of all tools are kept, and for how long. Default: the mode
    /// decides.
    ///
    /// ```
    /// use std::time::Duration;
    /// use callward::{Caching, Server, Tools};
    ///
    /// let server = Server::new(Tools::new("docs")?)
    ///     .caching(Caching::For(Duration::from_secs(3600)))
    ///     .tool_caching("read_draft".parse()?, Caching::Never);
    /// # Ok::<(), callward::core::InvalidName>(())
    /// ```
    pub fn caching(mut self, caching: Caching) -> Self {
        self.options.caching = Some(caching);
        self
    }

    /// Returns `true` if results of one tool are kept, and for how long, in place of what is said
    /// of all tools.
    pub fn tool_caching(mut self, tool: ToolName, caching: Caching) -> Self {
        self.options.tool_caching.insert(tool, caching);
        self
    }

    /// Sets which other replica sets share state with this server's: a write through any of them
    /// invalidates what was read from all. Default: [`StateGroup::Shared`], all that say nothing
    /// else.
    ///
    /// ```
    /// use callward::cache::StateGroup;
    /// use callward::{Server, Tools};
    ///
    /// let calculator = Server::new(Tools::new("calculator")?).state(StateGroup::Own);
    /// let files = Server::new(Tools::new("files")?).state(StateGroup::Named("disk".into()));
    /// # Ok::<(), callward::core::InvalidName>(())
    /// ```
    pub fn state(mut self, state: StateGroup) -> Self {
        self.state = state;
        self
    }

    /// Sets which state one tool reads and writes, so that a write drops less than all that is kept
    /// of the state it shares. It stands in place of what the cache's own config says of the tool.
    /// See [`ScopeTemplate`](crate::cache::ScopeTemplate) for how state is named. Default: each
    /// tool touches all of the state that its replica set shares.
    ///
    /// ```
    /// use callward::cache::ToolScopes;
    /// use callward::{Server, Tools};
    ///
    /// let server = Server::new(Tools::new("shop")?)
    ///     .tool_scopes("get_order".parse()?, ToolScopes::reading(["order:{id}"])?)
    ///     .tool_scopes("cancel_order".parse()?, ToolScopes::writing(["order:{id}", "@billing"])?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tool_scopes(mut self, tool: ToolName, scopes: ToolScopes) -> Self {
        self.scopes.insert(tool, scopes);
        self
    }

    /// Sets the check for the effect of a call of one tool whose answer never came: another tool of
    /// the same replica set, which must only read. The error of such a call names it. Default: the
    /// names decide, `get_order` for `update_order`. If that tool is missing or not read-only, a
    /// warning is logged and the names decide.
    ///
    /// ```
    /// use callward::{Server, Tools};
    ///
    /// let server = Server::new(Tools::new("shop")?)
    ///     .verify_with("pay".parse()?, "list_payments".parse()?);
    /// # Ok::<(), callward::core::InvalidName>(())
    /// ```
    pub fn verify_with(mut self, tool: ToolName, reader: ToolName) -> Self {
        self.options.verify_with.insert(tool, reader);
        self
    }

    /// Sets what clients see of one tool: another name or description, without some arguments, or
    /// nothing at all. Default: what the server lists.
    ///
    /// ```
    /// use callward::registry::Shown;
    /// use callward::{Server, Tools};
    ///
    /// let mut shown = Shown::default();
    /// shown.name = Some("find_issue".into());
    /// shown.fixed.insert("repo".into(), "callward/callward".into());
    /// let server = Server::new(Tools::new("tracker")?).show_tool("search_issues".parse()?, shown);
    /// # Ok::<(), callward::core::InvalidName>(())
    /// ```
    pub fn show_tool(mut self, tool: ToolName, shown: Shown) -> Self {
        self.options.shown.insert(tool, shown);
        self
    }

    /// Sets whether arguments are checked against the tool's schema before a call is sent. One that
    /// does not fit gets an answer with `isError` that says where. Default: no, as servers may
    /// accept more than their schemas say.
    #[cfg(feature = "guardrail")]
    pub const fn check_arguments(mut self, checks: bool) -> Self {
        self.options.checks_arguments = checks;
        self
    }

    /// Sets how the state that the server keeps is divided among callers: results, single flight
    /// and breakers are divided with it. Where a set has several servers, all calls of a session,
    /// or of a principal, then go to one of them and to no other, not even if it fails.
    ///
    /// Default: as the server says ([`ToolServer::instances`]), which is
    /// [`Session`](Instances::Session) for an MCP server that is a child process or opens sessions,
    /// and [`Shared`](Instances::Shared) for everything else and for each set of several servers.
    pub const fn instances(mut self, instances: Instances) -> Self {
        self.options.instances = Some(instances);
        self
    }
}

impl<T: ToolServer> From<T> for Server {
    fn from(server: T) -> Self {
        Self::new(server)
    }
}
