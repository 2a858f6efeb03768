//! The outages of `benches/metastable`, in a smaller world: what the stack promises of them.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test may panic, and its numbers are small"
)]

use std::sync::LazyLock;
use std::time::Duration;

use crate::clients::Run;
use crate::figures::Figures;
use crate::policies::Policy;
use crate::world::{Outage, Size};

#[path = "../../benches/metastable/clients.rs"]
mod clients;
#[path = "../../benches/metastable/figures.rs"]
mod figures;
#[path = "../../benches/metastable/policies.rs"]
mod policies;
#[path = "../../benches/metastable/world.rs"]
mod world;

const SIZE: Size = Size {
    sets: 4,
    replicas: 3,
    workers: 2,
    clients: 500,
    load: 0.6,
    quiet: Duration::from_secs(5),
    outage: Duration::from_secs(45),
    // a third of it is seen after the longest time that a breaker may still be open
    after: Duration::from_secs(105),
};
const SEED: u64 = 7;

fn run(policy: Policy, outage: Option<Outage>) -> Run {
    Run::new(&SIZE, outage, policy, SEED, &mut |_| {})
}

fn figures(policy: Policy, outage: Outage) -> Figures {
    Figures::of(&run(policy, Some(outage)), outage)
}

/// What ours makes of an outage, run once for all tests.
fn ours(outage: Outage) -> &'static Figures {
    static PARTIAL: LazyLock<Figures> = LazyLock::new(|| figures(Policy::Ours, Outage::Partial));
    static TOTAL: LazyLock<Figures> = LazyLock::new(|| figures(Policy::Ours, Outage::Total));
    match outage {
        Outage::Partial => &PARTIAL,
        Outage::Total => &TOTAL,
    }
}

/// What becomes of calls that are never repeated where servers are slow.
fn once() -> &'static Figures {
    static ONCE: LazyLock<Figures> = LazyLock::new(|| figures(Policy::NoRetry, Outage::Partial));
    &ONCE
}

#[test]
fn an_outage_of_all_servers_of_a_set_is_not_made_worse_and_ends_by_itself() {
    let found = ours(Outage::Total);
    let once = figures(Policy::NoRetry, Outage::Total);
    assert!(once.answered_during < 0.01, "not an outage: {once:?}");
    // of those that wait, the last are answered when it is over
    assert!(found.answered_during < 0.05, "not an outage: {found:?}");
    assert!(found.amplification <= 1.25, "{found:?}");
    assert!(found.amplification_after <= 1.25, "{found:?}");
    let recovered = found.recovered_after_secs.expect("no operator is needed");
    // seconds are counted whole
    let open = found.open_secs.expect("the breakers are open") + 1.0;
    assert!(recovered <= open, "{recovered} s, but open for {open} s");
    assert!(found.answered_at_last > 0.999, "{found:?}");
}

#[test]
fn servers_that_are_well_answer_as_fast_as_if_all_were() {
    let quiet = run(Policy::Ours, None);
    for outage in Outage::ALL {
        let undisturbed = Figures::of(&quiet, outage);
        let found = ours(outage);
        let limit = undisturbed.neighbours_p99_ms * 1.1;
        assert!(found.neighbours_p99_ms <= limit, "{found:?}, not {limit}");
        assert!(found.others_failed < 0.001, "{found:?}");
    }
}

#[test]
fn servers_that_were_slow_for_a_while_are_not_kept_busy_for_ever() {
    let found = ours(Outage::Partial);
    let once = once();
    assert!(
        found.answered_during > 0.9 * once.answered_during,
        "{found:?}, not {once:?}"
    );
    assert!(found.amplification <= 1.25, "{found:?}");
    assert!(found.amplification_after <= 1.25, "{found:?}");
    assert!(found.recovered_after_secs.is_some(), "{found:?}");
    assert!(found.answered_at_last > 0.999, "{found:?}");
}

/// Or the three tests above would say nothing.
#[test]
fn repeating_whatever_failed_is_told_apart() {
    let total = figures(Policy::Naive, Outage::Total);
    assert!(total.amplification > 2.5, "{total:?}");
    let partial = figures(Policy::Naive, Outage::Partial);
    assert_eq!(partial.recovered_after_secs, None, "{partial:?}");
    assert!(partial.answered_at_last < 0.7, "{partial:?}");
    let once = once();
    assert!(once.answered_at_last > 0.999, "{once:?}");
}
