//! What moves, and what stays.

use callward_router::ExclusionReason;

use crate::affinity::{read_all, sessions};
use crate::bed::{Bed, by, received, server};

fn count(servers: &[String], server: &str) -> usize {
    servers.iter().filter(|s| *s == server).count()
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_session_go_to_one_server_and_sessions_spread() {
    let bed = sessions("a b c d");
    let homes = read_all(&bed, 400);
    assert_eq!(read_all(&bed, 400), homes);
    for server in ["a", "b", "c", "d"] {
        assert!((60..140).contains(&count(&homes, server)), "{homes:?}");
    }
    // a router that knows nothing of this one chooses alike
    assert_eq!(read_all(&sessions("d c b a"), 400), homes);
    // and no key moves while all servers are sick
    for server in ["a", "b", "c", "d"] {
        bed.spoil(server, ExclusionReason::Unreachable);
    }
    assert_eq!(read_all(&bed, 400), homes);
}

#[tokio::test(start_paused = true)]
async fn a_joining_server_or_a_new_weight_moves_no_key_in_use() {
    let bed = sessions("a b c");
    let homes = read_all(&bed, 200);
    // the heaviest comes first, so all others stand elsewhere than before
    bed.set_servers("a b c d=100");
    assert_eq!(read_all(&bed, 200), homes);
    let new = read_all(&bed, 1200).split_off(200);
    // two fifths of a thousand, give or take four sigmas
    let found = count(&new, "d");
    assert!((338..462).contains(&found), "{found}");
    bed.set_servers("a=10 b c=100 d");
    assert_eq!(read_all(&bed, 200), homes);
}

/// Checks that `lose` moves the keys of `b` and no others, over all servers that are left, and
/// returns where they are.
fn loses(bed: &Bed, before: &[String], lose: impl FnOnce()) -> Vec<String> {
    lose();
    let after = read_all(bed, before.len());
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
    let removes: Act = |bed| bed.set_servers("a c d");
    let adds: Act = |bed| bed.set_servers("a b c d");
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
        let bed = sessions("a b c d");
        let homes = read_all(&bed, 400);
        let after = loses(&bed, &homes, || lose(&bed));
        restore(&bed);
        assert_eq!(read_all(&bed, 400), after, "{how}");
        // new ones find it
        assert!(count(&read_all(&bed, 800)[400..], "b") > 50, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_preview_remembers_nothing() {
    let bed = sessions("a b c d");
    let mut listener = bed.pool.events().listen();
    let call = by(0, "read");
    let order = bed.order(&call);
    assert_eq!(order.len(), 4);
    assert_eq!(bed.router.explain(&call).chosen, Some(server(&order[0])));
    assert!(received(&mut listener).is_empty());
    assert_eq!(bed.decide(&call), order[0]);
    bed.spoil(&order[0], ExclusionReason::BreakerOpen);
    assert_eq!(bed.decide(&call), order[1]);
}
