//! Which server of a set gets a call, as a stack's builder says.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;

use callward::core::InvalidName;
use callward::router::affinity::{AffinityConfig, AffinityKey};
use callward::router::{Candidates, RouterConfig, Strategy, StrategyName};
use callward::{Annotations, CallRecord, Server, Stack, StackBuilder, ToolSpec, Tools};
use serde_json::{Value, json};

fn server(id: &str) -> Result<Server, InvalidName> {
    let hints = Annotations::default().with_read_only(true).with_cost(10.0);
    let tools = Tools::new(id)?
        .tool(
            ToolSpec::new("get_order").annotations(hints),
            |_: Value| async { Ok::<_, String>("an order") },
        )
        .unwrap();
    Ok(Server::new(tools).in_set("orders".parse()?))
}

/// Makes this many calls with different arguments, and returns the servers that were asked.
async fn routed(builder: StackBuilder, arguments: impl Fn(u32) -> Value) -> Vec<String> {
    let stack = builder.build().await.unwrap();
    let mut asked = Vec::new();
    for n in 0..8 {
        let record = Arc::new(CallRecord::new());
        let arguments = serde_json::to_vec(&arguments(n)).unwrap();
        let call = stack.prepare("orders.get_order", arguments).unwrap();
        let answer = stack.run(call.with_record(record.clone())).await;
        answer.unwrap();
        asked.push(record.server().unwrap().0.to_string());
    }
    asked
}

fn pair() -> StackBuilder {
    let (a, b) = (server("a").unwrap(), server("b").unwrap());
    Stack::builder()
        .server(a.zone("near").cost_factor(3.0))
        .server(b.zone("far"))
}

#[tokio::test(start_paused = true)]
async fn calls_about_one_thing_stay_on_one_server() {
    let by: AffinityKey = "/customer".parse().unwrap();
    let config = RouterConfig::default()
        .with_strategy(StrategyName::Affinity)
        .with_affinity(AffinityConfig::default().with_by(by));
    let asked = routed(pair().router(config), |n| json!({"customer": 7, "n": n})).await;
    assert!(asked.iter().all(|one| *one == asked[0]), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_budget_leaves_out_servers_that_cost_more() {
    let config = RouterConfig::default()
        .with_strategy(StrategyName::RoundRobin)
        .with_cost_budget(20.0);
    let asked = routed(pair().router(config), |n| json!({"n": n})).await;
    assert!(asked.iter().all(|one| one == "b"), "{asked:?}");
}

/// Stays in a zone while a server there is fit.
#[derive(Debug)]
struct Near;

impl Strategy for Near {
    fn name(&self) -> &'static str {
        "near"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let near = |zone: Option<&str>| zone == Some("near");
        let (index, _) = candidates.iter().max_by_key(|(_, s)| near(s.zone()))?;
        Some(index)
    }
}

#[tokio::test(start_paused = true)]
async fn a_strategy_of_ones_own_is_asked() {
    let asked = routed(pair().custom_strategy(Near), |n| json!({"n": n})).await;
    assert!(asked.iter().all(|one| one == "a"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn settings_that_make_no_sense_are_refused_by_name() {
    let costly = server("c").unwrap().cost_factor(f64::NAN);
    let error = pair().server(costly).build().await.unwrap_err().to_string();
    assert!(error.contains("server `c`: cost_factor"), "{error}");
    let config = RouterConfig::default().with_cost_budget(-1.0);
    let error = pair().router(config).build().await.unwrap_err().to_string();
    assert!(error.contains("router: cost_budget"), "{error}");
}
