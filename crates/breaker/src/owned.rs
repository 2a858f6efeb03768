//! Breakers before one owner's instance of a server: what fails there says nothing about the others.

use std::sync::Arc;

use callward_core::{Owner, Principal, ServerId, SessionId, ToolName};
use dashmap::DashMap;

use crate::circuit::Counted;
use crate::prune::prune;
use crate::set::BreakerConfigs;
use crate::{BreakerStatus, Circuit, Risk, Subject};

/// A session is told by so many characters of its id: enough to tell it from others, and too few to use.
const SHOWN_SESSION: usize = 8;

/// The breakers of all owners' instances, made when first needed.
#[derive(Debug, Default)]
pub(crate) struct OwnedBreakers(DashMap<OwnedKey, Arc<Circuit>>);

/// Whose breaker it is, and before what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OwnedKey {
    server: ServerId,
    /// `None` is the whole instance.
    tool: Option<ToolName>,
    principal: Principal,
    session: Option<SessionId>,
}

impl OwnedKey {
    fn new(server: &ServerId, tool: Option<&ToolName>, owner: Owner<'_>) -> Self {
        Self {
            server: server.clone(),
            tool: tool.cloned(),
            principal: owner.principal.clone(),
            session: owner.session.cloned(),
        }
    }

    fn is_of(&self, owner: Owner<'_>) -> bool {
        self.principal == *owner.principal && self.session.as_ref() == owner.session
    }

    fn shown_owner(&self) -> String {
        match &self.session {
            None => self.principal.to_string(),
            Some(session) => {
                let shown: String = session.as_str().chars().take(SHOWN_SESSION).collect();
                format!("{}/{shown}", self.principal)
            }
        }
    }
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
        let key = OwnedKey::new(server, tool, owner);
        if let Some(known) = self.0.get(&key) {
            return known.clone();
        }
        let (name, config) = match tool {
            Some(tool) => (format!("{server}::{tool} of one instance"), configs.tool),
            None => (format!("{server}, one instance"), configs.server),
        };
        // the entry locks a part of the map: it must be gone before the map is pruned
        let circuit = self
            .0
            .entry(key)
            .or_insert_with(|| Arc::new(Circuit::of_valid(name, config)))
            .clone();
        prune(&self.0, configs.tool.max_idle);
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
        let known = self.0.get(&OwnedKey::new(server, tool, owner));
        known.is_none_or(|circuit| circuit.is_available_to(risk))
    }

    /// Closes the breakers before all instances of a server.
    pub(crate) fn reset(&self, server: &ServerId) {
        let of_server = self.0.iter().filter(|entry| entry.key().server == *server);
        let circuits: Vec<Arc<Circuit>> = of_server.map(|entry| entry.value().clone()).collect();
        // no part of the map is locked any more
        for circuit in circuits {
            circuit.reset();
        }
    }

    pub(crate) fn retain_servers(&self, keep: impl Fn(&ServerId) -> bool) {
        self.0.retain(|key, _| keep(&key.server));
    }

    /// Forgets an owner's breakers; returns what they did, by server and tool.
    pub(crate) fn forget(&self, owner: Owner<'_>) -> Vec<(ServerId, Option<ToolName>, Counted)> {
        let mut forgotten = Vec::new();
        self.0.retain(|key, circuit| {
            if !key.is_of(owner) {
                return true;
            }
            let counted = circuit.read().counted;
            if !counted.is_empty() {
                forgotten.push((key.server.clone(), key.tool.clone(), counted));
            }
            false
        });
        forgotten
    }

    /// Returns the state of those that hold or did anything; all others are closed.
    pub(crate) fn snapshot(&self) -> Vec<BreakerStatus> {
        let entries = self.0.iter();
        let all: Vec<_> = entries
            .map(|entry| (entry.key().clone(), entry.value().clone()))
            .collect();
        // no part of the map is locked any more
        let held = all.into_iter().filter_map(|(key, circuit)| {
            let reading = circuit.read();
            if reading.is_as_new() && reading.counted.is_empty() {
                return None;
            }
            let owner = key.shown_owner();
            let subject = key.tool.map_or(Subject::Server, Subject::Tool);
            let mut status = BreakerStatus::new(key.server, subject, reading);
            status.instance = Some(owner);
            Some(status)
        });
        held.collect()
    }
}

#[cfg(test)]
mod tests {
    use callward_core::{Caller, Delivery, ErrorKind, Instances, Principal, SessionId, ToolError};

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
        let shown = breakers.snapshot();
        assert_eq!(shown.len(), 2);
        assert!(
            shown
                .iter()
                .all(|one| one.instance.as_deref() == Some("ada/1"))
        );
        breakers.reset(&server);
        assert!(breakers.lets_through(&server, Some(&tool), first, Risk::Safe));
        assert_eq!(breakers.forget(first).len(), 2);
        assert!(breakers.0.is_empty());
    }
}
