//! What the router asks of a set, and what operators do to it.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::time::Duration;

use callward_breaker::{BreakerConfig, BreakerSet, BreakerState, BreakerStatus, Subject};
use callward_core::{ServerId, ToolName};
use tokio::time::advance;

fn server(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}

fn tool(name: impl AsRef<str>) -> ToolName {
    ToolName::new(name).unwrap()
}

fn fail(set: &BreakerSet, server: &ServerId, tool: &ToolName, times: usize) {
    for _ in 0..times {
        let permit = set.circuit(server, tool).admit().unwrap();
        permit.fail(&"connection refused");
    }
}

#[tokio::test(start_paused = true)]
async fn asking_who_is_available_takes_no_probe() {
    let (set, a, get) = (BreakerSet::default(), server("a"), tool("get"));
    assert!(set.circuit(&a, &get).is_available(), "never called");
    fail(&set, &a, &get, 3);
    assert!(!set.circuit(&a, &get).is_available());
    advance(Duration::from_secs(30)).await;
    for _ in 0..10 {
        assert!(set.circuit(&a, &get).is_available());
    }
    let probe = set.circuit(&a, &get).admit().unwrap();
    assert!(
        !set.circuit(&a, &get).is_available(),
        "the one place is taken"
    );
    probe.succeed();
    assert!(set.circuit(&a, &get).is_available());
}

#[tokio::test(start_paused = true)]
async fn a_reset_closes_the_breakers_of_that_server_only() {
    let (set, get, put) = (BreakerSet::default(), tool("get"), tool("put"));
    let (a, b) = (server("a"), server("b"));
    for (server, tool) in [(&a, &get), (&a, &put), (&b, &get)] {
        fail(&set, server, tool, 3);
    }
    set.reset_server(&a);
    assert!(set.circuit(&a, &get).is_available() && set.circuit(&a, &put).is_available());
    assert!(!set.circuit(&b, &get).is_available());
    // as new: it takes three failures again, and the open time starts over
    fail(&set, &a, &get, 2);
    assert!(set.circuit(&a, &get).is_available());
    fail(&set, &a, &get, 1);
    assert_eq!(
        set.snapshot()[0].time_to_probe,
        Some(Duration::from_secs(30))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_over_the_old_connection_does_not_count_against_the_new() {
    let (set, a, get) = (BreakerSet::default(), server("a"), tool("get"));
    let old: Vec<_> = (0..5)
        .map(|_| set.circuit(&a, &get).admit().unwrap())
        .collect();
    set.reset_server(&a);
    for permit in old {
        permit.fail(&"connection lost");
    }
    assert_eq!(set.snapshot()[0].failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_tells_all() {
    let set = BreakerSet::default();
    let (a, b, get) = (server("a"), server("b"), tool("get"));
    fail(&set, &b, &get, 2);
    fail(&set, &a, &get, 3);
    advance(Duration::from_secs(10)).await;
    let [first, second] = &set.snapshot()[..] else {
        panic!("two breakers")
    };
    assert_eq!((&first.server, first.tool()), (&a, Some(&get)));
    assert_eq!((first.state, first.failures), (BreakerState::Open, 0));
    assert_eq!(first.time_to_probe, Some(Duration::from_secs(20)));
    assert_eq!(
        first.last_trip.as_deref(),
        Some("3 failures in a row, the last: connection refused")
    );
    assert_eq!((second.state, second.failures), (BreakerState::Closed, 2));
    assert_eq!((&second.last_trip, second.time_to_probe), (&None, None));
}

#[tokio::test(start_paused = true)]
async fn an_operators_word_holds_until_released() {
    let (set, a, get) = (BreakerSet::default(), server("a"), tool("get"));
    set.force_open(&a, &get);
    set.reset_server(&a);
    advance(Duration::from_secs(100_000)).await;
    assert!(!set.circuit(&a, &get).is_available());
    let rejection = set.circuit(&a, &get).admit().unwrap_err();
    assert!(rejection.to_string().contains("operator"), "{rejection}");

    set.force_closed(&a, &get);
    fail(&set, &a, &get, 10);
    assert_eq!(set.snapshot()[0].state, BreakerState::ForcedClosed);

    set.release(&a, &get);
    fail(&set, &a, &get, 3);
    assert_eq!(set.snapshot()[0].state, BreakerState::Open);
}

#[test]
fn settings_without_sense_are_refused() {
    let (well, wrong) = (
        BreakerConfig::default(),
        BreakerConfig::default().with_probes(0),
    );
    for (tool, server) in [(well, wrong), (wrong, well)] {
        assert_eq!(BreakerSet::new(tool, server).unwrap_err().field, "probes");
    }
}

/// Returns `true` if the set is within its bound and has all of these.
fn keeps(set: &BreakerSet, names: &[&str]) -> bool {
    let all = set.snapshot();
    let has = |name| all.iter().any(|one| one.tool() == Some(&tool(name)));
    all.len() <= 10_000 && names.iter().all(has)
}

#[tokio::test(start_paused = true)]
async fn of_too_many_breakers_those_that_hold_least_are_dropped() {
    let (set, a) = (BreakerSet::default(), server("a"));
    set.force_open(&a, &tool("forced"));
    fail(&set, &a, &tool("failing"), 1);
    fail(&set, &a, &tool("open"), 3);
    let running = set.circuit(&a, &tool("running")).admit().unwrap();
    for n in 0..12_000 {
        let permit = set.circuit(&a, &tool(format!("well{n}"))).admit().unwrap();
        permit.succeed();
    }
    assert!(keeps(&set, &["failing", "forced", "open", "running"]));
    for n in 0..12_000 {
        fail(&set, &a, &tool(format!("tool{n}")), 1 + n % 2);
    }
    assert!(keeps(&set, &["forced", "open", "running"]));
    // also if all of them are open: those that would be let through first go first
    for n in 0..12_000 {
        fail(&set, &a, &tool(format!("sick{n}")), 3);
        advance(Duration::from_millis(1)).await;
    }
    assert!(keeps(&set, &["forced", "running", "sick11999"]));
    running.fail(&"down");
    let status = set.snapshot();
    let is_running = |one: &&BreakerStatus| one.tool() == Some(&tool("running"));
    assert_eq!(status.iter().find(is_running).unwrap().failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_lists_a_server_before_its_tools() {
    let (set, a, get) = (BreakerSet::default(), server("a"), tool("get"));
    fail(&set, &a, &get, 1);
    let of_server = set.circuit(&a, Subject::Server);
    for _ in 0..5 {
        of_server.admit().unwrap().fail(&"no answer");
    }
    let listed = set.snapshot().into_iter();
    let listed: Vec<_> = listed
        .map(|one| (one.subject.as_str(), one.state, one.time_to_probe))
        .collect();
    let wait = Some(Duration::from_secs(10));
    let (server, tool) = (BreakerState::Open, BreakerState::Closed);
    assert_eq!(listed, [("server", server, wait), ("tool", tool, None)]);
    set.reset_server(&a);
    assert_eq!(of_server.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_servers_that_are_gone_goes_while_permits_still_end() {
    let (set, a, get) = (BreakerSet::default(), server("a"), tool("get"));
    fail(&set, &a, &get, 2);
    let running = set.circuit(&a, &get).admit().unwrap();
    for id in 0..1_000 {
        let gone = server(&format!("gone-{id}"));
        fail(&set, &gone, &get, 1);
        set.force_open(&gone, Subject::Server);
        set.retain_servers(|server| server == &a);
    }
    let left: Vec<_> = set.snapshot().into_iter().map(|one| one.server).collect();
    assert_eq!(left, std::slice::from_ref(&a));

    set.retain_servers(|_| false);
    assert!(set.snapshot().is_empty());
    running.fail(&"too late to count");
    assert!(
        set.circuit(&a, &get).is_available(),
        "an owner that returns starts again"
    );
    fail(&set, &a, &get, 2);
    assert!(set.circuit(&a, &get).is_available());
}
