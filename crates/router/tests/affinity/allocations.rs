//! A choice for a key that is known allocates nothing.

use callward_core::ToolCall;
use callward_router::Unfit;
use callward_router::affinity::{AffinityConfig, AffinityKey};

use crate::bed::{Bed, destroy, read};

fn count(bed: &Bed, call: &ToolCall) -> u64 {
    let info = allocation_counter::measure(|| {
        assert!(bed.router.decide(call).is_some());
    });
    info.count_total
}

#[tokio::test(start_paused = true)]
async fn a_known_key_allocates_nothing() {
    for by in [
        AffinityKey::Session,
        AffinityKey::User,
        "/id".parse().unwrap(),
    ] {
        let config = AffinityConfig::default().with_by(by);
        let bed = Bed::with(&config, &[("a", 50), ("b", 50), ("c", 20)]);
        let call = read("1");
        bed.decide(&call);
        for _ in 0..3 {
            assert_eq!(count(&bed, &call), 0, "{config:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_detour_allocates_nothing() {
    let bed = Bed::new(&[("a", 50), ("b", 50), ("c", 20)]);
    let calls = [read("1"), destroy("1")];
    let home = bed.decide(&calls[0]);
    bed.spoil(&home, Unfit::BreakerOpen);
    for call in &calls {
        bed.decide(call);
        assert_eq!(count(&bed, call), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn ranking_all_for_a_key_that_is_known_to_nobody_allocates_nothing_but_its_entry() {
    let bed = Bed::new(&[("a", 50), ("b", 50), ("c", 20)]);
    // room in the table's list and map
    (0..2_000).for_each(|n| drop(bed.read(&n.to_string())));
    let counts: Vec<u64> = (2_000..2_020)
        .map(|n| count(&bed, &read(&n.to_string())))
        .collect();
    // what grows now and then, and the observer's own list
    assert!(counts.iter().sum::<u64>() < 20, "{counts:?}");
}
