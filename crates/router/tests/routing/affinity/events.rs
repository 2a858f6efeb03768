//! Which calls have one key, what is reported of keys, and when they are forgotten.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Caller, Principal, SessionId, ToolCall, WithoutSession};
use callward_router::affinity::AffinityConfig;
use callward_router::{ExclusionReason, RouteEvent, RouteListener};
use callward_testkit::tool;
use tokio::time::advance;

use crate::affinity::{read_all, sessions};
use crate::bed::{Bed, by, members, received, server};

/// Returns what was reported, in words, and the digests apart.
fn words(listener: &mut RouteListener) -> (Vec<String>, Vec<String>) {
    let words = |event: RouteEvent| match event {
        RouteEvent::AffinitySet {
            by, key, server, ..
        } => (format!("{by} to {server}"), key.to_string()),
        RouteEvent::AffinityExpired {
            by,
            key,
            server,
            reason,
            ..
        } => (format!("{by} from {server}: {reason:?}"), key.to_string()),
        other => panic!("{other:?}"),
    };
    received(listener).into_iter().map(words).unzip()
}

#[tokio::test(start_paused = true)]
async fn a_key_is_reported_when_it_is_set_and_when_it_ends() {
    let mut config = AffinityConfig::default();
    config.ttl = Duration::from_secs(10);
    let bed = Bed::together(&config, "a b");
    let mut listener = bed.pool.events().listen();
    let read = || bed.decide(&by("secret-session", "read"));
    let home = read();
    let other = if home == "a" { "b" } else { "a" };
    read();
    let (set, digests) = words(&mut listener);
    assert_eq!(set, [format!("session to {home}")]);

    bed.spoil(&home, ExclusionReason::Unreachable);
    read();
    read();
    let (moved, again) = words(&mut listener);
    let from = format!("session from {home}: Unreachable");
    assert_eq!(moved, [from, format!("session to {other}")]);
    assert_eq!(again, [&*digests[0]; 2]);

    bed.heal(&home);
    for _ in 0..5 {
        advance(Duration::from_millis(9_999)).await;
        assert_eq!(read(), other, "each call restarts the time");
    }
    // a lookup is not a use
    advance(Duration::from_secs(6)).await;
    assert_eq!(bed.order(&by("secret-session", "read"))[0], other);
    advance(Duration::from_secs(4)).await;
    assert_eq!(read(), home, "a forgotten key is ranked again");
    let from = format!("session from {other}: Ttl");
    assert_eq!(words(&mut listener).0, [from, format!("session to {home}")]);
}

#[tokio::test(start_paused = true)]
async fn removed_and_drained_are_different_reasons() {
    let bed = sessions("a");
    let mut listener = bed.pool.events().listen();
    read_all(&bed, 1);
    bed.set_servers("b");
    read_all(&bed, 1);
    bed.set_servers("b c");
    drop(bed.pool.drain(&server("b")));
    read_all(&bed, 1);
    assert_eq!(
        words(&mut listener).0,
        [
            "session to a",
            "session from a: Removed",
            "session to b",
            "session from b: Draining",
            "session to c"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn calls_with_one_key_stay_together_and_no_event_names_it() {
    let config = |by: &str| {
        let mut config = AffinityConfig::default();
        config.by = by.parse().unwrap();
        config
    };
    let mut by_principal = config("session");
    by_principal.without_session = WithoutSession::ByPrincipal;
    let get = tool("get").read_only().build();
    let about = |who: &str, session: &str, id: &str| {
        let arguments = format!(r#"{{"who":"{who}","repo":{{"id":{id}}}}}"#);
        let caller = Caller::new(Principal::new(who));
        let caller = match session {
            "" => caller,
            _ => caller.with_session(SessionId::new(session)),
        };
        ToolCall::new(get.clone(), arguments).with_caller(Arc::new(caller))
    };
    let (ada, ada_too) = (about("ada", "", "7"), about("ada", "", "8"));
    let (eve, null) = (about("eve", "", "7.0"), about("eve", "", "null"));
    let (ada_1, ada_1_too) = (about("ada", "1", "7"), about("ada", "1", "8"));
    let (ada_2, eve_1) = (about("ada", "2", "7"), about("eve", "1", "7"));
    // names that join alike
    let ad_a1 = about("ad", "a1", "7");
    for (config, calls, kinds) in [
        (config("session"), [&ada, &eve], &[][..]),
        (config("session"), [&ada_1, &ada_1_too], &["session"]),
        (config("session"), [&ada_1, &ada_2], &["session"; 2]),
        (config("session"), [&ada_1, &eve_1], &["session"; 2]),
        (config("session"), [&ada_1, &ad_a1], &["session"; 2]),
        (by_principal.clone(), [&ada, &ada_too], &["user"]),
        (by_principal.clone(), [&ada, &eve], &["user"; 2]),
        (by_principal, [&ada_1, &ada], &["session", "user"]),
        (config("user"), [&ada_1, &ada_2], &["user"]),
        (config("user"), [&ada, &ada_1], &["user"]),
        (config("user"), [&ada, &eve], &["user"; 2]),
        (config("/repo/id"), [&ada, &eve], &["argument"]),
        (config("/repo/id"), [&null, &null], &[]),
    ] {
        let name = format!("{:?} {calls:?}", config.by);
        let bed = Bed::together(&config, "a b c d");
        let mut listener = bed.pool.events().listen();
        let calls = calls.into_iter().cycle().take(8);
        let all: String = calls.map(|call| bed.decide(call)).collect();
        let events = received(&mut listener);
        let text = format!("{events:?} {:?}", bed.router);
        assert!(!text.contains("ada"), "{text}");
        let json = serde_json::to_value(&events).unwrap();
        let found = json.as_array().unwrap().iter().map(|event| &event["by"]);
        assert!(found.eq(kinds), "{name}: {events:?}");
        let expected = match kinds.len() {
            0 => "abcdabcd".to_owned(),
            keys => all[..keys].repeat(8 / keys),
        };
        assert_eq!(all, expected, "{name}");
    }
    // sets are apart
    let bed = Bed::together(&config("user"), "a b c d");
    bed.pool.set_members("other".parse().unwrap(), members("z"));
    let get = tool("get").set("other").read_only().build();
    let elsewhere = ToolCall::new(get, "{}").with_caller(ada.caller().clone());
    let home = bed.decide(&ada);
    assert_eq!(bed.decide(&elsewhere), "z");
    assert_eq!(bed.decide(&ada), home);
}

#[test]
fn calls_that_run_at_once_agree_and_move_a_key_once() {
    const SESSIONS: usize = 200;
    let bed = sessions("a b c d");
    let mut listener = bed.pool.events().listen();
    let read_at_once = || {
        let start = std::sync::Barrier::new(4);
        let read = || {
            start.wait();
            read_all(&bed, SESSIONS)
        };
        let homes: [Vec<String>; 4] = std::thread::scope(|scope| {
            let threads: [_; 4] = std::array::from_fn(|_| scope.spawn(read));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(homes.iter().all(|others| *others == homes[0]));
        homes[0].clone()
    };
    let homes = read_at_once();
    assert_eq!(received(&mut listener).len(), SESSIONS);
    bed.spoil("b", ExclusionReason::Unreachable);
    read_at_once();
    let moved = homes.iter().filter(|home| *home == "b").count();
    assert_eq!(received(&mut listener).len(), 2 * moved);
}
