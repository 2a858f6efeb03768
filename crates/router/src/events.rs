//! The events of a router.

use std::sync::{Arc, OnceLock};

use callward_core::{ErrorKind, ReplicaSetId, RouteDecision, ServerId, ToolName};
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::affinity::{ExpiryCause, KeyDigest};

/// One event of a router.
///
/// As JSON it is one object with its name in `type`: `routeDecision`, `routeFailed`,
/// `healthUpdate`, `affinitySet`, `affinityExpired`, `toolRegistered`, `toolUnregistered`,
/// `toolRefused`, `toolHeld`, `toolChanged`, `toolRenamed`, `annotationsUpdated`,
/// `discoveryCompleted`, `discoveryFailed`, `serverUp`, `serverDown`; `missed` if the listener was
/// too slow.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum RouteEvent {
    /// A server was chosen for an attempt of a call.
    RouteDecision(Arc<RouteDecision>),
    /// No server got an attempt of a call.
    RouteFailed {
        /// The servers looked at, and what spoke against each.
        #[serde(flatten)]
        decision: Arc<RouteDecision>,
        /// The error of the attempt: `no_eligible_server`, or the last server's refusal.
        error: ErrorKind,
    },
    /// A breaker of a server or of one of its tools changed its state, or the connection did.
    HealthUpdate {
        /// The replica set.
        set: ReplicaSetId,
        /// The server.
        server: ServerId,
        /// The tool, if its breaker changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<ToolName>,
        /// The state before.
        from: &'static str,
        /// The state now.
        to: &'static str,
        /// Why, in a few words.
        reason: Arc<str>,
    },
    /// From now on the calls of a session, of a user or about one thing go to one server.
    AffinitySet {
        /// Of which kind the key is: `session`, `user` or `argument`.
        by: &'static str,
        /// What stands for the key; never the name of a session or user, nor an argument.
        key: KeyDigest,
        /// The replica set.
        set: ReplicaSetId,
        /// The server.
        server: ServerId,
        /// For how long, if no other call comes.
        ttl_ms: u64,
    },
    /// They do not go there any more.
    AffinityExpired {
        /// Of which kind the key is: `session`, `user` or `argument`.
        by: &'static str,
        /// What stands for the key; never the name of a session or user, nor an argument.
        key: KeyDigest,
        /// The replica set.
        set: ReplicaSetId,
        /// The server that it had.
        server: ServerId,
        /// Why it lost it.
        reason: ExpiryCause,
    },
    /// A tool is new in its set.
    ToolRegistered {
        /// The replica set.
        set: ReplicaSetId,
        /// The tool's own name.
        tool: ToolName,
    },
    /// No server of the set lists a tool any more.
    ToolUnregistered {
        /// The replica set.
        set: ReplicaSetId,
        /// The tool's own name.
        tool: ToolName,
    },
    /// A tool that a server lists, or that the config names, is not offered.
    ToolRefused {
        /// The replica set.
        set: ReplicaSetId,
        /// The server that lists it.
        server: ServerId,
        /// The tool's own name.
        tool: ToolName,
        /// Why.
        reason: String,
    },
    /// A server lists another definition of a tool than the one that was approved: it is not
    /// offered until it is approved.
    ToolHeld {
        /// The replica set.
        set: ReplicaSetId,
        /// The server that lists it.
        server: ServerId,
        /// The tool's own name.
        tool: ToolName,
        /// Why it is held.
        reason: String,
        /// What differs, by name.
        fields: Vec<String>,
    },
    /// A tool has another definition than before: it needed no approval, or was approved.
    ToolChanged {
        /// The replica set.
        set: ReplicaSetId,
        /// The server that lists it.
        server: ServerId,
        /// The tool's own name.
        tool: ToolName,
        /// What differs, by name.
        fields: Vec<String>,
    },
    /// Clients see another name of a tool, since its own belongs to another tool.
    ToolRenamed {
        /// The replica set.
        set: ReplicaSetId,
        /// The tool's own name.
        tool: ToolName,
        /// What clients call it.
        name: Arc<str>,
    },
    /// Other hints or rules hold for the calls of a tool, and its definition is the same.
    AnnotationsUpdated {
        /// The replica set.
        set: ReplicaSetId,
        /// The tool's own name.
        tool: ToolName,
    },
    /// The tools of a server were listed.
    DiscoveryCompleted {
        /// The replica set.
        set: ReplicaSetId,
        /// The server.
        server: ServerId,
        /// How many tools it lists.
        listed: usize,
        /// How many of them are new in the set.
        added: usize,
        /// How many are others than before.
        changed: usize,
        /// How many the set lost.
        removed: usize,
        /// How many are refused.
        refused: usize,
        /// How many are held for review.
        held: usize,
        /// How long it took.
        duration_ms: u64,
    },
    /// The tools of a server could not be listed. It is tried again.
    DiscoveryFailed {
        /// The replica set.
        set: ReplicaSetId,
        /// The server.
        server: ServerId,
        /// Why.
        error: String,
    },
    /// A connection to a server was made.
    ServerUp {
        /// The replica set.
        set: ReplicaSetId,
        /// The server.
        server: ServerId,
    },
    /// The connection to a server was lost, or could not be made.
    ServerDown {
        /// The replica set.
        set: ReplicaSetId,
        /// The server.
        server: ServerId,
        /// Why.
        reason: String,
    },
    /// The listener was so slow that events were dropped, the oldest first.
    Missed {
        /// How many.
        events: u64,
    },
}

/// A bounded stream of a router's events.
///
/// Sending never waits, and makes no event while there are no listeners. A listener that falls
/// behind loses the oldest events and gets their number ([`RouteEvent::Missed`]).
#[derive(Debug, Default)]
pub struct RouteEvents {
    /// Made with the first listener, since it allocates its whole buffer.
    channel: OnceLock<broadcast::Sender<RouteEvent>>,
}

/// How many events wait for a slow listener.
const MAX_WAITING: usize = 1024;

impl RouteEvents {
    /// Returns `true` if there are listeners; if not, no event has to be made.
    #[must_use]
    pub fn has_listeners(&self) -> bool {
        self.listened().is_some()
    }

    fn listened(&self) -> Option<&broadcast::Sender<RouteEvent>> {
        let channel = self.channel.get();
        channel.filter(|channel| channel.receiver_count() > 0)
    }

    /// Sends an event to all listeners; makes it only if there are any. Never waits.
    pub fn send(&self, event: impl FnOnce() -> RouteEvent) {
        if let Some(channel) = self.listened() {
            // the last listener may have left in this moment
            let _no_listener = channel.send(event());
        }
    }

    /// Returns a listener to all events from now on.
    #[must_use]
    pub fn listen(&self) -> RouteListener {
        let channel = || broadcast::Sender::new(MAX_WAITING);
        RouteListener(self.channel.get_or_init(channel).subscribe())
    }
}

/// Receives the events of a router, one after the other, from the moment it was made.
#[derive(Debug)]
pub struct RouteListener(broadcast::Receiver<RouteEvent>);

impl RouteListener {
    /// Waits for the next event; `None` once the router is gone and all were received. Dropping the
    /// future loses no event.
    pub async fn next(&mut self) -> Option<RouteEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(events)) => Some(RouteEvent::Missed { events }),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use callward_testkit::{call, tool};
    use serde_json::json;

    use super::*;

    #[test]
    fn no_event_is_made_without_listeners() {
        let events = RouteEvents::default();
        let unheard = || panic!("there are no listeners");
        events.send(unheard);
        assert!(
            events.channel.get().is_none(),
            "no buffer before it is needed"
        );
        let listener = events.listen();
        assert!(events.has_listeners());
        drop(listener);
        assert!(!events.has_listeners());
        events.send(unheard);
    }

    #[test]
    fn each_event_is_an_object_with_its_name_as_type() {
        let call = call(&tool("read").set("orders").build(), json!({}));
        let decision = Arc::new(RouteDecision::new(&call, "round_robin"));
        let failed = RouteEvent::RouteFailed {
            decision: decision.clone(),
            error: ErrorKind::NoEligibleServer,
        };
        let health = RouteEvent::HealthUpdate {
            set: decision.set.clone(),
            server: ServerId::new("a").unwrap(),
            tool: None,
            from: "closed",
            to: "open",
            reason: "down".into(),
        };
        let missed = RouteEvent::Missed { events: 3 };
        for (event, expected) in [
            (
                RouteEvent::RouteDecision(decision),
                r#""type":"routeDecision","set":"orders","tool":"read""#,
            ),
            (failed, r#""type":"routeFailed""#),
            (
                health,
                r#""type":"healthUpdate","set":"orders","server":"a","from":"closed","to":"open","reason":"down""#,
            ),
            (missed, r#""type":"missed","events":3"#),
        ] {
            let written = serde_json::to_string(&event).unwrap();
            assert!(written.starts_with(&format!("{{{expected}")), "{written}");
        }
    }
}
