//! The plan of a tool's calls, derived once from its hints.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use crate::{Effect, millis};

mod audit;
mod cache;
mod derive;
mod display;
mod route;

pub use self::audit::{AuditLevel, AuditRule, AuditScope};
pub use self::cache::{CacheRule, Learned, Lifetime};
pub use self::route::RouteRule;

/// Everything the layers need to know about a tool's calls: plain data, derived when the tool is
/// registered, read on every call.
///
/// | effective hints | effect | route | cache | retry | confirm |
/// | --- | --- | --- | --- | --- | --- |
/// | read-only | `ReadOnly` | any healthy server | full TTL | yes | no |
/// | idempotent, not destructive | `Idempotent` | prefers category `caching` | short TTL | yes | no |
/// | destructive | `Destructive` | weight ≥ 50 only | never; invalidates | never | yes |
/// | anything else | `Mutating` | default strategy | never; invalidates | never | no |
///
/// `complexity: complex` or a `costHint` above 100 prefers category `high-compute`, whatever the
/// effect. `tags` and `costHint` are in the rule for strategies and budgets.
///
/// Validation refuses read-only together with destructive; if both arrive anyway, destructive wins.
///
/// ```
/// use callward_core::{Annotations, CallPlan, Effect, Profile, Resolved, Source};
///
/// let mut hints = Annotations::default();
/// hints.destructive_hint = Some(true);
/// let resolved = Resolved::from_single(hints, Source::Operator);
/// let plan = CallPlan::derive(&resolved, &Profile::standard());
/// assert_eq!(plan.effect, Effect::Destructive);
/// assert_eq!(plan.route.min_weight, Some(50));
/// println!("{plan}");
/// ```
///
/// # As JSON
///
/// Rules are words in snake case, times are milliseconds and named so, and every key is always
/// there: an unset one is `null`.
///
/// ```
/// # use callward_core::{Annotations, CallPlan, Profile, Resolved, Source};
/// let hints = Annotations::default().with_idempotent(true);
/// let resolved = Resolved::from_single(hints, Source::Operator);
/// let plan = CallPlan::derive(&resolved, &Profile::standard());
/// assert_eq!(
///     serde_json::to_value(&plan)?,
///     serde_json::json!({
///         "effect": "idempotent",
///         "route": {"min_weight": null, "prefer": ["caching"], "tags": [], "cost": null},
///         "cache": {"rule": "keep_own", "ttl_ms": 5000, "lifetime": "fixed"},
///         "retry": "safe",
///         "confirm": "skip",
///         "limits": {
///             "attempt_timeout_ms": 60000,
///             "first_backoff_ms": 100,
///             "estimated_duration_ms": null,
///             "calls_per_minute": null,
///             "restricted": false,
///         },
///         "audit": {"level": "none", "open_world": false},
///         "reason": "operator, set for this tool",
///     })
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallPlan {
    /// The effect of a call.
    pub effect: Effect,
    /// Which servers may get it.
    pub route: RouteRule,
    /// How the cache treats it.
    pub cache: CacheRule,
    /// Whether it may be retried.
    pub retry: RetryRule,
    /// Whether a human must confirm it first.
    pub confirm: ConfirmRule,
    /// Times and rates.
    pub limits: Limits,
    /// What is written down about it, and in which file.
    pub audit: AuditRule,
    /// Why the effect is what it is, in a sentence.
    pub reason: Cow<'static, str>,
}

/// Whether a call may be sent again. The strictest rule is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RetryRule {
    /// Never: not even when it certainly was not sent.
    Never,
    /// Only when it certainly was not sent.
    OnlyUnsent,
    /// If the failure is transient: a second run is harmless.
    Safe,
}

/// Whether a human is asked before a call. The strictest rule is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConfirmRule {
    /// Asked before each call.
    Ask,
    /// Not asked.
    Skip,
}

/// Times and rates of a tool's calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Limits {
    /// How long one attempt may take.
    #[serde(rename = "attempt_timeout_ms", serialize_with = "millis::serialize")]
    pub attempt_timeout: Duration,
    /// The pause before the first repeat, before jitter.
    #[serde(rename = "first_backoff_ms", serialize_with = "millis::serialize")]
    pub first_backoff: Duration,
    /// How long a call usually takes, if it is stated.
    #[serde(rename = "estimated_duration_ms", with = "millis::optional")]
    pub estimated_duration: Option<Duration>,
    /// How many calls per minute the tool can take, if it is stated.
    pub calls_per_minute: Option<f64>,
    /// Results may only be shown to the calling principal.
    pub restricted: bool,
}

impl CallPlan {
    /// Returns `true` if a call may change anything at all.
    pub const fn is_write(&self) -> bool {
        self.effect.is_write()
    }

    /// Returns `true` if a call may be sent a second time after it may have run.
    pub const fn is_retryable(&self) -> bool {
        matches!(self.retry, RetryRule::Safe)
    }

    /// Returns how long a result is kept at most; `None` if it is not kept at all.
    pub fn result_ttl(&self) -> Option<Duration> {
        self.cache.kept().map(|(ttl, _)| ttl)
    }
}
