//! Which server of a set gets a call, as a stack's builder says. `builds` has wrong settings, and
//! the tests of the router and of the gateway have the strategies.

use callward::router::{Candidates, Strategy};
use callward::{Server, Stack};
use callward_testkit::{MockServer, MockService};
use serde_json::json;

use crate::bed::{in_set, read, recorded};

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
    let servers =
        ["a", "b"].map(|id| MockServer::new(id, vec![read("get")], MockService::counting()));
    let zone = |id: &str, server: Server| server.zone(if id == "b" { "near" } else { "far" });
    let builder = Stack::builder().custom_strategy(Near);
    let stack = in_set(builder, &servers, zone).await;
    for n in 0..8 {
        let (_, record) = recorded(&stack, "set.get", json!({"n": n})).await;
        assert_eq!(record.facts().server.unwrap().0.as_str(), "b");
    }
}
