//! Writes and readers on one clock, step by step.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::group::Group;
use super::*;
use crate::settling::Settling;

const SETTLING: Duration = Duration::from_secs(60);

const LOST: Settling = Settling {
    unsettled: SETTLING,
    doubtful: SETTLING.saturating_mul(2),
};

fn set<const N: usize>(scopes: [Arc<Scope>; N]) -> ScopeSet {
    let mut set = ScopeSet::default();
    for scope in scopes {
        set.add(&scope);
    }
    set
}

struct Bench {
    scopes: Scopes,
    group: Group,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            scopes: Scopes::new(now),
            group: ScopeRules::default().group(&"test".parse().unwrap()),
            now,
        }
    }

    fn named(&self, name: &str) -> Arc<Scope> {
        self.scopes.named(&self.group, name)
    }

    fn any(&self) -> Arc<Scope> {
        self.scopes.group(&self.group).any.clone()
    }

    fn wide(&self) -> Arc<Scope> {
        self.scopes.group(&self.group).wide.clone()
    }

    /// A write without a rule.
    fn write(&self) -> WriteGuard {
        self.write_at(self.now)
    }

    fn write_at(&self, now: Instant) -> WriteGuard {
        let began = self.scopes.at(now);
        let write_set = set([self.any(), self.wide()]);
        WriteGuard::begin(write_set, Some(&set([self.any()])), began)
    }

    /// A write whose rule names one scope.
    fn write_named(&self, name: &str) -> WriteGuard {
        let began = self.scopes.at(self.now);
        let write_set = set([self.any(), self.named(name)]);
        let repeat_set = set([self.wide(), self.named(name)]);
        WriteGuard::begin(write_set, Some(&repeat_set), began)
    }

    fn look(&self, at: Instant) -> Result<Vec<u64>, WriteConflict> {
        epochs(&set([self.any()]), self.scopes.at(at)).map(|epochs| epochs.to_vec())
    }

    fn look_named(&self, name: &str) -> Result<Vec<u64>, WriteConflict> {
        let read_set = set([self.wide(), self.named(name)]);
        epochs(&read_set, self.scopes.at(self.now)).map(|epochs| epochs.to_vec())
    }
}

#[test]
fn a_write_is_a_new_epoch_when_sent_and_another_when_answered() {
    let bench = Bench::new();
    let before = bench.look(bench.now).unwrap();
    let write = bench.write();
    assert_eq!(bench.look(bench.now), Err(WriteConflict::Writing));
    assert!(!are_current(&set([bench.any()]), &before));
    let produced = write.end(Settling::DONE, bench.now).unwrap();
    assert_eq!(produced.to_vec(), [before[0] + 2]);
    assert_eq!(bench.look(bench.now).unwrap(), produced.to_vec());
}

#[test]
fn overlapping_writes_have_no_epoch_of_their_own() {
    for first_ends_first in [true, false] {
        let bench = Bench::new();
        let (first, second) = (bench.write(), bench.write());
        let (one, other) = if first_ends_first {
            (first, second)
        } else {
            (second, first)
        };
        assert_eq!(one.end(Settling::DONE, bench.now), None);
        assert_eq!(bench.look(bench.now), Err(WriteConflict::Writing));
        assert_eq!(other.end(Settling::DONE, bench.now), None);
        assert!(bench.look(bench.now).is_ok());
    }
}

#[test]
fn a_purge_in_between_leaves_nothing_to_keep() {
    let bench = Bench::new();
    let write = bench.write();
    bench.scopes.raise_all();
    assert_eq!(write.end(Settling::DONE, bench.now), None);
    let write = bench.write_named("a");
    bench.scopes.raise_named("a");
    assert_eq!(write.end(Settling::DONE, bench.now), None);
}

#[test]
fn a_write_that_may_land_conflicts_with_reads_until_it_settles() {
    let bench = Bench::new();
    let write = bench.write();
    assert_eq!(write.end(LOST, bench.now), None);
    let almost = bench.now + SETTLING - Duration::from_nanos(1);
    assert_eq!(bench.look(almost), Err(WriteConflict::Settling));
    assert!(bench.look(bench.now + SETTLING).is_ok());
    // sent before the other one had settled: it may be overwritten after its own answer
    let write = bench.write_at(almost);
    assert_eq!(write.end(Settling::DONE, bench.now + SETTLING), None);
}

#[test]
fn scopes_are_doubtful_once_an_unsettled_write_has_settled() {
    let bench = Bench::new();
    let write = bench.write();
    assert_eq!(write.end(LOST, bench.now), None);
    let written = set([bench.any()]);
    let doubted = |at| are_doubtful(&written, bench.scopes.at(at));
    assert!(doubted(bench.now + 2 * SETTLING - Duration::from_nanos(1)));
    assert!(!doubted(bench.now + 2 * SETTLING));
    for (at, is_doubtful) in [(SETTLING, true), (2 * SETTLING, false)] {
        let at = bench.now + at;
        // its repeat would not be sent, though the one that lands undoes it
        let produced = bench.write_at(at).end(Settling::DONE, at);
        assert_eq!(produced.is_none(), is_doubtful);
    }
}

#[test]
fn an_endless_settling_time_does_not_overflow() {
    let bench = Bench::new();
    let now = bench.scopes.at(bench.now);
    let write = WriteGuard::begin(set([bench.any()]), None, now);
    let endless = Settling {
        unsettled: Duration::MAX,
        doubtful: Duration::MAX,
    };
    assert_eq!(write.end(endless, bench.now), None);
    assert_eq!(
        bench.look(bench.now + SETTLING),
        Err(WriteConflict::Settling)
    );
}

#[test]
fn a_write_with_a_rule_meets_reads_of_that_name_and_reads_without_rules() {
    let bench = Bench::new();
    let (a, b) = (
        bench.look_named("a").unwrap(),
        bench.look_named("b").unwrap(),
    );
    let any = bench.look(bench.now).unwrap();
    let write = bench.write_named("a");
    assert_eq!(bench.look_named("a"), Err(WriteConflict::Writing));
    assert_eq!(bench.look(bench.now), Err(WriteConflict::Writing));
    assert_eq!(bench.look_named("b").unwrap(), b);
    let produced = write.end(Settling::DONE, bench.now).unwrap();
    assert_eq!(bench.look_named("a").unwrap(), produced.to_vec());
    assert_ne!(produced.to_vec(), a);
    assert_eq!(bench.look_named("b").unwrap(), b);
    assert_ne!(bench.look(bench.now).unwrap(), any);
}

#[test]
fn a_write_without_a_rule_meets_everything() {
    let bench = Bench::new();
    let b = bench.look_named("b").unwrap();
    let write = bench.write();
    assert_eq!(bench.look_named("b"), Err(WriteConflict::Writing));
    write.end(Settling::DONE, bench.now).unwrap();
    assert_ne!(bench.look_named("b").unwrap(), b);
}

#[test]
fn a_write_with_a_rule_overlaps_with_its_name_and_wide_writes_alone() {
    let bench = Bench::new();
    let ours = bench.write_named("a");
    let other = bench.write_named("b");
    assert!(other.end(Settling::DONE, bench.now).is_some());
    assert!(ours.end(Settling::DONE, bench.now).is_some());

    // a wide write around, across the end, across the beginning, and within
    let wide = bench.write();
    let ours = bench.write_named("a");
    assert_eq!(ours.end(Settling::DONE, bench.now), None);
    let ours = bench.write_named("a");
    assert!(wide.end(Settling::DONE, bench.now).is_none());
    assert_eq!(ours.end(Settling::DONE, bench.now), None);
    let ours = bench.write_named("a");
    let wide = bench.write();
    assert_eq!(ours.end(Settling::DONE, bench.now), None);
    drop(wide.end(Settling::DONE, bench.now));
    let ours = bench.write_named("a");
    drop(bench.write().end(Settling::DONE, bench.now));
    assert_eq!(ours.end(Settling::DONE, bench.now), None);
    assert!(
        bench
            .write_named("a")
            .end(Settling::DONE, bench.now)
            .is_some()
    );
}

#[test]
fn a_scope_named_twice_is_entered_once() {
    let bench = Bench::new();
    let began = bench.scopes.at(bench.now);
    let twice = set([bench.named("a"), bench.named("a")]);
    let write = WriteGuard::begin(twice, Some(&set([bench.named("a")])), began);
    assert!(write.end(Settling::DONE, bench.now).is_some());
}

#[test]
fn a_write_whose_result_is_not_kept_raises_epochs_too() {
    let bench = Bench::new();
    let begin = || {
        let now = bench.scopes.at(bench.now);
        WriteGuard::begin(set([bench.any(), bench.wide()]), None, now)
    };
    let before = bench.look(bench.now).unwrap();
    let write = begin();
    assert_eq!(bench.look(bench.now), Err(WriteConflict::Writing));
    assert_eq!(bench.look_named("a"), Err(WriteConflict::Writing));
    assert!(write.end(Settling::DONE, bench.now).is_none());
    assert_eq!(bench.look(bench.now).unwrap(), [before[0] + 2]);
    assert!(bench.look_named("a").is_ok());
    assert!(begin().end(LOST, bench.now).is_none());
    assert_eq!(bench.look(bench.now), Err(WriteConflict::Settling));
}
