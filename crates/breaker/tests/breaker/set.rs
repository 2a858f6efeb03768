//! What the router asks of a set, and what operators do to it.

use callward_breaker::{BreakerSet, BreakerState, BreakerStatus, Subject};
use callward_core::{ServerId, ToolName};
use tokio::time::advance;

use crate::bed::{of, secs, server};

fn tool(name: impl AsRef<str>) -> ToolName {
    ToolName::new(name).unwrap()
}

fn fail(set: &BreakerSet, server: &ServerId, subject: impl Into<Subject>, times: usize) {
    let circuit = set.circuit(server, subject);
    for _ in 0..times {
        circuit.admit().unwrap().fail(&"connection refused");
    }
}

#[tokio::test(start_paused = true)]
async fn asking_who_is_available_takes_no_probe() {
    let (set, a) = (BreakerSet::default(), server("a"));
    let get = set.circuit(&a, &tool("get"));
    assert!(get.is_available(), "never called");
    fail(&set, &a, &tool("get"), 3);
    assert!(!get.is_available());
    advance(secs(30)).await;
    for _ in 0..10 {
        assert!(get.is_available());
    }
    let probe = get.admit().unwrap();
    assert!(!get.is_available(), "the one place is taken");
    probe.succeed();
    assert!(get.is_available());
    // a lost connection makes a server unavailable, and refuses no call
    get.set_connected(false);
    let lost = Err(BreakerState::Disconnected);
    assert_eq!(set.availability(&a, &of("get")), lost);
    drop(get.admit().unwrap());
    get.set_connected(true);
    assert_eq!(set.availability(&a, &of("get")), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_reset_closes_the_breakers_of_that_server_only() {
    let (set, get, put) = (BreakerSet::default(), tool("get"), tool("put"));
    let (a, b) = (server("a"), server("b"));
    let old = set.circuit(&a, &get).admit().unwrap();
    for (server, tool) in [(&a, &get), (&a, &put), (&b, &get)] {
        fail(&set, server, tool, 3);
    }
    set.reset_server(&a);
    old.fail(&"a call over the old connection");
    assert!(set.circuit(&a, &get).is_available() && set.circuit(&a, &put).is_available());
    assert!(!set.circuit(&b, &get).is_available());
    // as new: it takes three failures again, and the open time starts over
    fail(&set, &a, &get, 2);
    assert!(set.circuit(&a, &get).is_available());
    fail(&set, &a, &get, 1);
    assert_eq!(set.snapshot()[0].time_to_probe, Some(secs(30)));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_lists_each_server_before_its_tools() {
    let (set, a, b) = (BreakerSet::default(), server("a"), server("b"));
    fail(&set, &b, &tool("get"), 2);
    fail(&set, &a, &tool("get"), 3);
    fail(&set, &a, Subject::Server, 5);
    advance(secs(10)).await;
    let shown: Vec<_> = set.snapshot();
    let of = |one: &BreakerStatus| {
        let wait = one.time_to_probe.map(|wait| wait.as_secs());
        let trip = one.last_trip.as_deref().unwrap_or("none").to_owned();
        let subject = one.subject.as_str();
        let name = format!("{} {subject}: {} {}", one.server, one.state, one.failures);
        (name, wait, trip)
    };
    let trip = |failures| format!("{failures} failures in a row, the last: connection refused");
    let expected = [
        ("a server: open 0".to_owned(), Some(0), trip(5)),
        ("a tool: open 0".to_owned(), Some(20), trip(3)),
        ("b tool: closed 2".to_owned(), None, "none".to_owned()),
    ];
    assert_eq!(shown.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(shown[1].subject.tool(), Some(&tool("get")));
}

#[tokio::test(start_paused = true)]
async fn an_operators_word_holds_until_released() {
    let (set, a, get) = (BreakerSet::default(), server("a"), tool("get"));
    set.force_open(&a, &get);
    set.reset_server(&a);
    advance(secs(100_000)).await;
    assert!(!set.circuit(&a, &get).is_available());
    let rejection = set.circuit(&a, &get).admit().unwrap_err().to_string();
    assert!(rejection.contains("an operator holds its breaker open"));

    set.force_closed(&a, &get);
    fail(&set, &a, &get, 10);
    assert_eq!(set.snapshot()[0].state, BreakerState::ForcedClosed);

    set.release(&a, &get);
    fail(&set, &a, &get, 3);
    assert_eq!(set.snapshot()[0].state, BreakerState::Open);
}

/// Returns `true` if the set is within its bound and has all of these.
fn keeps(set: &BreakerSet, names: &[&str]) -> bool {
    let all = set.snapshot();
    let has = |name| {
        all.iter()
            .any(|one| one.subject.tool() == Some(&tool(name)))
    };
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
        advance(secs(1) / 1000).await;
    }
    assert!(keeps(&set, &["forced", "running", "sick11999"]));
    running.fail(&"down");
    let status = set.snapshot();
    let is_running = |one: &&BreakerStatus| one.subject.tool() == Some(&tool("running"));
    assert_eq!(status.iter().find(is_running).unwrap().failures, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_servers_that_are_gone_goes_while_permits_still_end() {
    let (set, a, get) = (BreakerSet::default(), server("a"), tool("get"));
    fail(&set, &a, &get, 2);
    let running = set.circuit(&a, &get).admit().unwrap();
    let gone = server("gone");
    fail(&set, &gone, &get, 1);
    set.force_open(&gone, Subject::Server);
    set.retain_servers(|server| server == &a);
    let left: Vec<_> = set.snapshot().into_iter().map(|one| one.server).collect();
    assert_eq!(left, std::slice::from_ref(&a));

    set.retain_servers(|_| false);
    assert!(set.snapshot().is_empty());
    running.fail(&"too late to count");
    // a server that returns starts again
    fail(&set, &a, &get, 2);
    assert!(set.circuit(&a, &get).is_available());
}
