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
        let hints = resolved.annotations();
        let flags = Flags::read(resolved, profile);
        let is_true = |hint: Option<bool>| hint == Some(true);
        let (effect, reason) = flags.effect(resolved, profile);
        let also_idempotent = is_true(flags.idempotent);

        let volatile = resolved.volatility();
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
        // a cursor moves on with each call, whatever other hints say
        let retry = match retry {
            RetryRule::Safe if moves_on => RetryRule::OnlyUnsent,
            rule => rule,
        };
        let asks = is_true(hints.requires_confirmation)
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
            audit: AuditRule::derive(hints, effect, flags.reaches_out(), profile),
            reason,
        }
    }
}

/// The four hints that decide the effect, as the profile reads them.
struct Flags {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    /// The category they come from, if the profile thinks in categories.
    category: Option<Category>,
}

impl Flags {
    fn read(resolved: &Resolved, profile: &Profile) -> Self {
        let of = |hints: &Annotations, category| Self {
            read_only: hints.read_only_hint,
            destructive: hints.destructive_hint,
            idempotent: hints.idempotent_hint,
            open_world: hints.open_world_hint,
            category,
        };
        if profile.by_category {
            let category = Category::of(resolved);
            of(&category.hints(), Some(category))
        } else {
            of(resolved.annotations(), None)
        }
    }

    fn effect(&self, resolved: &Resolved, profile: &Profile) -> (Effect, Cow<'static, str>) {
        if self.destructive == Some(true) {
            (Effect::Destructive, resolved.why(Field::Destructive))
        } else if self.read_only == Some(true) {
            (Effect::ReadOnly, resolved.why(Field::ReadOnly))
        } else if self.category.is_some() {
            (
                Effect::Mutating,
                "its category is write: it changes something, and takes nothing away".into(),
            )
        } else if profile.absent_is_destructive && self.destructive.is_none() {
            (
                Effect::Destructive,
                "nothing says it only adds, and the profile assumes the worst".into(),
            )
        } else if self.idempotent == Some(true) {
            (Effect::Idempotent, resolved.why(Field::Idempotent))
        } else {
            (
                Effect::Mutating,
                "nothing says it only reads or may be repeated".into(),
            )
        }
    }

    fn reaches_out(&self) -> bool {
        self.open_world == Some(true)
    }
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
                (usual / 2).clamp(BACKOFF_RANGE.0, BACKOFF_RANGE.1),
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
    use crate::{AuditLevel, SafetyLevel, Source};

    fn plan(change: impl FnOnce(&mut Annotations)) -> CallPlan {
        plan_under(&Profile::standard(), change)
    }

    fn plan_under(profile: &Profile, change: impl FnOnce(&mut Annotations)) -> CallPlan {
        let mut hints = Annotations::default();
        change(&mut hints);
        CallPlan::derive(&Resolved::from_single(hints, Source::Declared), profile)
    }

    #[test]
    fn each_row_of_the_table() {
        let read = plan(|h| h.read_only_hint = Some(true));
        assert_eq!(read.effect, Effect::ReadOnly);
        assert_eq!(
            read.cache,
            CacheRule::Store {
                ttl: Duration::from_secs(300),
                lifetime: Lifetime::Fixed,
            }
        );
        assert_eq!(read.retry, RetryRule::Safe);
        assert_eq!(read.confirm, ConfirmRule::Skip);
        assert_eq!(read.safety_level(), SafetyLevel::Safe);
        assert_eq!(read.result_ttl(), Some(Duration::from_secs(300)));
        assert!(!read.is_write() && !read.audit.is_recorded());

        let idempotent = plan(|h| h.idempotent_hint = Some(true));
        assert_eq!(idempotent.effect, Effect::Idempotent);
        assert_eq!(
            idempotent.cache,
            CacheRule::KeepOwn {
                ttl: Duration::from_secs(5),
                lifetime: Lifetime::Fixed,
            }
        );
        assert_eq!(idempotent.route.prefer[..], ["caching"]);
        assert_eq!(idempotent.retry, RetryRule::Safe);

        let destructive = plan(|h| h.destructive_hint = Some(true));
        assert_eq!(destructive.route.min_weight, Some(50));
        assert_eq!(destructive.cache, CacheRule::Invalidate);
        assert_eq!(destructive.retry, RetryRule::Never);
        assert_eq!(destructive.confirm, ConfirmRule::Ask);
        assert_eq!(destructive.result_ttl(), None);
        assert!(destructive.is_write() && !destructive.is_retryable());

        let unknown = plan(|_| ());
        assert_eq!(unknown.effect, Effect::Mutating);
        assert_eq!(unknown.cache, CacheRule::Invalidate);
        assert_eq!(unknown.retry, RetryRule::Never);
        assert_eq!(unknown.confirm, ConfirmRule::Skip);
    }

    #[test]
    fn destructive_wins_wherever_it_arrives() {
        let both = plan(|h| {
            h.read_only_hint = Some(true);
            h.destructive_hint = Some(true);
        });
        assert_eq!(both.effect, Effect::Destructive);
        let repeatable = plan(|h| {
            h.idempotent_hint = Some(true);
            h.destructive_hint = Some(true);
        });
        assert_eq!(repeatable.retry, RetryRule::Never);
    }

    #[test]
    fn strict_assumes_the_worst_of_what_is_not_said() {
        let strict = Profile::strict();
        assert_eq!(plan_under(&strict, |_| ()).effect, Effect::Destructive);
        let adds = plan_under(&strict, |h| h.destructive_hint = Some(false));
        assert_eq!(
            (adds.effect, adds.confirm),
            (Effect::Mutating, ConfirmRule::Ask)
        );
        assert_eq!(
            plan_under(&strict, |h| h.read_only_hint = Some(true)).effect,
            Effect::ReadOnly
        );
    }

    #[test]
    fn mcpgate_repeats_only_what_its_category_calls_idempotent() {
        let mcpgate = Profile::mcpgate();
        let write = plan_under(&mcpgate, |h| h.idempotent_hint = Some(true));
        assert_eq!(
            (write.effect, write.retry, write.cache),
            (Effect::Mutating, RetryRule::Never, CacheRule::Invalidate)
        );
        assert_eq!(write.confirm, ConfirmRule::Skip);
        assert!(
            write.reason.contains("category is write"),
            "{}",
            write.reason
        );
        let read = plan_under(&mcpgate, |h| h.read_only_hint = Some(true));
        assert_eq!(
            (read.effect, read.retry),
            (Effect::ReadOnly, RetryRule::Safe)
        );
        let delete = plan_under(&mcpgate, |h| {
            h.destructive_hint = Some(true);
            h.idempotent_hint = Some(true);
        });
        assert_eq!(
            (delete.effect, delete.retry, delete.confirm),
            (Effect::Destructive, RetryRule::Never, ConfirmRule::Ask)
        );
        let audited = plan_under(&mcpgate, |h| {
            h.audit_required = Some(true);
            h.open_world_hint = Some(false);
        });
        assert_eq!(audited.audit.level, AuditLevel::Full);
        assert!(audited.audit.open_world, "every category is open");
    }

    #[test]
    fn epd_retries_idempotent_calls_that_destroy_and_still_asks_first() {
        let cancel = plan_under(&Profile::epd(), |h| {
            h.destructive_hint = Some(true);
            h.idempotent_hint = Some(true);
        });
        assert_eq!(
            (cancel.retry, cancel.confirm, cancel.cache),
            (RetryRule::Safe, ConfirmRule::Ask, CacheRule::Invalidate)
        );
        let refund = plan_under(&Profile::epd(), |h| h.destructive_hint = Some(true));
        assert_eq!(refund.retry, RetryRule::Never);
    }

    #[test]
    fn calls_into_an_open_world_are_recorded_apart() {
        let open: fn(&mut Annotations) = |h| h.open_world_hint = Some(true);
        let audit = |plan: CallPlan| (plan.audit.level, plan.audit.open_world);
        let epd = |change: fn(&mut Annotations)| audit(plan_under(&Profile::epd(), change));
        assert_eq!(epd(open), (AuditLevel::Full, true));
        assert_eq!(epd(|_| ()), (AuditLevel::None, false));
        // Elsewhere only calls that are recorded anyway differ.
        assert_eq!(audit(plan(open)), (AuditLevel::None, true));
        let required = |h: &mut Annotations| h.audit_required = Some(true);
        assert_eq!(audit(plan(required)), (AuditLevel::Full, false));
        let both = plan(|h| {
            open(h);
            required(h);
        });
        assert_eq!(both.audit.level, AuditLevel::Full);
        assert!(both.to_string().contains("reach outside"), "{both}");
    }

    #[test]
    fn neurolink_takes_a_silent_tool_for_harmless_and_waits_a_second() {
        let neurolink = Profile::neurolink();
        let silent = plan_under(&neurolink, |_| ());
        assert_eq!(
            (silent.effect, silent.confirm),
            (Effect::Mutating, ConfirmRule::Skip)
        );
        assert_eq!(silent.limits.first_backoff, Duration::from_secs(1));
        let destroys = plan_under(&neurolink, |h| {
            h.destructive_hint = Some(true);
            h.idempotent_hint = Some(true);
        });
        assert_eq!(
            (destroys.retry, destroys.route.min_weight),
            (RetryRule::Never, Some(50))
        );
    }

    #[test]
    fn duration_sets_timeout_and_backoff_within_bounds() {
        let limits = plan(|h| h.estimated_duration = Some(2000.0)).limits;
        assert_eq!(limits.attempt_timeout, Duration::from_secs(20));
        assert_eq!(limits.first_backoff, Duration::from_secs(1));
        for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0] {
            let limits = plan(|h| h.estimated_duration = Some(odd)).limits;
            assert!(limits.attempt_timeout >= TIMEOUT_RANGE.0, "{odd}");
            assert!(limits.first_backoff >= BACKOFF_RANGE.0, "{odd}");
        }
    }

    #[test]
    fn a_plan_reads_like_prose() {
        let text = plan(|h| h.destructive_hint = Some(true)).to_string();
        assert!(text.contains("destructive (dangerous)"), "{text}");
        assert!(text.contains("weight 50"), "{text}");
        let text = plan(|h| {
            h.tags = Some(vec!["users".to_owned(), "db".to_owned()]);
            h.cost_hint = Some(2.5);
        });
        let line = "any healthy server, tagged \"users\", \"db\", costs 2.5\n";
        assert!(text.to_string().contains(line), "{text}");
    }
}
