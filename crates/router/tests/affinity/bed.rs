//! A replica set whose servers are made unfit at will, with a router by affinity in front of it.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::{
    Caller, Principal, ReplicaSetId, ServerId, SessionId, Tool, ToolCall, ToolOutput, Weight,
};
use callward_router::affinity::{
    AffinityConfig, AffinityExpired, AffinityObserver, AffinitySet, KeyDigest,
};
use callward_router::{Affinity, ExclusionReason, Member, Pool, RoundRobin, Router};
use callward_testkit::{AtOnce, call, tool};
use parking_lot::Mutex;
use serde_json::json;

/// What speaks against servers, by their names.
type Flaws = Arc<Mutex<HashMap<String, ExclusionReason>>>;

pub(crate) struct Bed {
    pub(crate) pool: Arc<Pool<AtOnce>>,
    pub(crate) router: Router<AtOnce>,
    pub(crate) observed: Arc<Observed>,
    pub(crate) strategy: Arc<Affinity>,
    flaws: Flaws,
    interlude: Interlude,
}

/// What happens once, in the middle of a choice: when a spoilt server is asked whether it is fit.
type Interlude = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// What an observer got.
#[derive(Debug, Default)]
pub(crate) struct Observed(Mutex<Vec<Event>>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Set(AffinitySet),
    Expired(AffinityExpired),
}

impl AffinityObserver for Observed {
    fn on_set(&self, set: &AffinitySet) {
        self.0.lock().push(Event::Set(set.clone()));
    }

    fn on_expired(&self, expired: &AffinityExpired) {
        self.0.lock().push(Event::Expired(expired.clone()));
    }
}

impl Observed {
    /// Returns what was reported since it was asked last.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock())
    }

    /// Returns the same in words, and the digests apart.
    pub(crate) fn words(&self) -> (Vec<String>, Vec<KeyDigest>) {
        let words = |event| match event {
            Event::Set(set) => (format!("{} to {}", set.kind, set.server), set.key),
            Event::Expired(end) => (
                format!("{} from {}: {}", end.kind, end.server, end.cause),
                end.key,
            ),
        };
        self.take().into_iter().map(words).unzip()
    }
}

impl Bed {
    /// By session, without a key in turn.
    pub(crate) fn new(servers: &[(&str, u32)]) -> Self {
        Self::with(&AffinityConfig::default(), servers)
    }

    pub(crate) fn with(config: &AffinityConfig, servers: &[(&str, u32)]) -> Self {
        let (pool, observed, flaws) = (
            Arc::new(Pool::new()),
            Arc::new(Observed::default()),
            Flaws::default(),
        );
        let strategy = Affinity::new(config)
            .unwrap()
            .with_fallback(Arc::new(RoundRobin))
            .with_observer(observed.clone());
        let strategy = Arc::new(strategy);
        let router = Router::new(pool.clone()).with_custom_strategy(strategy.clone());
        let bed = Self {
            pool,
            router,
            observed,
            strategy,
            flaws,
            interlude: Interlude::default(),
        };
        bed.set_servers(servers);
        bed
    }

    pub(crate) fn set_servers(&self, servers: &[(&str, u32)]) {
        let members = servers.iter().map(|(id, weight)| {
            let (name, flaws) = ((*id).to_owned(), self.flaws.clone());
            let interlude = self.interlude.clone();
            let caches = id.starts_with("cache").then_some("caching");
            Member::new(server(id), AtOnce::new(ToolOutput::text("ok")))
                .with_weight(Weight::new(*weight).unwrap())
                .with_categories(caches)
                .with_gate(move |_| {
                    let Some(flaw) = flaws.lock().get(&name).copied() else {
                        return Ok(());
                    };
                    let happens = interlude.lock().take();
                    happens.into_iter().for_each(|happens| happens());
                    Err(flaw)
                })
        });
        let id = ReplicaSetId::new("test").unwrap();
        self.pool.set_members(id, members.collect());
    }

    pub(crate) fn spoil(&self, server: &str, flaw: ExclusionReason) {
        self.flaws.lock().insert(server.to_owned(), flaw);
    }

    pub(crate) fn heal(&self, server: &str) {
        self.flaws.lock().remove(server);
    }

    /// Lets something happen in the middle of the next choice that meets a spoilt server.
    pub(crate) fn interrupt(&self, happens: impl FnOnce() + Send + 'static) {
        *self.interlude.lock() = Some(Box::new(happens));
    }

    /// Returns the server of a call.
    pub(crate) fn decide(&self, call: &ToolCall) -> String {
        self.router.decide(call).unwrap().to_string()
    }

    /// Returns the server of a read of a session.
    pub(crate) fn read(&self, session: &str) -> String {
        self.decide(&read(session))
    }

    /// Returns the servers of the first sessions.
    pub(crate) fn read_all(&self, sessions: usize) -> Vec<String> {
        (0..sessions).map(|n| self.read(&n.to_string())).collect()
    }
}

pub(crate) fn server(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}

pub(crate) fn by(session: &str, tool: &Arc<Tool>) -> ToolCall {
    let caller = Caller::new(Principal::new("ada")).with_session(SessionId::new(session));
    call(tool, json!({"id": 1})).with_caller(Arc::new(caller))
}

pub(crate) fn read(session: &str) -> ToolCall {
    by(session, &tool("get").read_only().build())
}

pub(crate) fn destroy(session: &str) -> ToolCall {
    by(session, &tool("delete").destructive().build())
}
