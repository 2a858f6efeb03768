//! The cache beside LRU, on generated requests.

use callward_replay::{Capacity, Comparison, Policy};

use crate::workload;

/// The cache may be at most one point below LRU.
const LEAST_GAP: f64 = -0.01;

#[test]
fn generated_requests_are_not_below_lru() {
    let capacities = [32, 256].map(Capacity::Entries);
    for (name, trace) in workload::all(6_000, 11) {
        let policies = [Policy::Lru, Policy::Callward];
        let found = Comparison::of(&trace, &capacities, &policies).unwrap();
        let gap = found.gap(Policy::Lru).unwrap();
        assert!(gap.worst >= LEAST_GAP, "{name}: {gap}\n{}", found.grid());
        for figures in &found.figures {
            let (most, bound) = (figures.most_kept, figures.capacity.amount());
            // the store keeps a few entries for readmission
            assert!(most <= bound + bound / 8 + 4, "{name}: {figures:?}");
        }
    }
}
