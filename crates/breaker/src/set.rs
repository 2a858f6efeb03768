//! The breakers of all servers and tools.

use std::sync::Arc;

use callward_core::{InvalidConfig, Owner, ServerId, ToolCall, ToolName};
use dashmap::DashMap;

use crate::key::{Key, Names};
use crate::owned::OwnedBreakers;
use crate::prune::prune;
use crate::{BreakerConfig, BreakerStatus, Circuit, Risk, Subject};

/// The breakers of all servers and tools, made when first needed. Clones are the same set.
#[derive(Debug, Clone, Default)]
pub struct BreakerSet(Arc<Shared>);

/// The settings of a set: for its breakers of tools, of servers, and of their discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerConfigs {
    /// For each tool of a server. Default: [`BreakerConfig::default`].
    pub tool: BreakerConfig,
    /// For each server. Default: [`BreakerConfig::server`].
    pub server: BreakerConfig,
    /// For the discovery of each server. Default: [`BreakerConfig::discovery`].
    pub discovery: BreakerConfig,
}

#[derive(Debug, Default)]
struct Shared {
    configs: BreakerConfigs,
    tools: DashMap<Key, Arc<Circuit>>,
    /// As many as there are servers, which is for the operator to say.
    servers: DashMap<ServerId, OfServer>,
    owned: OwnedBreakers,
}

/// The breakers that a server has one of.
#[derive(Debug)]
struct OfServer {
    calls: Arc<Circuit>,
    discovery: Arc<Circuit>,
}

impl Default for BreakerConfigs {
    fn default() -> Self {
        Self {
            tool: BreakerConfig::default(),
            server: BreakerConfig::server(),
            discovery: BreakerConfig::discovery(),
        }
    }
}

impl BreakerConfigs {
    /// Sets when the breaker of a server opens.
    #[must_use]
    pub const fn with_server(mut self, config: BreakerConfig) -> Self {
        self.server = config;
        self
    }

    /// Sets when the breaker of a server's discovery opens.
    #[must_use]
    pub const fn with_discovery(mut self, config: BreakerConfig) -> Self {
        self.discovery = config;
        self
    }
}

impl From<BreakerConfig> for BreakerConfigs {
    fn from(tool: BreakerConfig) -> Self {
        Self {
            tool,
            ..Self::default()
        }
    }
}

impl BreakerSet {
    /// Makes an empty set. A [`BreakerConfig`] alone is that of the tools.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(configs: impl Into<BreakerConfigs>) -> Result<Self, InvalidConfig> {
        let configs = configs.into();
        for config in [configs.tool, configs.server, configs.discovery] {
            config.validate()?;
        }
        Ok(Self(Arc::new(Shared {
            configs,
            ..Shared::default()
        })))
    }

    /// Says whether a safe call would be let through now, by the breakers of the server and of the
    /// tool. Takes no probe's place, so it is no promise: another call may be faster.
    #[must_use]
    pub fn is_available(&self, server: &ServerId, tool: &ToolName) -> bool {
        self.is_available_to(server, tool, Risk::Safe)
    }

    /// Says whether this call would be let through now, by the breakers of the server and of the
    /// tool. Takes no probe's place, so it is no promise: another call may be faster.
    #[must_use]
    pub fn lets_through(&self, server: &ServerId, call: &ToolCall) -> bool {
        let (tool, risk) = (call.tool().name(), Risk::of(call.plan()));
        match call.owner() {
            None => self.is_available_to(server, tool, risk),
            Some(owner) => {
                self.owned_lets_through(server, None, owner, risk)
                    && self.owned_lets_through(server, Some(tool), owner, risk)
            }
        }
    }

    fn is_available_to(&self, server: &ServerId, tool: &ToolName, risk: Risk) -> bool {
        // a part of the map stays locked for a moment; nothing below comes back to the map
        let of = self.0.servers.get(server);
        of.is_none_or(|of| of.calls.is_available_to(risk))
            && self.tool_lets_through(server, tool, risk)
    }

    /// Asks the tool's breaker alone.
    pub(crate) fn tool_lets_through(&self, server: &ServerId, tool: &ToolName, risk: Risk) -> bool {
        let names: &dyn Names = &(server, tool);
        let entry = self.0.tools.get(names);
        entry.is_none_or(|entry| entry.value().is_available_to(risk))
    }

    /// Closes the breakers of a server: its connection is back, and what the old one did says
    /// nothing about the new one. Those that an operator forced stay as they are.
    pub fn reset_server(&self, server: &ServerId) {
        for (_, circuit) in self.all(|other| other == server) {
            circuit.reset();
        }
        self.reset_instances(server);
    }

    /// Forgets the breakers of servers that are not kept, forced ones too. Permits that are out go
    /// on with the breakers they came from; a call that comes later makes a new one.
    pub fn retain_servers(&self, keep: impl Fn(&ServerId) -> bool) {
        self.0.servers.retain(|server, _| keep(server));
        self.0.tools.retain(|key, _| keep(&key.server));
        self.0.owned.retain_servers(keep);
    }

    /// Closes the breakers before the instances of a server: one was started anew, and nobody else
    /// loses much.
    pub fn reset_instances(&self, server: &ServerId) {
        self.0.owned.reset(server);
    }

    /// Forgets the breakers before an owner's instances, which have ended. What they did is counted on
    /// for their servers and tools.
    pub fn forget_owner(&self, owner: Owner<'_>) {
        for (server, tool, counted) in self.0.owned.forget(owner) {
            if let Some(common) = self.common(&server, tool.as_ref()) {
                common.absorb(counted);
            }
        }
    }

    /// Returns the breaker before an owner's instance of a server, or before a tool of it, making it if
    /// need be. What an operator forced holds for all instances.
    pub(crate) fn owned_circuit(
        &self,
        server: &ServerId,
        tool: Option<&ToolName>,
        owner: Owner<'_>,
    ) -> Arc<Circuit> {
        // made too, as it tells of the tool when the owner is forgotten
        let common = match tool {
            Some(tool) => self.circuit(server, tool),
            None => self.server_circuit(server),
        };
        if common.state().is_forced() {
            return common;
        }
        let Shared { owned, configs, .. } = &*self.0;
        owned.circuit(configs, server, tool, owner)
    }

    /// Asks that breaker alone. Makes none.
    pub(crate) fn owned_lets_through(
        &self,
        server: &ServerId,
        tool: Option<&ToolName>,
        owner: Owner<'_>,
        risk: Risk,
    ) -> bool {
        match self
            .common(server, tool)
            .filter(|common| common.state().is_forced())
        {
            Some(forced) => forced.is_available_to(risk),
            None => self.0.owned.lets_through(server, tool, owner, risk),
        }
    }

    /// Returns the breaker that calls without an owner have, if it was made.
    fn common(&self, server: &ServerId, tool: Option<&ToolName>) -> Option<Arc<Circuit>> {
        match tool {
            Some(tool) => self.known(server, tool),
            None => Some(self.0.servers.get(server)?.calls.clone()),
        }
    }

    /// Holds a breaker open until [`release`](Self::release)d, also through a reset of its server. A
    /// tool's name stands for its [`Subject`].
    pub fn force_open(&self, server: &ServerId, subject: impl Into<Subject>) {
        self.of(server, &subject.into()).force_open();
    }

    /// Holds a breaker closed until [`release`](Self::release)d: calls pass and nothing counts.
    pub fn force_closed(&self, server: &ServerId, subject: impl Into<Subject>) {
        self.of(server, &subject.into()).force_closed();
    }

    /// Ends a forced state: the breaker is closed and counts again.
    pub fn release(&self, server: &ServerId, subject: impl Into<Subject>) {
        self.of(server, &subject.into()).release();
    }

    /// Returns the state of each breaker, ordered by server: its own, that of its discovery, those of
    /// its tools. Tools that were not called yet have none, and idle ones may have been dropped. Those
    /// before instances are told of only if they hold or did something.
    #[must_use]
    pub fn snapshot(&self) -> Vec<BreakerStatus> {
        let mut all: Vec<_> = self
            .all(|_| true)
            .into_iter()
            .map(|((server, subject), circuit)| BreakerStatus::new(server, subject, circuit.read()))
            .collect();
        all.extend(self.0.owned.snapshot());
        all.sort_unstable_by(|a, b| {
            let place = |one: &BreakerStatus| {
                (
                    one.server.clone(),
                    one.subject.clone(),
                    one.instance.clone(),
                )
            };
            place(a).cmp(&place(b))
        });
        all
    }

    /// Returns the breaker of a server and tool, making it if need be.
    #[must_use]
    pub fn circuit(&self, server: &ServerId, tool: &ToolName) -> Arc<Circuit> {
        self.known(server, tool)
            .unwrap_or_else(|| self.make(server, tool))
    }

    /// Returns the breaker of a whole server, making it if need be.
    #[must_use]
    pub fn server_circuit(&self, server: &ServerId) -> Arc<Circuit> {
        self.of_server(server, |of| of.calls.clone())
    }

    /// Returns the breaker of a server's discovery, making it if need be.
    #[must_use]
    pub fn discovery_circuit(&self, server: &ServerId) -> Arc<Circuit> {
        self.of_server(server, |of| of.discovery.clone())
    }

    fn of(&self, server: &ServerId, subject: &Subject) -> Arc<Circuit> {
        match subject {
            Subject::Server => self.server_circuit(server),
            Subject::Discovery => self.discovery_circuit(server),
            Subject::Tool(tool) => self.circuit(server, tool),
        }
    }

    /// Collects breakers, so that no part of a map is locked while something is done with them.
    fn all(&self, of: impl Fn(&ServerId) -> bool) -> Vec<((ServerId, Subject), Arc<Circuit>)> {
        let mut all = Vec::new();
        for entry in self.0.servers.iter().filter(|entry| of(entry.key())) {
            let server = entry.key();
            let OfServer { calls, discovery } = entry.value();
            all.push(((server.clone(), Subject::Server), calls.clone()));
            all.push(((server.clone(), Subject::Discovery), discovery.clone()));
        }
        for entry in self.0.tools.iter().filter(|entry| of(&entry.key().server)) {
            let Key { server, tool } = entry.key();
            all.push(((server.clone(), tool.into()), entry.value().clone()));
        }
        all
    }

    fn of_server<T>(&self, server: &ServerId, take: impl Fn(&OfServer) -> T) -> T {
        if let Some(of) = self.0.servers.get(server) {
            return take(&of);
        }
        let of = self.0.servers.entry(server.clone()).or_insert_with(|| {
            let BreakerConfigs {
                server: calls,
                discovery,
                ..
            } = self.0.configs;
            OfServer {
                calls: Arc::new(Circuit::of_valid(server.as_str(), calls)),
                discovery: Arc::new(Circuit::of_valid(
                    format!("discovery of {server}"),
                    discovery,
                )),
            }
        });
        take(&of)
    }

    fn known(&self, server: &ServerId, tool: &ToolName) -> Option<Arc<Circuit>> {
        let names: &dyn Names = &(server, tool);
        let entry = self.0.tools.get(names)?;
        Some(entry.value().clone())
    }

    #[cold]
    fn make(&self, server: &ServerId, tool: &ToolName) -> Arc<Circuit> {
        let Shared { configs, tools, .. } = &*self.0;
        let key = Key {
            server: server.clone(),
            tool: tool.clone(),
        };
        // the entry locks a part of the map: it must be gone before the map is pruned
        let circuit = tools
            .entry(key)
            .or_insert_with(|| {
                let name = format!("{server}::{tool}");
                Arc::new(Circuit::of_valid(name, configs.tool))
            })
            .clone();
        prune(tools, configs.tool.max_idle);
        circuit
    }
}
