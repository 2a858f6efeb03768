//! A replica set whose servers are made unfit at will, with a router by affinity in front of it.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::{Caller, Principal, SessionId, Tool, ToolCall};
use callward_router::affinity::{AffinityConfig, KeyDigest};
use callward_router::{
    Affinity, ExclusionReason, Pool, RoundRobin, RouteEvent, RouteEvents, RouteListener, Router,
};
use callward_testkit::{MockService, call};
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::unconstrained;

use crate::bed::{counting, of, test_set, weight};

/// What speaks against servers, by their names.
type Flaws = Arc<Mutex<HashMap<String, ExclusionReason>>>;

pub(crate) struct Bed {
    pub(crate) pool: Arc<Pool<MockService>>,
    pub(crate) router: Router<MockService>,
    pub(crate) observed: Arc<Observed>,
    pub(crate) strategy: Arc<Affinity>,
    flaws: Flaws,
    interlude: Interlude,
}

/// What happens once, in the middle of a choice: when a spoilt server is asked whether it is fit.
type Interlude = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// The events of the strategy.
pub(crate) struct Observed(Mutex<RouteListener>);

impl Observed {
    /// Returns what was reported since it was asked last.
    pub(crate) fn take(&self) -> Vec<RouteEvent> {
        let mut listener = self.0.lock();
        // all of them, also beyond tokio's budget for a poll
        let next = || unconstrained(listener.next()).now_or_never().flatten();
        std::iter::from_fn(next).collect()
    }

    /// Returns the same in words, and the digests apart.
    pub(crate) fn words(&self) -> (Vec<String>, Vec<KeyDigest>) {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let words = |event: RouteEvent| {
            let written = serde_json::to_value(&event).unwrap();
            let (by, server) = (word(&written["by"]), word(&written["server"]));
            match event {
                RouteEvent::AffinitySet(set) => (format!("{by} to {server}"), set.key),
                RouteEvent::AffinityExpired(end) => {
                    let reason = word(&written["reason"]);
                    (format!("{by} from {server}: {reason}"), end.key)
                }
                other => panic!("{other:?}"),
            }
        };
        self.take().into_iter().map(words).unzip()
    }
}

pub(crate) const FOUR: [(&str, u32); 4] = [("a", 50), ("b", 50), ("c", 50), ("d", 50)];

impl Bed {
    /// By session, without a key in turn.
    pub(crate) fn new(servers: &[(&str, u32)]) -> Self {
        Self::with(&AffinityConfig::default(), servers)
    }

    pub(crate) fn with(config: &AffinityConfig, servers: &[(&str, u32)]) -> Self {
        let (pool, events) = (Arc::new(Pool::new()), Arc::new(RouteEvents::default()));
        let observed = Arc::new(Observed(Mutex::new(events.listen())));
        let strategy = Affinity::new(config)
            .unwrap()
            .with_fallback(Arc::new(RoundRobin))
            .with_events(events);
        let strategy = Arc::new(strategy);
        let router = Router::new(pool.clone()).with_custom_strategy(strategy.clone());
        let bed = Self {
            pool,
            router,
            observed,
            strategy,
            flaws: Flaws::default(),
            interlude: Interlude::default(),
        };
        bed.set_servers(servers);
        bed
    }

    pub(crate) fn set_servers(&self, servers: &[(&str, u32)]) {
        let members = servers.iter().map(|(id, own)| {
            let (name, flaws) = ((*id).to_owned(), self.flaws.clone());
            let interlude = self.interlude.clone();
            let caches = id.starts_with("cache").then_some("caching");
            counting(id)
                .with_weight(weight(*own))
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
        self.pool.set_members(test_set(), members.collect());
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

pub(crate) fn by(session: &str, tool: &Arc<Tool>) -> ToolCall {
    let caller = Caller::new(Principal::new("ada")).with_session(SessionId::new(session));
    call(tool, json!({"id": 1})).with_caller(Arc::new(caller))
}

pub(crate) fn read(session: &str) -> ToolCall {
    by(session, &of("read"))
}

pub(crate) fn destroy(session: &str) -> ToolCall {
    by(session, &of("delete"))
}
