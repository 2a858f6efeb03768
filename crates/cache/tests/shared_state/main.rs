//! State that several servers share, that others change, and that instances keep: random schedules
//! against a model.
//!
//! Sessions of two principals call the tools of five replica sets. The sets of a group read and
//! write the same cells; some sets have one instance per session, which counts the calls of a tool
//! that claims to be read-only. Calls overlap, are cancelled and fail; a cancelled or failed write
//! still takes effect. Another writer changes cells without any call. Lifetimes are learned,
//! without evidence yet. Each answer names its execution. Then:
//!
//! - an answer comes from an execution of the same call, by the same principal (unless results are
//!   shared by all), and by the same instance where a set has instances;
//! - a read shows the state of a moment in the burst window before the call or later, and none from
//!   before the end of a write through any set of its group that ended before the call;
//! - a session does not receive the answer of one execution for two calls; neither do calls without
//!   a session, if one follows the other;
//! - a counting tool answers 1, 2, 3 to the calls of a session, one after the other;
//! - a kept idempotent write answers another session within the burst window only, and only if no
//!   other write to the group took effect since; every other write is executed;
//! - no call is executed twice, and each is answered.
//!
//! `each_broken_rule_is_found` plays fixed schedules in settings that break these rules.
//! `SHARED_STATE_CASES` sets the number of random schedules, 500 by default.

// Each of these faults, put into the cache one at a time, fails the random schedules: a session
// receives a kept answer again, as a kept result, by joining a running call twice, or after joining
// it; sets of a named group have states of their own; the session is not part of an instance's key.
// `tests/behaviour/fresh/learned.rs` finds a running call that is joined too late.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

mod judge;
mod play;
mod script;
mod world;

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

use crate::judge::{REACHED, Rule};
use crate::play::play;
use crate::script::{Broken, Script, Setting, script};

/// How many fixed schedules there are.
const FIXED_SCHEDULES: usize = 300;

#[test]
fn no_answer_is_older_than_the_model_allows() {
    let cases = std::env::var("SHARED_STATE_CASES").map_or(500, |cases| cases.parse().unwrap());
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    let setting = Setting::new(None);
    let reached = RefCell::new(BTreeSet::new());
    let run = TestRunner::new(config).run(&script(), |script| {
        let played = play(&script, &setting);
        reached.borrow_mut().extend(played.reached);
        match played.violations.first() {
            None => Ok(()),
            Some(found) => Err(TestCaseError::fail(format!("{found:?}\n{}", played.log))),
        }
    });
    match run {
        Ok(()) => {
            // random schedules may all miss a rare case; the fixed ones do not
            let mut reached = reached.into_inner();
            for script in fixed_schedules() {
                if reached.len() == REACHED.len() {
                    break;
                }
                reached.extend(play(&script, &setting).reached);
            }
            assert!(REACHED.iter().eq(&reached), "{reached:?}");
        }
        Err(TestError::Fail(why, _)) => panic!("{}", why.message()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn each_broken_rule_is_found() {
    for (broken, rule) in [
        (Broken::FixedLifetimes(300), Rule::TooOld),
        (Broken::FixedLifetimes(300), Rule::Repeated),
        (Broken::FixedLifetimes(300), Rule::Count),
        (Broken::FixedLifetimes(300), Rule::KeptWrite),
        (Broken::FixedLifetimes(5), Rule::TooOld),
        (Broken::FixedWrites, Rule::KeptWrite),
        (Broken::OwnState, Rule::MissedWrite),
        (Broken::SharedInstances, Rule::Foreign),
        (Broken::LongBurst, Rule::TooOld),
    ] {
        let setting = Setting::new(Some(broken));
        let found = fixed_schedules().any(|script| {
            let played = play(&script, &setting);
            played.violations.iter().any(|(found, _)| *found == rule)
        });
        assert!(found, "{broken:?} is not found as {rule:?}");
    }
}

fn fixed_schedules() -> impl Iterator<Item = Script> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    (0..FIXED_SCHEDULES).map(move |_| script().new_tree(&mut runner).unwrap().current())
}
