//! One tool fails always; another one of the same server is well. Are its calls answered?

use std::pin::pin;
use std::time::Duration;

use peers_upstream::Fault;
use serde_json::json;
use tokio::time::timeout;

use crate::Outcome;
use crate::figures::Neighbours;
use crate::scenario::{Subject, all, failed};

/// How the tool fails, and what that is called.
pub(crate) const WAYS: &[(Fault, &str)] = &[
    (Fault::Result, "isError"),
    (Fault::Rpc, "JSON-RPC -32603"),
    (Fault::Unavailable, "HTTP 503"),
    (Fault::Drop, "connection dropped"),
];

const BROKEN: usize = 24;
const HEALTHY: usize = 40;
const CALLERS: usize = 8;
/// What repeats a failed call for a long time is still at it when the healthy tool is called.
const AHEAD: Duration = Duration::from_secs(4);

pub(crate) async fn run(subject: &dyn Subject, (fault, way): (Fault, &str)) -> Outcome<Neighbours> {
    subject.reset().await?;
    subject.lose(&["broken_get"], fault, 1.0).await?;
    let calls = |tool: &'static str, count| {
        let call = move |key| (tool, json!({ "key": format!("{way}-{key}") }));
        (0..count).map(call).collect::<Vec<_>>()
    };
    let mut broken = pin!(all(subject, CALLERS, calls("broken_get", BROKEN)));
    // Its callers are tasks: they go on, until this is dropped.
    let _ = timeout(AHEAD, &mut broken).await;
    let answers = all(subject, CALLERS, calls("get_item", HEALTHY)).await?;
    Ok(Neighbours {
        way: way.to_owned(),
        healthy_calls: HEALTHY as u64,
        blocked: failed(&answers),
    })
}
