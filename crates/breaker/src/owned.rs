//! Breakers before one owner's instance of a server: what fails there says nothing about the others.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use dashmap::DashMap;
use tollgate_core::{Owner, ServerId, ToolName};

use crate::prune::prune;
use crate::set::BreakerConfigs;
use crate::{Circuit, Risk};

/// The breakers of all owners' instances, made when first needed.
#[derive(Debug, Default)]
pub(crate) struct OwnedBreakers {
    circuits: DashMap<OwnedKey, Arc<Circuit>>,
    /// Seeded by the system: no two owners that somebody names meet.
    owners: RandomState,
}

/// Whose breaker it is, and before what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OwnedKey {
    server: ServerId,
    /// `None` is the whole instance.
    tool: Option<ToolName>,
    owner: u64,
}

impl OwnedBreakers {
    /// Returns the breaker before an owner's instance, or before a tool of it, making it if need be.
    pub(crate) fn circuit(
        &self,
        configs: &BreakerConfigs,
        server: &ServerId,
        tool: Option<&ToolName>,
        owner: Owner<'_>,
    ) -> Arc<Circuit> {
        let key = self.key(server, tool, owner);
        if let Some(known) = self.circuits.get(&key) {
            return known.clone();
        }
        let (name, config) = match tool {
            Some(tool) => (format!("{server}::{tool} of one instance"), configs.tool),
            None => (format!("{server}, one instance"), configs.server),
        };
        // the entry locks a part of the map: it must be gone before the map is pruned
        let circuit = self
            .circuits
            .entry(key)
            .or_insert_with(|| Arc::new(Circuit::of_valid(name, config)))
            .clone();
        prune(&self.circuits, configs.tool.max_idle);
        circuit
    }

    /// Says whether such a call would be let through. Makes no breaker.
    pub(crate) fn lets_through(
        &self,
        server: &ServerId,
        tool: Option<&ToolName>,
        owner: Owner<'_>,
        risk: Risk,
    ) -> bool {
        let known = self.circuits.get(&self.key(server, tool, owner));
        known.is_none_or(|circuit| circuit.is_available_to(risk))
    }

    /// Closes the breakers before all instances of a server.
    pub(crate) fn reset(&self, server: &ServerId) {
        let of_server = self
            .circuits
            .iter()
            .filter(|entry| entry.key().server == *server);
        let circuits: Vec<Arc<Circuit>> = of_server.map(|entry| entry.value().clone()).collect();
        // no part of the map is locked any more
        for circuit in circuits {
            circuit.reset();
        }
    }

    pub(crate) fn retain_servers(&self, keep: impl Fn(&ServerId) -> bool) {
        self.circuits.retain(|key, _| keep(&key.server));
    }

    pub(crate) fn forget(&self, owner: Owner<'_>) {
        let owner = self.owners.hash_one(owner);
        self.circuits.retain(|key, _| key.owner != owner);
    }

    fn key(&self, server: &ServerId, tool: Option<&ToolName>, owner: Owner<'_>) -> OwnedKey {
        OwnedKey {
            server: server.clone(),
            tool: tool.cloned(),
            owner: self.owners.hash_one(owner),
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Caller, Delivery, ErrorKind, Instances, Principal, SessionId, ToolError};

    use super::*;

    fn caller(session: &str) -> Caller {
        Caller::new(Principal::new("ada")).with_session(SessionId::new(session))
    }

    #[tokio::test(start_paused = true)]
    async fn one_owners_failures_open_nothing_for_another() {
        let breakers = OwnedBreakers::default();
        let configs = BreakerConfigs::default();
        let server: ServerId = "s".parse().unwrap();
        let tool: ToolName = "t".parse().unwrap();
        let (first, second) = (caller("1"), caller("2"));
        let [first, second] =
            [&first, &second].map(|caller| Instances::Session.owner(caller).unwrap());
        let fails = ToolError::new(ErrorKind::ConnectionLost, Delivery::Unknown, "gone");
        for subject in [Some(&tool), None] {
            let circuit = breakers.circuit(&configs, &server, subject, first);
            while let Ok(permit) = circuit.clone().admit() {
                permit.fail(&fails);
                tokio::time::advance(std::time::Duration::from_secs(1)).await;
            }
            assert!(!breakers.lets_through(&server, subject, first, Risk::Safe));
            assert!(breakers.lets_through(&server, subject, second, Risk::Safe));
        }
        breakers.reset(&server);
        assert!(breakers.lets_through(&server, Some(&tool), first, Risk::Safe));
        breakers.forget(first);
        assert!(breakers.circuits.is_empty());
    }
}
