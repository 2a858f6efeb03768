//! When so few servers are fit that reads go to ejected ones, too.

use std::collections::BTreeSet;

use callward_core::{CallRecord, Tool};
use callward_router::{HealthConfig, HealthState, Presence, StrategyName, Witness};
use callward_testkit::{call, tool};
use serde_json::json;
use std::sync::Arc;
use tower::ServiceExt;

use crate::bed::Bed;

/// Five servers, three of which are ejected: `a`, `b`, `c`.
async fn mostly_ejected() -> Bed {
    let config = HealthConfig::default()
        .with_outlier(None)
        .with_max_ejected(100);
    let (bed, fates) = Bed::with(config, StrategyName::RoundRobin, 5);
    let read = tool("read").read_only().build();
    for fate in &fates[..3] {
        fate.fails();
    }
    bed.send_many(&read, 25).await;
    for id in ["a", "b", "c"] {
        assert_eq!(bed.state(id), HealthState::Ejected);
    }
    bed
}

async fn servers(bed: &Bed, tool: &Arc<Tool>) -> String {
    let mut servers = BTreeSet::new();
    for _ in 0..50 {
        let record = Arc::new(CallRecord::new());
        let call = call(tool, json!({})).with_record(record.clone());
        let _ = bed.router().oneshot(call).await;
        servers.extend(record.server().map(|(server, _)| server.to_string()));
    }
    servers.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn reads_are_spread_over_ejected_servers_and_nothing_else_is() {
    let bed = mostly_ejected().await;
    for (tool, expected) in [
        (tool("read").read_only().build(), "abcde"),
        (tool("put").idempotent().build(), "de"),
        (tool("send").build(), "de"),
        (tool("delete").destructive().build(), "de"),
    ] {
        assert_eq!(servers(&bed, &tool).await, expected, "{}", tool.name());
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_threshold_there_is_no_panic() {
    let bed = mostly_ejected().await;
    let read = tool("read").read_only().build();
    // three of six are fit, and one of them is away: still not there
    bed.pool.add(crate::bed::set(), crate::bed::fated("f").0);
    assert_eq!(servers(&bed, &read).await, "def");
    bed.witness("f", Witness::Ping, Presence::Down);
    assert_eq!(servers(&bed, &read).await, "abcde");
}
