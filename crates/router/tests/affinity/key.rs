//! Calls with a key, and calls without.

use std::sync::Arc;

use callward_core::{Caller, Principal, ToolCall};
use callward_router::affinity::{AffinityConfig, AffinityKey, WithoutSession};
use callward_testkit::tool;

use crate::bed::{Bed, FOUR, read};

fn without_session(who: &str, arguments: &str) -> ToolCall {
    let get = tool("get").read_only().build();
    ToolCall::new(get, arguments.to_owned()).with_caller(Arc::new(Caller::new(Principal::new(who))))
}

/// The servers of several calls, in one string.
fn servers(bed: &Bed, calls: impl Iterator<Item = ToolCall>) -> String {
    calls.map(|call| bed.decide(&call)).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_key_go_where_the_other_strategy_says() {
    let bed = Bed::new(&FOUR);
    let calls = (0..8).map(|_| without_session("ada", "{}"));
    assert_eq!(servers(&bed, calls), "abcdabcd");
    assert_eq!(bed.strategy.held(), 0);
    assert!(bed.observed.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn by_principal_keeps_calls_without_a_session_together() {
    let config = AffinityConfig::default().with_without_session(WithoutSession::ByPrincipal);
    let bed = Bed::with(&config, &FOUR);
    let calls = (0..8).map(|_| without_session("ada", "{}"));
    let all = servers(&bed, calls);
    assert_eq!(all, all[..1].repeat(8));
    let homes: std::collections::HashSet<String> = (0..40)
        .map(|n| bed.decide(&without_session(&format!("u{n}"), "{}")))
        .collect();
    assert_eq!(homes.len(), 4);
    assert!(bed.observed.words().0[0].starts_with("user to "));
}

#[tokio::test(start_paused = true)]
async fn by_user_all_sessions_of_one_are_together() {
    let bed = Bed::with(&AffinityConfig::default().with_by(AffinityKey::User), &FOUR);
    let homes = bed.read_all(20);
    assert!(homes.iter().all(|home| *home == homes[0]));
    assert_eq!(bed.decide(&without_session("ada", "{}")), homes[0]);
}

#[tokio::test(start_paused = true)]
async fn by_argument_calls_about_one_thing_are_together() {
    let by = "/repo/id".parse().unwrap();
    let bed = Bed::with(&AffinityConfig::default().with_by(by), &FOUR);
    let about = |id: u32, more: u32| {
        let arguments = format!(r#"{{"more":{more},"repo":{{"id":{id}}}}}"#);
        without_session(&format!("user {more}"), &arguments)
    };
    for id in 0..20 {
        let all = servers(&bed, (0..5).map(|more| about(id, more)));
        assert_eq!(all, all[..1].repeat(5));
    }
    let calls = (0..4).map(|_| without_session("ada", r#"{"repo":{"id":null}}"#));
    assert_eq!(servers(&bed, calls), "abcd");
    assert_eq!(bed.strategy.held(), 20);
}

#[tokio::test(start_paused = true)]
async fn sets_are_apart() {
    let bed = Bed::new(&FOUR);
    let home = bed.read("1");
    let other = callward_core::ReplicaSetId::new("other").unwrap();
    let members = vec![callward_router::Member::new(
        crate::bed::server("z"),
        callward_testkit::AtOnce::new(callward_core::ToolOutput::text("ok")),
    )];
    bed.pool.set_members(other, members);
    let elsewhere = ToolCall::new(tool("get").set("other").read_only().build(), "{}")
        .with_caller(read("1").caller().clone());
    assert_eq!(bed.decide(&elsewhere), "z");
    assert_eq!(bed.read("1"), home);
}
