//! One plan that is at least as strict as each of several.

use crate::CallPlan;

/// The reason of such a plan.
const REASON: &str =
    "the arguments may be read in more than one way, so the strictest of the tool's plans counts";

/// Joins a tool's own plan and those of its rules, part by part:
///
/// - the effect that does most harm, with the preferences of `worst`, the plan that has it;
/// - the greatest weight that any demands of a server, every tag, the greatest cost;
/// - from not dropping anything to dropping all: looked up and stored, not looked up, kept as a
///   write's own result, never stored; the shortest of several times;
/// - repeated only if all allow it; asked, recorded and restricted if any demands it;
/// - the lowest rate; the longest timeout, for so long a write may still land, and the longest
///   first pause.
pub(super) fn strictest<'a>(
    own: &CallPlan,
    worst: &CallPlan,
    others: impl Iterator<Item = &'a CallPlan>,
) -> CallPlan {
    let mut out = worst.clone();
    tighten(&mut out, own);
    for plan in others {
        tighten(&mut out, plan);
    }
    out.reason = REASON.into();
    out
}

fn tighten(out: &mut CallPlan, by: &CallPlan) {
    out.route.tighten(&by.route);
    out.cache = out.cache.stricter(by.cache);
    out.retry = out.retry.min(by.retry);
    out.confirm = out.confirm.min(by.confirm);
    out.audit = out.audit.stricter(by.audit);
    let (limits, by) = (&mut out.limits, &by.limits);
    limits.attempt_timeout = limits.attempt_timeout.max(by.attempt_timeout);
    limits.first_backoff = limits.first_backoff.max(by.first_backoff);
    limits.estimated_duration = limits.estimated_duration.max(by.estimated_duration);
    let rates = [limits.calls_per_minute, by.calls_per_minute];
    limits.calls_per_minute = rates.into_iter().flatten().reduce(f64::min);
    limits.restricted |= by.restricted;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{CacheRule, Lifetime};

    #[test]
    fn of_two_times_the_shorter_counts_whatever_the_rules() {
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(5));
        let lifetime = Lifetime::Fixed;
        let store = |ttl| CacheRule::Store { ttl, lifetime };
        let keep = |ttl| CacheRule::KeepOwn { ttl, lifetime };
        for (one, other, want) in [
            (store(short), store(long), store(short)),
            (keep(short), keep(long), keep(short)),
            (store(short), keep(long), keep(short)),
            (store(long), keep(short), keep(short)),
            (store(short), CacheRule::Bypass, CacheRule::Bypass),
            (keep(short), CacheRule::Bypass, CacheRule::Invalidate),
            (store(short), CacheRule::Invalidate, CacheRule::Invalidate),
        ] {
            assert_eq!(one.stricter(other), want, "{one:?} {other:?}");
            assert_eq!(other.stricter(one), want, "{other:?} {one:?}");
        }
    }
}
