//! The cache beside LRU and the optimum: on generated requests, and on recorded ones where they
//! exist beside the repository.

use std::path::{Path, PathBuf};

use callward_replay::{Capacity, Comparison, KeyTrace, Policy};

use crate::workload::Workload;

/// The cache may be at most one point below LRU.
const LEAST_GAP: f64 = -0.01;

fn compared(trace: &KeyTrace, capacities: &[u64], policies: &[Policy]) -> Comparison {
    let capacities: Vec<_> = capacities.iter().copied().map(Capacity::Entries).collect();
    Comparison::of(trace, &capacities, policies, &|_, _| ()).unwrap()
}

fn is_not_below_lru(name: &str, trace: &KeyTrace, capacities: &[u64]) {
    let policies = [Policy::Lru, Policy::Callward];
    let found = compared(trace, capacities, &policies);
    let gap = found.gap(Policy::Lru).unwrap();
    assert!(gap.worst >= LEAST_GAP, "{name}: {gap}\n{}", found.grid());
    for figures in &found.figures {
        let (most, bound) = (figures.most_kept, figures.capacity.amount());
        // the store keeps a few entries for readmission
        assert!(most <= bound + bound / 8 + 4, "{name}: {figures:?}");
    }
}

#[test]
fn generated_requests_are_not_below_lru() {
    for workload in Workload::ALL {
        let trace = workload.keys(6_000, 11);
        is_not_below_lru(&workload.name(), &trace, &[32, 256]);
    }
}

/// Recorded requests beside the repository: files of keys, and a table of the hit rates of LRU and
/// the optimum.
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
fn recorded_requests_are_not_below_lru() {
    let Some(there) = recorded() else { return };
    for rows in rows(&there).chunk_by(|one, two| one.name == two.name) {
        let Row { name, requests, .. } = &rows[0];
        // the cache is slow without optimisation
        if *requests > 40_000 {
            continue;
        }
        let trace = KeyTrace::read(&there.join(format!("{name}.keys.gz"))).unwrap();
        let capacities: Vec<_> = rows.iter().map(|row| row.capacity).step_by(3).collect();
        is_not_below_lru(name, &trace, &capacities);
    }
}

#[test]
fn lru_and_belady_match_reference_figures() {
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
