//! What moves, and what stays.

use callward_router::ExclusionReason;

use crate::bed::Bed;

const FOUR: [(&str, u32); 4] = [("a", 50), ("b", 50), ("c", 50), ("d", 50)];

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
    assert!(
        (338..462).contains(&count(&new, "d")),
        "{}",
        count(&new, "d")
    );
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
        let call = |n: usize| crate::bed::by(&n.to_string(), &set);
        (0..100).map(|n| bed.decide(&call(n))).collect()
    };
    let homes = all();
    assert!(homes.iter().all(|home| home.starts_with("cache")));
    bed.set_servers(&[
        ("cache0", 100),
        ("a", 50),
        ("b", 50),
        ("cache1", 50),
        ("cache2", 50),
    ]);
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
    let moved: Vec<String> = before
        .iter()
        .zip(&after)
        .filter(|(before, _)| *before == "b")
        .map(|(_, after)| after.clone())
        .collect();
    for server in ["a", "c", "d"] {
        // a third of them, roughly
        let share = count(&moved, server) * 3;
        assert!(
            share > moved.len() / 2 && share < moved.len() * 2,
            "{moved:?}"
        );
    }
    after
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_a_server_that_is_removed_spread_over_the_others() {
    let bed = Bed::new(&FOUR);
    let homes = bed.read_all(400);
    let after = loses(&bed, &homes, || {
        bed.set_servers(&[("a", 50), ("c", 50), ("d", 50)]);
    });
    bed.set_servers(&FOUR);
    assert_eq!(bed.read_all(400), after);
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_a_server_that_is_drained_move_and_stay() {
    let bed = Bed::new(&FOUR);
    let homes = bed.read_all(400);
    let b = crate::bed::server("b");
    let after = loses(&bed, &homes, || drop(bed.pool.drain(&b)));
    bed.pool.undrain(&b).unwrap();
    assert_eq!(bed.read_all(400), after);
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_a_server_that_is_sick_for_a_while_move_and_stay() {
    for flaw in [ExclusionReason::Unreachable, ExclusionReason::Draining] {
        let bed = Bed::new(&FOUR);
        let homes = bed.read_all(400);
        let after = loses(&bed, &homes, || bed.spoil("b", flaw));
        bed.heal("b");
        assert_eq!(bed.read_all(400), after);
        // new ones find it
        assert!(count(&bed.read_all(800)[400..], "b") > 50);
    }
}

#[tokio::test(start_paused = true)]
async fn where_all_are_sick_nobody_moves() {
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
async fn a_key_is_ranked_by_the_weights() {
    let bed = Bed::new(&[("light", 20), ("heavy", 80)]);
    let homes = bed.read_all(2_000);
    // a fifth of two thousand, give or take four sigmas
    assert!((329..471).contains(&count(&homes, "light")));
}

#[tokio::test(start_paused = true)]
async fn looking_what_would_be_chosen_remembers_nothing() {
    let bed = Bed::new(&FOUR);
    let call = crate::bed::read("0");
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
