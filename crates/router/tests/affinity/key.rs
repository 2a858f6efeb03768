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
async fn calls_with_one_key_stay_together_and_calls_without_go_in_turn() {
    let config = AffinityConfig::default;
    let by_argument = config().with_by("/repo/id".parse().unwrap());
    let by_principal = config().with_without_session(WithoutSession::ByPrincipal);
    let about = |who: &str, id: &str| {
        let arguments = format!(r#"{{"who":"{who}","repo":{{"id":{id}}}}}"#);
        without_session(who, &arguments)
    };
    let of_session = |session: &str| read(session);
    for (name, config, calls, one, held) in [
        (
            "no session",
            config(),
            [about("ada", "1"), about("eve", "1")],
            false,
            0,
        ),
        (
            "by principal",
            by_principal,
            [about("ada", "1"), about("ada", "2")],
            true,
            1,
        ),
        (
            "all sessions of a user",
            config().with_by(AffinityKey::User),
            [of_session("1"), of_session("2")],
            true,
            1,
        ),
        (
            "one argument",
            by_argument.clone(),
            [about("ada", "7"), about("eve", "7.0")],
            true,
            1,
        ),
        (
            "no argument",
            by_argument,
            [about("ada", "null"), about("ada", "null")],
            false,
            0,
        ),
    ] {
        let bed = Bed::with(&config, &FOUR);
        let all = servers(&bed, calls.iter().cycle().take(8).cloned());
        match one {
            true => assert_eq!(all, all[..1].repeat(8), "{name}"),
            false => assert_eq!(all, "abcdabcd", "{name}"),
        }
        assert_eq!(bed.strategy.held(), held, "{name}");
        assert_eq!(bed.observed.take().len(), held, "{name}");
    }
    // different keys spread
    let bed = Bed::with(&config().with_by(AffinityKey::User), &FOUR);
    let users = (0..40).map(|n| without_session(&format!("u{n}"), "{}"));
    let homes: std::collections::HashSet<String> = users.map(|call| bed.decide(&call)).collect();
    assert_eq!(homes.len(), 4);
    assert!(bed.observed.words().0[0].starts_with("user to "));
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
