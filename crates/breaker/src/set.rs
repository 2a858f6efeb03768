//! The breakers of all servers and tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tollgate_core::{InvalidConfig, ServerId, ToolName};

use crate::key::{Key, Names};
use crate::{BreakerConfig, BreakerStatus, Circuit};

/// The breakers of all servers and tools, made when first needed. Clones are the same set.
#[derive(Debug, Clone, Default)]
pub struct BreakerSet(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: BreakerConfig,
    circuits: DashMap<Key, Arc<Circuit>>,
    /// With more breakers than this, those that hold nothing are dropped.
    prune_above: AtomicUsize,
}

impl Shared {
    fn of_valid(config: BreakerConfig) -> Self {
        Self {
            config,
            circuits: DashMap::new(),
            prune_above: AtomicUsize::new(config.max_idle),
        }
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::of_valid(BreakerConfig::default())
    }
}

impl BreakerSet {
    /// Makes an empty set; all its breakers have these settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(config: BreakerConfig) -> Result<Self, InvalidConfig> {
        config
            .validate()
            .map(|()| Self(Arc::new(Shared::of_valid(config))))
    }

    /// Says whether a call would be let through now. Takes no probe's place, so it is no promise:
    /// another call may be faster.
    #[must_use]
    pub fn is_available(&self, server: &ServerId, tool: &ToolName) -> bool {
        // the part of the map stays locked for a moment; nothing below comes back to the map
        let names: &dyn Names = &(server, tool);
        self.0
            .circuits
            .get(names)
            .is_none_or(|entry| entry.value().is_available())
    }

    /// Closes the breakers of a server: its connection is back, and what the old one did says
    /// nothing about the new one. Those that an operator forced stay as they are.
    pub fn reset_server(&self, server: &ServerId) {
        // collected first: a reset is logged, and no part of the map is locked while others log
        let of_server: Vec<_> = self
            .0
            .circuits
            .iter()
            .filter(|entry| entry.key().server == *server)
            .map(|entry| entry.value().clone())
            .collect();
        for circuit in of_server {
            circuit.reset();
        }
    }

    /// Holds a breaker open until [`release`](Self::release)d, also through a reset of its server.
    pub fn force_open(&self, server: &ServerId, tool: &ToolName) {
        self.circuit(server, tool).force_open();
    }

    /// Holds a breaker closed until [`release`](Self::release)d: calls pass and nothing counts.
    pub fn force_closed(&self, server: &ServerId, tool: &ToolName) {
        self.circuit(server, tool).force_closed();
    }

    /// Ends a forced state: the breaker is closed and counts again.
    pub fn release(&self, server: &ServerId, tool: &ToolName) {
        if let Some(circuit) = self.known(server, tool) {
            circuit.release();
        }
    }

    /// Returns the state of each breaker, ordered by server and tool. Tools that were not called
    /// yet have none, and idle ones may have been dropped.
    #[must_use]
    pub fn snapshot(&self) -> Vec<BreakerStatus> {
        let mut all: Vec<_> = self
            .0
            .circuits
            .iter()
            .map(|entry| {
                let reading = entry.value().read();
                BreakerStatus {
                    server: entry.key().server.clone(),
                    tool: entry.key().tool.clone(),
                    state: reading.state,
                    failures: reading.failures,
                    last_trip: reading.last_trip,
                    time_to_probe: reading.time_to_probe,
                }
            })
            .collect();
        all.sort_unstable_by(|a, b| (&a.server, &a.tool).cmp(&(&b.server, &b.tool)));
        all
    }

    /// Returns the breaker of a server and tool, making it if need be.
    #[must_use]
    pub fn circuit(&self, server: &ServerId, tool: &ToolName) -> Arc<Circuit> {
        self.known(server, tool)
            .unwrap_or_else(|| self.make(server, tool))
    }

    fn known(&self, server: &ServerId, tool: &ToolName) -> Option<Arc<Circuit>> {
        let names: &dyn Names = &(server, tool);
        let entry = self.0.circuits.get(names)?;
        Some(entry.value().clone())
    }

    #[cold]
    fn make(&self, server: &ServerId, tool: &ToolName) -> Arc<Circuit> {
        let Shared {
            config, circuits, ..
        } = &*self.0;
        let key = Key {
            server: server.clone(),
            tool: tool.clone(),
        };
        // the entry locks a part of the map: it must be gone before the map is pruned
        let circuit = circuits
            .entry(key)
            .or_insert_with(|| Arc::new(Circuit::of_valid(format!("{server}::{tool}"), *config)))
            .clone();
        self.prune();
        circuit
    }

    /// Drops what holds nothing, once there is too much. An entry that only the map refers to and
    /// that is closed without failures is as good as none, so nothing is lost. What is left raises
    /// the mark, so that a map full of sick tools is not searched at each new one.
    fn prune(&self) {
        let Shared {
            config,
            circuits,
            prune_above,
        } = &*self.0;
        if circuits.len() <= prune_above.load(Ordering::Relaxed) {
            return;
        }
        circuits.retain(|_, circuit| Arc::strong_count(circuit) > 1 || !circuit.is_idle());
        let left = circuits.len();
        prune_above.store(config.max_idle.max(left + left / 2), Ordering::Relaxed);
    }
}
