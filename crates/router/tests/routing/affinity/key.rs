//! Calls with a key, and calls without.

use std::sync::Arc;

use callward_core::{Caller, Principal, ToolCall};
use callward_router::affinity::{AffinityConfig, AffinityKey, WithoutSession};
use callward_testkit::tool;

use crate::affinity::bed::{Bed, FOUR, read};
use crate::bed::members;

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
    let by_user = config().with_by(AffinityKey::User);
    let (a1, a2, e1) = (about("ada", "1"), about("ada", "2"), about("eve", "1"));
    let (a7, e7, null) = (about("ada", "7"), about("eve", "7.0"), about("ada", "null"));
    let (s1, s2) = (read("1"), read("2"));
    for (name, config, calls, one) in [
        ("no session", config(), [&a1, &e1], false),
        ("by principal", by_principal, [&a1, &a2], true),
        ("sessions of a user", by_user, [&s1, &s2], true),
        ("one argument", by_argument.clone(), [&a7, &e7], true),
        ("no argument", by_argument, [&null, &null], false),
    ] {
        let bed = Bed::with(&config, &FOUR);
        let all = servers(&bed, calls.into_iter().cycle().take(8).cloned());
        match one {
            true => assert_eq!(all, all[..1].repeat(8), "{name}"),
            false => assert_eq!(all, "abcdabcd", "{name}"),
        }
        assert_eq!(bed.strategy.held(), usize::from(one), "{name}");
        assert_eq!(bed.observed.take().len(), usize::from(one), "{name}");
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
    bed.pool.set_members("other".parse().unwrap(), members("z"));
    let elsewhere = ToolCall::new(tool("get").set("other").read_only().build(), "{}")
        .with_caller(read("1").caller().clone());
    assert_eq!(bed.decide(&elsewhere), "z");
    assert_eq!(bed.read("1"), home);
}
