//! Writes and readers on one clock, step by step. `tests/never_stale` and `crate::interleavings`
//! have what follows from it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::settling::Settling;

fn set<const N: usize>(scopes: [&Arc<Scope>; N]) -> ScopeSet {
    let mut set = ScopeSet::default();
    scopes.into_iter().for_each(|scope| set.add(scope));
    set
}

struct Bench {
    scopes: Scopes,
    any: Arc<Scope>,
    now: Moment,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        let scopes = Scopes::new(now);
        let group = ScopeRules::default().group(&"test".parse().unwrap());
        Self {
            any: scopes.group(&group).any.clone(),
            now: scopes.at(now),
            scopes,
        }
    }

    fn look(&self) -> Result<Vec<u64>, BypassReason> {
        epochs(&set([&self.any]), self.now).map(|epochs| epochs.to_vec())
    }
}

#[test]
fn a_write_is_a_new_epoch_when_sent_and_another_when_answered() {
    for is_kept in [true, false] {
        let bench = Bench::new();
        let before = bench.look().unwrap();
        let repeat_set = is_kept.then(|| set([&bench.any]));
        // a scope named twice is entered once: a write does not overlap with itself
        let write_set = set([&bench.any, &bench.any]);
        let write = WriteGuard::begin(write_set, repeat_set.as_ref(), bench.now);
        assert_eq!(bench.look(), Err(BypassReason::Writing));
        assert!(!are_current(&set([&bench.any]), &before));
        let produced = write.end(Settling::DONE, bench.now);
        let produced = produced.map(|epochs| epochs.to_vec());
        assert_eq!(produced, is_kept.then(|| vec![before[0] + 2]));
        assert_eq!(bench.look().unwrap(), [before[0] + 2]);
    }
}

#[test]
fn an_endless_settling_time_does_not_overflow() {
    let bench = Bench::new();
    let endless = Settling {
        unsettled: Duration::MAX,
        doubtful: Duration::MAX,
    };
    let write = WriteGuard::begin(set([&bench.any]), Some(&set([&bench.any])), bench.now);
    assert_eq!(write.end(endless, bench.now), None);
    assert_eq!(bench.look(), Err(BypassReason::Settling));
    assert!(are_doubtful(
        &set([&bench.any]),
        bench.scopes.at(Instant::now())
    ));
}

#[test]
fn each_of_a_few_names_has_a_scope_of_its_own_and_many_share() {
    let bench = Bench::new();
    let group = ScopeRules::default().group(&"test".parse().unwrap());
    let scope = |name: usize| Arc::as_ptr(&bench.scopes.named(&group, &name.to_string()));
    let few: std::collections::HashSet<_> = (0..300).map(scope).collect();
    assert_eq!(few.len(), 300);
    let many: Vec<_> = (0..10_000).map(scope).collect();
    assert!((0..10_000).all(|name| scope(name) == many[name]));
}
