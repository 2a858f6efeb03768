//! How the parts of a plan that serde does not know are written.

use std::time::Duration;

use serde::Serializer;

/// Writes whole milliseconds as an integer, and only what is finer as a fraction.
pub(super) fn millis<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    let whole = time.subsec_nanos().is_multiple_of(1_000_000);
    match u64::try_from(time.as_millis()) {
        Ok(millis) if whole => to.serialize_u64(millis),
        _ => to.serialize_f64(time.as_secs_f64() * 1000.0),
    }
}

pub(super) fn optional_millis<S: Serializer>(
    time: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => millis(time, to),
        None => to.serialize_none(),
    }
}

pub(super) fn words<S: Serializer>(words: &[&'static str], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(words)
}

pub(super) fn tags<S: Serializer>(tags: &[Box<str>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(tags)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        Annotations, CacheRule, CallPlan, Effect, Profile, Resolved, SecurityLevel, Source,
    };

    use super::*;

    fn written(hints: Annotations, profile: &Profile) -> serde_json::Value {
        let resolved = Resolved::from_single(hints, Source::Declared);
        serde_json::to_value(CallPlan::derive(&resolved, profile)).unwrap()
    }

    #[test]
    fn a_read_is_written_with_its_ttl() {
        let plan = written(
            Annotations::default()
                .with_read_only(true)
                .with_tags(["users"])
                .with_cost(2.5),
            &Profile::standard(),
        );
        assert_eq!(
            plan["cache"],
            json!({"rule": "store", "ttl_ms": 300_000, "lifetime": "fixed"})
        );
        assert_eq!(
            plan["route"],
            json!({"min_weight": null, "prefer": [], "tags": ["users"], "cost": 2.5})
        );
        assert_eq!(
            (&plan["retry"], &plan["confirm"]),
            (&json!("safe"), &json!("skip"))
        );
    }

    #[test]
    fn a_destructive_call_is_written_with_its_limits() {
        let hints = Annotations::default()
            .with_destructive(true)
            .with_estimated_duration(0.5)
            .with_rate_limit(30.0)
            .with_security_level(SecurityLevel::Restricted);
        let plan = written(hints, &Profile::standard());
        assert_eq!(plan["effect"], json!(Effect::Destructive));
        assert_eq!(plan["route"]["min_weight"], 50);
        assert_eq!(plan["cache"], json!({"rule": "invalidate"}));
        assert_eq!(plan["confirm"], "ask");
        assert_eq!(plan["audit"], json!({"level": "full", "open_world": false}));
        assert_eq!(
            plan["limits"],
            json!({
                "attempt_timeout_ms": 5000,
                "first_backoff_ms": 20,
                "estimated_duration_ms": 0.5,
                "calls_per_minute": 30.0,
                "restricted": true,
            })
        );
    }

    #[test]
    fn a_time_without_end_is_still_a_number() {
        let ttl = Duration::MAX;
        let written = serde_json::to_value(CacheRule::Store {
            ttl,
            lifetime: crate::Lifetime::Fixed,
        })
        .unwrap();
        assert!(written["ttl_ms"].is_number(), "{written}");
    }
}
