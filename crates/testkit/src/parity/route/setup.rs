//! A case's servers as a pool of ours, and its calls as calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use callward_core::{
    Caller, Principal, Profile, ReplicaSetId, ServerId, SessionId, Tool, ToolCall, Weight,
};
use callward_router::{Affinity, Member, Pool, Router, Strategy, StrategyName};
use serde::Deserialize;
use serde_json::{Value, json};
use tower::Service;

use super::super::{Fallible, hints};
use crate::{MockService, call, tool};

/// What both kinds of cases begin with.
#[derive(Debug, Deserialize)]
pub(super) struct Setup {
    config: Config,
    pub(super) servers: Vec<Listed>,
    #[serde(default)]
    health: BTreeMap<String, bool>,
    #[serde(default)]
    load: BTreeMap<String, f64>,
    #[serde(default)]
    affinity: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    strategy: String,
    #[serde(default)]
    enable_affinity: bool,
    #[serde(default)]
    server_weights: Vec<Weighed>,
    #[serde(default)]
    category_mapping: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Weighed {
    server_id: String,
    weight: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Listed {
    pub(super) id: String,
    #[serde(default)]
    capabilities: Vec<String>,
}

/// A tool of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Named {
    #[serde(default)]
    annotations: Value,
    #[serde(default)]
    pub(super) category: Option<String>,
    #[serde(default)]
    pub(super) server_id: Option<String>,
}

/// The caller.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Context {
    session_id: Option<String>,
    user_id: Option<String>,
}

impl Context {
    /// Returns what calls are kept together by: the session before the user.
    pub(super) fn key(&self) -> Option<&str> {
        self.session_id.as_deref().or(self.user_id.as_deref())
    }
}

/// Returns our strategy for one of NeuroLink's. A name it does not know stands for taking turns.
fn strategy(name: &str) -> StrategyName {
    match name {
        "least-loaded" => StrategyName::LeastConnections,
        "capability-based" => StrategyName::Category,
        "priority" => StrategyName::Priority,
        "random" => StrategyName::Random,
        _ => StrategyName::RoundRobin,
    }
}

type InFlight = <Router<MockService> as Service<ToolCall>>::Future;

/// A case's servers behind a router of ours.
pub(super) struct Bed {
    pub(super) router: Router<MockService>,
    pub(super) strategy: StrategyName,
    pub(super) has_affinity: bool,
    /// Held: they are the load.
    _in_flight: Vec<InFlight>,
}

impl Setup {
    /// Builds the pool, puts servers out of service that are marked so, and makes the load.
    ///
    /// `by_category` is whether any tool of the case names a category: with NeuroLink that is a
    /// filter before any strategy, and here a strategy.
    pub(super) fn bed(&self, by_category: bool) -> Fallible<Bed> {
        let pool = Arc::new(Pool::new());
        let affinity = self.config.enable_affinity || self.config.strategy == "affinity";
        let name = match by_category {
            true => StrategyName::Category,
            false => strategy(&self.config.strategy),
        };
        let strategy: Arc<dyn Strategy> = match affinity {
            true => Arc::new(Affinity::default().with_fallback(name.strategy())),
            false => name.strategy(),
        };
        let router = Router::new(pool.clone()).with_custom_strategy(strategy);
        self.meet_keys(&pool, &router);
        pool.set_members(set(), self.members());

        let marked = self.health.iter().filter(|(_, healthy)| !**healthy);
        for (id, _) in marked {
            // an unknown id is refused, and there is no server to take out of service
            if let Some(server) = self.server(id) {
                drop(pool.drain(&server)?);
            }
        }
        Ok(Bed {
            _in_flight: self.make_load(&router),
            router,
            strategy: name,
            has_affinity: affinity,
        })
    }

    /// Has each key of the case met its server, as if there had been no other.
    fn meet_keys(&self, pool: &Pool<MockService>, router: &Router<MockService>) {
        for (key, id) in &self.affinity {
            let id = self.server(id).unwrap_or_else(|| name(usize::MAX));
            pool.set_members(set(), vec![Member::new(id, MockService::gated().0)]);
            let call = on_behalf(call(&any_tool(), json!({})), Some(key));
            let _ = router.decide(&call);
        }
    }

    fn members(&self) -> Vec<Member<MockService>> {
        let member = |(place, listed): (usize, &Listed)| {
            let mapped = self.config.category_mapping.iter();
            let categories = mapped
                .filter(|(_, members)| members.contains(&listed.id))
                .map(|(category, _)| category)
                .chain(&listed.capabilities);
            Member::new(name(place), MockService::gated().0)
                .with_weight(self.weight(&listed.id))
                .with_categories(categories.cloned())
                .with_capabilities(listed.capabilities.iter().cloned())
        };
        self.servers.iter().enumerate().map(member).collect()
    }

    /// Returns what a server weighs. Who weighs any server takes the others for no primaries; who
    /// weighs none leaves all at the default.
    pub(super) fn weight(&self, id: &str) -> Weight {
        let weights = &self.config.server_weights;
        let own = weights.iter().filter(|weighed| weighed.server_id == id);
        let heaviest = own.map(|weighed| weighed.weight).reduce(f64::max);
        match heaviest {
            Some(weight) => Weight::new(weight.clamp(0.0, 100.0) as u32).unwrap_or_default(),
            None if weights.is_empty() => Weight::PRIMARY,
            None => Weight::new(Weight::PRIMARY.get() - 1).unwrap_or_default(),
        }
    }

    /// Keeps this many calls in flight at each server as the case says.
    fn make_load(&self, router: &Router<MockService>) -> Vec<InFlight> {
        let mut held = Vec::new();
        for (place, listed) in self.servers.iter().enumerate() {
            let call = call(&any_tool(), json!({})).pinned_to(name(place));
            for _ in 0..self.load(&listed.id) {
                held.push(router.clone().call(call.clone()));
            }
        }
        held
    }

    /// Returns how many calls the case has in flight at a server: never below 0, and of more than a
    /// thousand the rest would change nothing.
    pub(super) fn load(&self, id: &str) -> u32 {
        let load = self.load.get(id).copied().unwrap_or(0.0);
        load.clamp(0.0, 1000.0) as u32
    }

    pub(super) fn is_healthy(&self, id: &str) -> bool {
        self.health.get(id) != Some(&false)
    }

    /// Returns our name of a server of the case, if it has it.
    fn server(&self, id: &str) -> Option<ServerId> {
        let place = self.servers.iter().position(|listed| listed.id == id)?;
        Some(name(place))
    }

    /// Returns the case's name of a server of ours.
    pub(super) fn id(&self, server: &ServerId) -> &str {
        let place = server
            .as_str()
            .strip_prefix('s')
            .and_then(|n| n.parse().ok());
        let listed = place.and_then(|place: usize| self.servers.get(place));
        listed.map_or("?", |listed| &listed.id)
    }

    /// Makes a call of ours.
    pub(super) fn call(&self, named: &Named, context: &Context) -> Fallible<ToolCall> {
        let call = on_behalf(call(&named.tool()?, json!({})), context.key());
        Ok(match &named.server_id {
            None => call,
            // an unknown id is unknown here, too
            Some(id) => call.pinned_to(self.server(id).unwrap_or_else(|| name(usize::MAX))),
        })
    }
}

impl Named {
    pub(super) fn tool(&self) -> Fallible<Arc<Tool>> {
        let mut stated = hints::read(&self.annotations)?;
        if let Some(category) = &self.category {
            stated
                .tags
                .get_or_insert_default()
                .insert(0, category.clone());
        }
        Ok(tool("t")
            .profile(Profile::neurolink())
            .hint(|hints| *hints = stated)
            .build())
    }
}

fn any_tool() -> Arc<Tool> {
    tool("t").read_only().build()
}

fn on_behalf(call: ToolCall, key: Option<&str>) -> ToolCall {
    let caller = Caller::new(Principal::new("alice"));
    call.with_caller(Arc::new(match key {
        Some(key) => caller.with_session(SessionId::new(key)),
        None => caller,
    }))
}

/// Names a server by its place: a case may call it anything.
fn name(place: usize) -> ServerId {
    ServerId::new(format!("s{place}")).unwrap()
}

fn set() -> ReplicaSetId {
    ReplicaSetId::new("test").unwrap()
}
