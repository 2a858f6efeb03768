//! Hints that would make calls of a tool freer, with the evidence for each. None applies before an
//! operator accepts it.

use std::time::Duration;

use callward_core::human::show_duration;
use callward_core::{Annotations, CallStats, FingerprintKey, ReplicaSetId, Tool, ToolName};
use serde::Serialize;

use crate::SetOptions;

/// A change of one tool's plan that calls suggest.
///
/// It applies when an operator [accepts](crate::Registry::accept) it, as a hint of theirs for this
/// definition of the tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Suggestion {
    /// Stands for the change of this definition of the tool, in every process.
    pub id: String,
    /// The replica set.
    pub set: ReplicaSetId,
    /// The tool's own name.
    pub tool: ToolName,
    /// What changes.
    pub change: &'static str,
    /// What it is.
    pub from: String,
    /// What it would be.
    pub to: String,
    /// The hints that change it.
    pub hints: Annotations,
    /// What was seen, with its numbers.
    pub evidence: String,
}

/// Why a suggestion cannot be accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// There is no such suggestion.
    #[error(
        "no suggestion has this id: the evidence or the tool's definition may have changed; look \
         at `callward review` again"
    )]
    Unknown,
    /// It cannot be written, and does not count.
    #[error("it cannot be written, and does not count: {0}")]
    Unwritten(#[from] std::io::Error),
}

/// The timeouts that are suggested, in seconds, up to the longest that a plan has.
const TIMEOUTS: [u64; 6] = [10, 30, 60, 120, 300, LONGEST.as_secs()];
const LONGEST: Duration = Duration::from_secs(600);
/// How many attempts that their timeout ended are enough.
const ENOUGH_ENDED: u64 = 3;
/// The share of the timeout that most attempts may take.
const LONG: f64 = 0.8;

/// Suggests a longer attempt timeout for a tool that comes close to its own, unless the options
/// state how long it takes.
pub(crate) fn longer_timeout(tool: &Tool, options: &SetOptions) -> Option<Suggestion> {
    let said = options.overrides.get(tool.name());
    if said.is_some_and(|said| said.estimated_duration.is_some()) {
        return None;
    }
    let attempts = tool.attempts()?;
    let (totals, now) = (attempts.totals(), tool.plan().limits.attempt_timeout);
    let p99 = Duration::try_from_secs_f64(attempts.p99_ms()? / 1e3).ok()?;
    let is_slow = totals.calls >= CallStats::ENOUGH && p99 > now.mul_f64(LONG);
    if totals.failed < ENOUGH_ENDED && !is_slow {
        return None;
    }
    // what its timeout ended is not known to take longer
    let least = p99.min(now).saturating_mul(2);
    let mut times = TIMEOUTS.map(Duration::from_secs).into_iter();
    let to = times.find(|time| *time > now && (*time >= least || *time == LONGEST))?;
    let factor = f64::from(options.profile.timeout_factor);
    let estimate = to.as_secs_f64() * 1e3 / factor;
    estimate.is_finite().then_some(())?;
    let change = "attempt timeout";
    let (from, to) = (show_duration(now), show_duration(to));
    let (set, name) = (tool.set(), tool.name());
    let what = format!("{set}\n{name}\n{:x}\n{change}\n{to}", tool.digest());
    let id = FingerprintKey::fixed().bytes(what.as_bytes());
    Some(Suggestion {
        id: format!("{:012x}", id >> 80),
        set: set.clone(),
        tool: name.clone(),
        change,
        evidence: format!(
            "of {} attempts the timeout of {from} ended {}; 99 of 100 took at most {}",
            totals.calls,
            totals.failed,
            show_duration(Duration::from_secs(p99.min(now).as_secs()))
        ),
        from,
        to,
        hints: Annotations::default().with_estimated_duration(estimate),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callward_core::{CallPlan, Profile, Resolved, Source};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_timeout_is_suggested_for_calls_that_end_near_it_or_at_it() {
        // how many attempts took how many seconds; 0 for those that the timeout of 60 s ended
        for (attempts, expected) in [
            (&[(19, 55)][..], None),
            (&[(20, 55)], Some("2m")),
            (&[(20, 40)], None),
            (&[(2, 0), (18, 1)], Some("2m")),
            (&[(2, 0)], None),
            (&[(3, 0)], Some("2m")),
            (&[(3, 0), (500, 1)], Some("2m")),
            (&[(1, 0), (500, 1)], None),
        ] {
            let mut tool = Tool::clone(&Tool::read_only("get").unwrap());
            tool.stats = Some(Arc::default());
            for (count, seconds) in attempts {
                for _ in 0..*count {
                    let took = if *seconds == 0 { 60 } else { *seconds };
                    tool.count_attempt(Duration::from_secs(took), *seconds == 0);
                }
            }
            let mut options = SetOptions::default();
            let found = longer_timeout(&tool, &options);
            assert_eq!(found.as_ref().map(|it| &*it.to), expected, "{attempts:?}");
            let stated = Annotations::default().with_estimated_duration(1.0);
            options.overrides.insert(tool.name().clone(), stated);
            assert_eq!(longer_timeout(&tool, &options), None, "the operator's wins");
            let Some(found) = found else {
                continue;
            };
            assert_eq!((&*found.from, found.id.len()), ("1m", 12));
            assert_eq!(found.hints.estimated_duration, Some(12_000.0));
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_gives_the_timeout_that_was_named(
            stated in 1_u64..70_000,
            seconds in prop::collection::vec(1_u64..1_000, 20..40),
        ) {
            let read = Tool::read_only("get").unwrap();
            let profile = Profile::standard();
            let plan = |hints: &Annotations| {
                let resolved = Resolved::from_single(hints.clone(), Source::Operator);
                CallPlan::derive(&resolved, &profile)
            };
            let declared = Annotations::default().with_estimated_duration(stated as f64);
            let plan_now = plan(&declared);
            let now = plan_now.limits.attempt_timeout;
            let (set, resolved) = (read.set().clone(), read.resolved.clone());
            let mut tool = Tool::new(set, read.definition.clone(), resolved, plan_now);
            tool.stats = Some(Arc::default());
            for took in seconds.into_iter().map(Duration::from_secs) {
                tool.count_attempt(took.min(now), took >= now);
            }
            if let Some(found) = longer_timeout(&tool, &SetOptions::default()) {
                let then = plan(&found.hints).limits.attempt_timeout;
                prop_assert!(then > now && then <= LONGEST);
                prop_assert_eq!(found.to, show_duration(then));
            }
        }
    }
}
