//! The table: from effective hints to a plan.

use std::borrow::Cow;
use std::time::Duration;

use crate::infer::Volatile;
use crate::{
    Annotations, AuditRule, CacheRule, CallPlan, Category, ConfirmRule, Effect, Field, Learned,
    Lifetime, Limits, Profile, Resolved, RetryRule, RouteRule, SecurityLevel,
};

/// An attempt timeout derived from `estimatedDuration` stays between these.
const TIMEOUT_RANGE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(600));
/// A first backoff derived from `estimatedDuration` stays between these.
const BACKOFF_RANGE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

impl CallPlan {
    /// Derives the plan from the effective hints, by the profile's numbers.
    pub fn derive(resolved: &Resolved, profile: &Profile) -> Self {
        let hints = &resolved.annotations;
        // the four hints that decide the effect, as the profile reads them
        let of_category = (profile.by_category).then(|| Category::of(resolved).hints());
        let four = of_category.as_ref().unwrap_or(hints);
        let (effect, reason) = effect(four, resolved, profile);
        let also_idempotent = four.idempotent_hint == Some(true);

        let volatile = resolved.volatile.as_ref();
        let cache = match (effect, profile.idempotent_ttl) {
            (Effect::ReadOnly, _) => profile.read_rule(volatile.is_some()),
            (Effect::Idempotent, Some(ttl)) if profile.caches && volatile.is_none() => {
                CacheRule::KeepOwn {
                    ttl,
                    lifetime: profile.idempotent_lifetime,
                }
            }
            _ => CacheRule::Invalidate,
        };
        let moves_on = volatile.is_some_and(Volatile::moves_on);
        let retry = match effect {
            Effect::ReadOnly | Effect::Idempotent => RetryRule::Safe,
            Effect::Destructive if also_idempotent && profile.retry_destructive_idempotent => {
                RetryRule::Safe
            }
            Effect::Mutating | Effect::Destructive => RetryRule::Never,
        };
        // a cursor advances with each call, whatever other hints state
        let retry = match retry {
            RetryRule::Safe if moves_on => RetryRule::OnlyUnsent,
            rule => rule,
        };
        let asks = hints.requires_confirmation == Some(true)
            || effect == Effect::Destructive
            || (effect == Effect::Mutating && profile.confirm_mutating);

        Self {
            effect,
            route: RouteRule::derive(effect, hints, profile),
            cache,
            retry,
            confirm: if asks {
                ConfirmRule::Ask
            } else {
                ConfirmRule::Skip
            },
            limits: Limits::derive(hints, profile),
            audit: AuditRule::derive(hints, effect, four.open_world_hint == Some(true), profile),
            reason,
        }
    }
}

fn effect(
    hints: &Annotations,
    resolved: &Resolved,
    profile: &Profile,
) -> (Effect, Cow<'static, str>) {
    let (effect, reason) = match (hints.destructive_hint, hints.read_only_hint) {
        (Some(true), _) => return (Effect::Destructive, resolved.why(Field::Destructive)),
        (_, Some(true)) => return (Effect::ReadOnly, resolved.why(Field::ReadOnly)),
        _ if profile.by_category => (
            Effect::Mutating,
            "its category is write: it changes something, and takes nothing away",
        ),
        (None, _) if profile.absent_is_destructive => (
            Effect::Destructive,
            "nothing says it only adds, and the profile assumes the worst",
        ),
        _ if hints.idempotent_hint == Some(true) => {
            return (Effect::Idempotent, resolved.why(Field::Idempotent));
        }
        _ => (
            Effect::Mutating,
            "nothing says it only reads or may be repeated",
        ),
    };
    (effect, reason.into())
}

impl Profile {
    /// Returns the rule of a read, which must be fresh by its words or not.
    fn read_rule(&self, volatile: bool) -> CacheRule {
        let (ttl, lifetime) = (self.read_ttl, self.read_lifetime);
        match lifetime {
            _ if !self.caches => CacheRule::Bypass,
            Lifetime::Fixed if volatile => CacheRule::Bypass,
            Lifetime::Learned(learned) => CacheRule::Store {
                ttl,
                lifetime: Lifetime::Learned(Learned {
                    volatile,
                    ..learned
                }),
            },
            Lifetime::Stated | Lifetime::Fixed => CacheRule::Store { ttl, lifetime },
        }
    }
}

impl Limits {
    /// Returns the first backoff of calls that usually take this long: half of it, within bounds.
    #[must_use]
    pub fn backoff_for(usual: Duration) -> Duration {
        (usual / 2).clamp(BACKOFF_RANGE.0, BACKOFF_RANGE.1)
    }

    fn derive(hints: &Annotations, profile: &Profile) -> Self {
        let estimated_duration = hints
            .estimated_duration
            .filter(|ms| ms.is_finite() && *ms >= 0.0)
            .and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
        let (attempt_timeout, first_backoff) = match estimated_duration {
            Some(usual) => (
                usual
                    .saturating_mul(profile.timeout_factor)
                    .clamp(TIMEOUT_RANGE.0, TIMEOUT_RANGE.1),
                Self::backoff_for(usual),
            ),
            None => (profile.attempt_timeout, profile.first_backoff),
        };
        Self {
            attempt_timeout,
            first_backoff,
            estimated_duration,
            calls_per_minute: hints
                .rate_limit_hint
                .filter(|rate| rate.is_finite() && *rate > 0.0),
            restricted: hints.security_level == Some(SecurityLevel::Restricted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SafetyLevel, Source};

    fn plan(hints: &str, profile: &Profile) -> CallPlan {
        let resolved = Resolved::from_single(Annotations::stated(hints), Source::Declared);
        CallPlan::derive(&resolved, profile)
    }

    fn standard(hints: &str) -> CallPlan {
        plan(hints, &Profile::standard())
    }

    /// Effect, cache, retry, confirmation, least weight and record, in words.
    fn summary(plan: &CallPlan) -> String {
        let weight = plan.route.min_weight.map(|weight| weight.to_string());
        let weight = weight.unwrap_or_else(|| "any".to_owned());
        let apart = if plan.audit.open_world { " apart" } else { "" };
        let json = serde_json::to_value(plan).unwrap();
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let (cache, retry) = (word(&json["cache"]["rule"]), word(&json["retry"]));
        let (confirm, level) = (word(&json["confirm"]), plan.audit.level);
        let effect = plan.effect;
        format!("{effect} {cache} {retry} {confirm} {weight} {level}{apart}")
    }

    #[test]
    fn each_row_of_the_table_under_each_profile() {
        // every category reaches into an open world, and no write of one is idempotent; only calls
        // that are recorded anyway are recorded apart
        let rows = "
standard | readOnly=true | read_only store safe skip any none
standard | idempotent=true | idempotent keep_own safe skip any none
standard | destructive=true | destructive invalidate never ask 50 none
standard |  | mutating invalidate never skip any none
standard | requiresConfirmation=true | mutating invalidate never ask any none
standard | readOnly=true destructive=true | destructive invalidate never ask 50 none
standard | destructive=true idempotent=true | destructive invalidate never ask 50 none
standard | openWorld=true | mutating invalidate never skip any none apart
standard | auditRequired=true | mutating invalidate never skip any full
standard | openWorld=true auditRequired=true | mutating invalidate never skip any full apart
standard | securityLevel=restricted | mutating invalidate never skip any full
strict |  | destructive invalidate never ask 50 none
strict | destructive=false | mutating invalidate never ask any none
strict | readOnly=true | read_only store safe skip any none
neurolink |  | mutating invalidate never skip any none
neurolink | destructive=true idempotent=true | destructive invalidate never ask 50 none
mcpgate | idempotent=true | mutating invalidate never skip any none apart
mcpgate | readOnly=true | read_only store safe skip any none apart
mcpgate | destructive=true idempotent=true | destructive invalidate never ask 50 none apart
mcpgate | auditRequired=true openWorld=false | mutating invalidate never skip any full apart
epd | destructive=true idempotent=true | destructive invalidate safe ask 50 none
epd | destructive=true | destructive invalidate never ask 50 none
epd | openWorld=true | mutating invalidate never skip any full apart
epd |  | mutating invalidate never skip any none";
        for row in rows.lines().skip(1) {
            let columns: Vec<&str> = row.split('|').map(str::trim).collect();
            let [profile, hints, expected] = columns[..] else {
                panic!("{row}");
            };
            let plan = plan(hints, &Profile::by_name(profile).unwrap());
            assert_eq!(summary(&plan), expected, "{row}");
            assert_eq!(plan.is_write(), plan.effect != Effect::ReadOnly, "{row}");
        }
        let read = standard("readOnly=true");
        assert_eq!(read.effect.safety_level(), SafetyLevel::Safe);
        assert_eq!(read.result_ttl(), Some(Duration::from_secs(300)));
        let reason = plan("", &Profile::by_name("mcpgate").unwrap()).reason;
        assert!(reason.contains("category is write"), "{reason}");
        let limits = plan("", &Profile::neurolink()).limits;
        assert_eq!(limits.first_backoff, Duration::from_secs(1));
    }

    #[test]
    fn a_plan_is_written_with_its_limits_and_reads_like_prose() {
        let hints = "estimatedDuration=0.5 rateLimitHint=30 securityLevel=restricted tags=users,db \
             costHint=2.5";
        let plan = standard(hints);
        let written = serde_json::to_value(&plan).unwrap();
        let limits = r#"{"attempt_timeout_ms":5000,"calls_per_minute":30.0,"estimated_duration_ms":0.5,"first_backoff_ms":20,"restricted":true}"#;
        assert_eq!(written["limits"].to_string(), limits);
        assert_eq!(written["route"]["tags"].to_string(), r#"["users","db"]"#);
        let line = "any healthy server, tagged \"users\", \"db\", costs 2.5\n";
        assert!(plan.to_string().contains(line), "{plan}");
        let text = standard("destructive=true").to_string();
        assert!(text.contains("destructive (dangerous)"), "{text}");
        assert!(text.contains("weight 50"), "{text}");
    }

    #[test]
    fn duration_sets_timeout_and_backoff_within_bounds() {
        let limits = standard("estimatedDuration=2000").limits;
        assert_eq!(limits.attempt_timeout, Duration::from_secs(20));
        assert_eq!(limits.first_backoff, Duration::from_secs(1));
        for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0] {
            let hints = Annotations::default().with_estimated_duration(odd);
            let limits = Limits::derive(&hints, &Profile::standard());
            assert!(limits.attempt_timeout >= TIMEOUT_RANGE.0, "{odd}");
            assert!(limits.first_backoff >= BACKOFF_RANGE.0, "{odd}");
        }
    }
}
