//! What moves, and what stays.

use callward_router::ExclusionReason;

use crate::affinity::bed::{Bed, FOUR, by, read};
use crate::bed::server;

fn count(servers: &[String], server: &str) -> usize {
    servers.iter().filter(|s| *s == server).count()
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_session_go_to_one_server_and_sessions_spread() {
    let bed = Bed::new(&FOUR);
    let homes = bed.read_all(400);
    assert_eq!(bed.read_all(400), homes);
    for (server, _) in FOUR {
        assert!((60..140).contains(&count(&homes, server)), "{homes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn routers_that_know_nothing_of_each_other_choose_alike() {
    let mut reversed = FOUR;
    reversed.reverse();
    assert_eq!(
        Bed::new(&FOUR).read_all(100),
        Bed::new(&reversed).read_all(100)
    );
}

#[tokio::test(start_paused = true)]
async fn a_joining_server_moves_no_key_in_use_and_gets_new_ones() {
    let bed = Bed::new(&FOUR[..3]);
    let homes = bed.read_all(200);
    // the heaviest comes first, so all others stand elsewhere than before
    bed.set_servers(&[("a", 50), ("b", 50), ("c", 50), ("d", 100)]);
    assert_eq!(bed.read_all(200), homes);
    let new = bed.read_all(1200).split_off(200);
    // two fifths of a thousand, give or take four sigmas
    let found = count(&new, "d");
    assert!((338..462).contains(&found), "{found}");
}

#[tokio::test(start_paused = true)]
async fn a_new_weight_moves_no_key_in_use() {
    let bed = Bed::new(&FOUR);
    let homes = bed.read_all(200);
    bed.set_servers(&[("a", 10), ("b", 50), ("c", 100), ("d", 50)]);
    assert_eq!(bed.read_all(200), homes);
}

#[tokio::test(start_paused = true)]
async fn among_servers_of_a_preferred_category_keys_stay_too() {
    let bed = Bed::new(&[("a", 50), ("cache1", 50), ("cache2", 50)]);
    let set = callward_testkit::tool("set").idempotent().build();
    let all = || -> Vec<String> {
        let call = |n: usize| by(&n.to_string(), &set);
        (0..100).map(|n| bed.decide(&call(n))).collect()
    };
    let homes = all();
    assert!(homes.iter().all(|home| home.starts_with("cache")));
    let others = [("cache0", 100), ("b", 50)].into_iter();
    let others = others.chain([("a", 50), ("cache1", 50), ("cache2", 50)]);
    bed.set_servers(&others.collect::<Vec<_>>());
    assert_eq!(all(), homes);
    assert_eq!(bed.read_all(100), homes, "no matter what is called");
}

/// Checks that `lose` moves the keys of `b` and no others, over all servers that are left, and
/// returns where they are.
fn loses(bed: &Bed, before: &[String], lose: impl FnOnce()) -> Vec<String> {
    lose();
    let after = bed.read_all(before.len());
    for (before, after) in before.iter().zip(&after) {
        assert!(after != "b" && (before == "b" || before == after));
    }
    let pairs = before.iter().zip(&after);
    let moved = pairs.filter(|(before, _)| *before == "b");
    let moved: Vec<String> = moved.map(|(_, after)| after.clone()).collect();
    for server in ["a", "c", "d"] {
        // a third of them, roughly
        let share = count(&moved, server) * 3;
        let about_a_third = moved.len() / 2..moved.len() * 2;
        assert!(about_a_third.contains(&share), "{moved:?}");
    }
    after
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_a_lost_server_spread_over_the_others_and_stay() {
    type Act = fn(&Bed);
    let removes: Act = |bed| bed.set_servers(&[("a", 50), ("c", 50), ("d", 50)]);
    let adds: Act = |bed| bed.set_servers(&FOUR);
    let drains: Act = |bed| drop(bed.pool.drain(&server("b")));
    let undrains: Act = |bed| bed.pool.undrain(&server("b")).unwrap();
    let loses_it: Act = |bed| bed.spoil("b", ExclusionReason::Unreachable);
    let gate_drains: Act = |bed| bed.spoil("b", ExclusionReason::Draining);
    let heals: Act = |bed| bed.heal("b");
    for (how, lose, restore) in [
        ("removed", removes, adds),
        ("drained", drains, undrains),
        ("unreachable", loses_it, heals),
        ("drained, by its gate", gate_drains, heals),
    ] {
        let bed = Bed::new(&FOUR);
        let homes = bed.read_all(400);
        let after = loses(&bed, &homes, || lose(&bed));
        restore(&bed);
        assert_eq!(bed.read_all(400), after, "{how}");
        // new ones find it
        assert!(count(&bed.read_all(800)[400..], "b") > 50, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_key_moves_while_all_servers_are_sick() {
    let bed = Bed::new(&FOUR);
    let homes = bed.read_all(100);
    for (server, _) in FOUR {
        bed.spoil(server, ExclusionReason::Unreachable);
    }
    assert_eq!(bed.read_all(100), homes);
    FOUR.iter().for_each(|(server, _)| bed.heal(server));
    assert_eq!(bed.read_all(100), homes);
}

#[tokio::test(start_paused = true)]
async fn a_preview_remembers_nothing() {
    let bed = Bed::new(&FOUR);
    let call = read("0");
    let order: Vec<String> = bed
        .router
        .candidates(&call)
        .map(|endpoint| endpoint.server().to_string())
        .collect();
    assert_eq!(order.len(), 4);
    assert_eq!(bed.strategy.held(), 0);
    assert!(bed.observed.take().is_empty());
    assert_eq!(bed.decide(&call), order[0]);
    bed.spoil(&order[0], ExclusionReason::BreakerOpen);
    assert_eq!(bed.decide(&call), order[1]);
}
