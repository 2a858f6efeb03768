//! The layers of tower-resilience around the same tools, in this process: cache, coalescing, retry
//! and a breaker, each as its front page sets it up. A reply that is lost is an error of the inner
//! service.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use peers_load::Answer;
use peers_upstream::{Counts, Fault, Rule, State, Work, find};
use serde_json::Value;
use tokio::time::sleep;
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_resilience_cache::CacheLayer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_resilience_coalesce::CoalesceLayer;
use tower_resilience_retry::RetryLayer;

use crate::Outcome;
use crate::scenario::{Caller, Pinned, Subject};

/// The tool, its key, its value, and for how long it sleeps.
type Request = (&'static str, Work, String, String, u64);

/// What is wrong, as text: callers that share one call share its error.
type Stack = BoxCloneService<Request, Answer, String>;

pub(crate) struct Layers {
    state: Arc<State>,
    /// In a lock because it may be sent to another thread but not shared; each caller has a clone.
    stack: Mutex<Stack>,
}

impl Layers {
    pub(crate) fn new() -> Outcome<Self> {
        let state = Arc::new(State::default());
        let own = Arc::clone(&state);
        let tools = BoxCloneService::new(service_fn(move |call| run(Arc::clone(&own), call)));
        let breaker = CircuitBreakerLayer::builder().build().map_err(text)?;
        let broken = breaker.layer(tools).map_err(text);
        let retry = RetryLayer::<Request, Answer, String>::builder()
            .max_attempts(4)
            .exponential_backoff(Duration::from_millis(50))
            .build();
        let retried = retry.layer(BoxCloneService::new(broken)).map_err(text);
        let coalesce = CoalesceLayer::new(Request::clone);
        let coalesced = coalesce.layer(BoxCloneService::new(retried)).map_err(text);
        let cache = CacheLayer::builder()
            .max_size(100_000)
            .ttl(Duration::from_secs(3600))
            .key_extractor(Request::clone)
            .build()
            .map_err(text)?;
        let cached = cache.layer(BoxCloneService::new(coalesced)).map_err(text);
        Ok(Self {
            state,
            stack: Mutex::new(BoxCloneService::new(cached)),
        })
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Runs a tool, and fails as its rule says.
async fn run(state: Arc<State>, (tool, work, key, value, ms): Request) -> Result<Answer, String> {
    let (answer, fault) = state.run(tool, work, &key, &value);
    if work == Work::Slow {
        sleep(Duration::from_millis(ms)).await;
    }
    match fault {
        Fault::None => Ok(Answer::Text(answer)),
        Fault::Result => Ok(Answer::Failed("failed as instructed".to_owned())),
        Fault::Drop | Fault::Unavailable | Fault::Rpc => Err("failed as instructed".to_owned()),
    }
}

struct LayersCaller(Stack);

impl Caller for LayersCaller {
    fn call<'a>(&'a mut self, tool: &'a str, arguments: Value) -> Pinned<'a, Answer> {
        Box::pin(async move {
            let Some((tool, work)) = find(tool) else {
                return Answer::Lost(format!("no tool {tool}"));
            };
            let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
            let ms = arguments["ms"].as_u64().unwrap_or_default();
            let request = (tool, work, argument("key"), argument("value"), ms);
            match self.0.ready().await {
                Ok(stack) => stack.call(request).await.unwrap_or_else(Answer::Lost),
                Err(error) => Answer::Lost(error),
            }
        })
    }
}

impl Subject for Layers {
    fn caller(&self) -> Pinned<'_, Outcome<Box<dyn Caller>>> {
        Box::pin(async {
            let stack = self
                .stack
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            Ok(Box::new(LayersCaller(stack)) as Box<dyn Caller>)
        })
    }

    fn reset(&self) -> Pinned<'_, Outcome<()>> {
        Box::pin(async {
            self.state.reset();
            Ok(())
        })
    }

    fn lose<'a>(
        &'a self,
        tools: &'a [&'a str],
        fault: Fault,
        share: f64,
    ) -> Pinned<'a, Outcome<()>> {
        Box::pin(async move {
            let rule = Rule {
                fault,
                share,
                seed: 1,
            };
            let rules = tools.iter().map(|tool| ((*tool).to_owned(), rule.clone()));
            self.state.faults.set(rules.collect());
            Ok(())
        })
    }

    fn change(&self, items: BTreeMap<String, String>) -> Pinned<'_, Outcome<()>> {
        Box::pin(async {
            self.state.change(items);
            Ok(())
        })
    }

    fn counts(&self) -> Pinned<'_, Outcome<Counts>> {
        Box::pin(async { Ok(self.state.counts()) })
    }
}
