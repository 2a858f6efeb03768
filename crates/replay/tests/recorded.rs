//! The cache next to least recently used and the optimum: on requests made from a seed, and on
//! recorded ones where they are there.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

use std::path::{Path, PathBuf};

use callward_replay::{Capacity, Comparison, KeyTrace, Policy, Workload};

/// Nowhere may the cache be further below least recently used than one point.
const FURTHEST: f64 = -0.01;

fn compared(trace: &KeyTrace, capacities: &[u64], policies: &[Policy]) -> Comparison {
    let capacities: Vec<_> = capacities.iter().copied().map(Capacity::Entries).collect();
    Comparison::of(trace, &capacities, policies, &|_, _| ()).unwrap()
}

fn holds_its_own(name: &str, trace: &KeyTrace, capacities: &[u64]) {
    let policies = [Policy::Lru, Policy::Callward];
    let found = compared(trace, capacities, &policies);
    let gap = found.gap(Policy::Lru).unwrap();
    assert!(gap.worst >= FURTHEST, "{name}: {gap}\n{}", found.grid());
    for figures in &found.figures {
        let (most, bound) = (figures.most_kept, figures.capacity.amount());
        // the store lets a few entries wait between two lives
        assert!(most <= bound + bound / 8 + 4, "{name}: {figures:?}");
    }
}

#[test]
fn made_requests_are_answered_as_well_as_by_least_recently_used() {
    for workload in Workload::ALL {
        let trace = workload.keys(6_000, 11);
        holds_its_own(&workload.name(), &trace, &[32, 256]);
    }
}

/// Recorded requests beside the repository: a file of keys each, and a table of what least recently
/// used and the optimum reach with them.
fn recorded() -> Option<PathBuf> {
    let there = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/cache-traces");
    there.join("hitrates.csv").is_file().then_some(there)
}

/// One line of the table.
#[derive(Debug, Clone)]
struct Row {
    name: String,
    requests: u64,
    capacity: u64,
    lru: f64,
    belady: f64,
}

/// The rows of recordings that a build without optimisation replays in seconds.
fn rows(there: &Path) -> Vec<Row> {
    let table = std::fs::read_to_string(there.join("hitrates.csv")).unwrap();
    let rows = table.lines().skip(1).map(|line| {
        let cells: Vec<_> = line.split(',').collect();
        Row {
            name: cells[0].to_owned(),
            requests: cells[1].parse().unwrap(),
            capacity: cells[3].parse().unwrap(),
            lru: cells[4].parse().unwrap(),
            belady: cells[5].parse().unwrap(),
        }
    });
    rows.filter(|row| row.requests < 100_000).collect()
}

#[test]
fn recorded_requests_are_answered_as_well_as_by_least_recently_used() {
    let Some(there) = recorded() else { return };
    for rows in rows(&there).chunk_by(|one, two| one.name == two.name) {
        let Row { name, requests, .. } = &rows[0];
        // the cache itself takes its time without optimisation
        if *requests > 40_000 {
            continue;
        }
        let trace = KeyTrace::read(&there.join(format!("{name}.keys.gz"))).unwrap();
        let capacities: Vec<_> = rows.iter().map(|row| row.capacity).step_by(3).collect();
        holds_its_own(name, &trace, &capacities);
    }
}

#[test]
fn least_recently_used_and_the_optimum_are_what_others_found() {
    let Some(there) = recorded() else { return };
    let rows = rows(&there);
    assert!(!rows.is_empty());
    for rows in rows.chunk_by(|one, two| one.name == two.name) {
        let name = &rows[0].name;
        let trace = KeyTrace::read(&there.join(format!("{name}.keys.gz"))).unwrap();
        let capacities: Vec<_> = rows.iter().map(|row| row.capacity).collect();
        let found = compared(&trace, &capacities, &[Policy::Lru, Policy::Belady]);
        for row in rows {
            for (policy, want) in [(Policy::Lru, row.lru), (Policy::Belady, row.belady)] {
                let capacity = Capacity::Entries(row.capacity);
                let found = found.find(policy, capacity).unwrap().hit_rate;
                // the table has six decimals
                assert!((found - want).abs() < 1e-6, "{policy}: {found}, {row:?}");
            }
        }
    }
}
