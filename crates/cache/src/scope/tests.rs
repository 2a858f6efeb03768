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
        self.write_after(Duration::ZERO)
    }

    fn write_after(&self, time: Duration) -> WriteGuard {
        let began = self.scopes.at(self.now + time);
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

    fn look(&self) -> Result<Vec<u64>, BypassReason> {
        self.look_after(Duration::ZERO)
    }

    fn look_after(&self, time: Duration) -> Result<Vec<u64>, BypassReason> {
        let now = self.scopes.at(self.now + time);
        epochs(&set([self.any()]), now).map(|epochs| epochs.to_vec())
    }

    /// Ends a write that is certain to have no further effect.
    fn end(&self, write: WriteGuard) -> Option<Vec<u64>> {
        let epochs = write.end(Settling::DONE, self.scopes.at(self.now));
        epochs.map(|epochs| epochs.to_vec())
    }

    /// Ends a write that may still land.
    fn lose(&self, write: WriteGuard) {
        assert_eq!(write.end(LOST, self.scopes.at(self.now)), None);
    }

    fn look_named(&self, name: &str) -> Result<Vec<u64>, BypassReason> {
        let read_set = set([self.wide(), self.named(name)]);
        epochs(&read_set, self.scopes.at(self.now)).map(|epochs| epochs.to_vec())
    }
}

#[test]
fn a_write_is_a_new_epoch_when_sent_and_another_when_answered() {
    let bench = Bench::new();
    let before = bench.look().unwrap();
    let write = bench.write();
    assert_eq!(bench.look(), Err(BypassReason::Writing));
    assert!(!are_current(&set([bench.any()]), &before));
    assert_eq!(bench.end(write), Some(vec![before[0] + 2]));
    assert_eq!(bench.look().unwrap(), [before[0] + 2]);
}

#[test]
fn overlapping_writes_have_no_epoch_of_their_own() {
    for reversed in [false, true] {
        let bench = Bench::new();
        let mut writes = [bench.write(), bench.write()];
        if reversed {
            writes.reverse();
        }
        let [one, other] = writes;
        assert_eq!(bench.end(one), None);
        assert_eq!(bench.look(), Err(BypassReason::Writing));
        assert_eq!(bench.end(other), None);
        assert!(bench.look().is_ok());
    }
}

#[test]
fn a_purge_in_between_leaves_nothing_to_keep() {
    let bench = Bench::new();
    let write = bench.write();
    bench.scopes.raise_all();
    assert_eq!(bench.end(write), None);
    let write = bench.write_named("a");
    bench.scopes.raise_named("a");
    assert_eq!(bench.end(write), None);
}

#[test]
fn a_write_that_may_land_conflicts_with_reads_until_it_settles() {
    let bench = Bench::new();
    bench.lose(bench.write());
    let almost = SETTLING - Duration::from_nanos(1);
    assert_eq!(bench.look_after(almost), Err(BypassReason::Settling));
    assert!(bench.look_after(SETTLING).is_ok());
    // sent before the other one had settled: it may be overwritten after its own answer
    let settled = bench.scopes.at(bench.now + SETTLING);
    let write = bench.write_after(almost);
    assert_eq!(write.end(Settling::DONE, settled), None);
}

#[test]
fn scopes_are_doubtful_once_an_unsettled_write_has_settled() {
    let bench = Bench::new();
    bench.lose(bench.write());
    let almost = 2 * SETTLING - Duration::from_nanos(1);
    for (time, is_doubtful) in [(SETTLING, true), (almost, true), (2 * SETTLING, false)] {
        let now = bench.scopes.at(bench.now + time);
        assert_eq!(are_doubtful(&set([bench.any()]), now), is_doubtful);
        // its repeat would not be sent, though the one that lands undoes it
        let produced = bench.write_after(time).end(Settling::DONE, now);
        assert_eq!(produced.is_none(), is_doubtful);
    }
}

#[test]
fn an_endless_settling_time_does_not_overflow() {
    let bench = Bench::new();
    let endless = Settling {
        unsettled: Duration::MAX,
        doubtful: Duration::MAX,
    };
    let ended = bench.write().end(endless, bench.scopes.at(bench.now));
    assert_eq!(ended, None);
    assert_eq!(bench.look_after(SETTLING), Err(BypassReason::Settling));
}

#[test]
fn a_write_with_a_rule_meets_reads_of_that_name_and_reads_without_rules() {
    let bench = Bench::new();
    let (b, any) = (bench.look_named("b").unwrap(), bench.look().unwrap());
    let write = bench.write_named("a");
    assert_eq!(bench.look_named("a"), Err(BypassReason::Writing));
    assert_eq!(bench.look(), Err(BypassReason::Writing));
    assert_eq!(bench.look_named("b").unwrap(), b);
    let produced = bench.end(write).unwrap();
    assert_eq!(bench.look_named("a").unwrap(), produced);
    assert_eq!(bench.look_named("b").unwrap(), b);
    assert_ne!(bench.look().unwrap(), any);
}

#[test]
fn a_write_without_a_rule_meets_everything() {
    let bench = Bench::new();
    let b = bench.look_named("b").unwrap();
    let write = bench.write();
    assert_eq!(bench.look_named("b"), Err(BypassReason::Writing));
    assert!(bench.end(write).is_some());
    assert_ne!(bench.look_named("b").unwrap(), b);
}

#[test]
fn a_write_with_a_rule_overlaps_with_its_name_and_wide_writes_alone() {
    let bench = Bench::new();
    let (ours, other) = (bench.write_named("a"), bench.write_named("b"));
    assert!(bench.end(other).is_some() && bench.end(ours).is_some());

    // a wide write around, across the end, across the beginning, and within
    let wide = bench.write();
    assert_eq!(bench.end(bench.write_named("a")), None);
    let ours = bench.write_named("a");
    assert_eq!((bench.end(wide), bench.end(ours)), (None, None));
    let (ours, wide) = (bench.write_named("a"), bench.write());
    assert_eq!((bench.end(ours), bench.end(wide)), (None, None));
    let ours = bench.write_named("a");
    bench.end(bench.write());
    assert_eq!(bench.end(ours), None);
    assert!(bench.end(bench.write_named("a")).is_some());
}

#[test]
fn a_scope_named_twice_is_entered_once() {
    let bench = Bench::new();
    let now = bench.scopes.at(bench.now);
    let twice = set([bench.named("a"), bench.named("a")]);
    let write = WriteGuard::begin(twice, Some(&set([bench.named("a")])), now);
    assert!(bench.end(write).is_some());
}

#[test]
fn a_write_whose_result_is_not_kept_raises_epochs_too() {
    let bench = Bench::new();
    let now = bench.scopes.at(bench.now);
    let begin = || WriteGuard::begin(set([bench.any(), bench.wide()]), None, now);
    let before = bench.look().unwrap();
    let write = begin();
    assert_eq!(bench.look(), Err(BypassReason::Writing));
    assert_eq!(bench.look_named("a"), Err(BypassReason::Writing));
    assert_eq!(bench.end(write), None);
    assert_eq!(bench.look().unwrap(), [before[0] + 2]);
    assert!(bench.look_named("a").is_ok());
    bench.lose(begin());
    assert_eq!(bench.look(), Err(BypassReason::Settling));
}
