//! What an answer says about how long it stays right.

mod header;
mod hints;
mod mode;

pub use self::mode::{Caching, FreshnessMode};

use std::time::Duration;

/// What the source of an answer says about its freshness.
///
/// Everything here tightens: it may forbid that an answer is kept, or shorten how long. Nothing here
/// lengthens what the tool's plan allows, and nothing widens who may be given the answer; that a
/// source calls its answer public is therefore not even read.
///
/// | said by | forbids | shortens | keeps to one principal | limits stale answers |
/// | --- | --- | --- | --- | --- |
/// | `Cache-Control` | `no-store`, `no-cache` | `max-age`, `s-maxage` | `private` | `must-revalidate`, `stale-while-revalidate`, `stale-if-error` |
/// | the result, or its `_meta` | `ttlMs` 0 | `ttlMs` | `cacheScope` `private` | |
/// | its `_meta` | `cache_hint` `no-cache` | | | |
/// | its `_meta`, under [`CACHE_META`] | `status` `stale` | `age_ms` | | |
///
/// ```
/// use std::time::Duration;
/// use callward_core::Freshness;
///
/// let said = Freshness::from_cache_control("private, max-age=60");
/// let planned = Duration::from_secs(300);
/// assert_eq!(said.lifetime(planned, false), Some(Duration::from_secs(60)));
/// assert_eq!(said.lifetime(planned, true), None, "private: not for a shared entry");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Freshness {
    /// The answer must not be given to a second call.
    pub no_store: bool,
    /// The answer is for the principal it was computed for.
    pub private: bool,
    /// How long the answer stays right, counted from when it was made.
    pub max_age: Option<Duration>,
    /// The same where several principals share it; `max_age` where this is not said.
    pub shared_max_age: Option<Duration>,
    /// How old the answer was when it came.
    pub age: Option<Duration>,
    /// How long after its lifetime the answer may be given while a new one is fetched.
    pub stale_while_revalidate: Option<Duration>,
    /// How long after its lifetime the answer may be given while the server fails.
    pub stale_if_error: Option<Duration>,
}

/// Under which key of a result's `_meta` a cache says what it did: an object with the members
/// `status` (a word of [`CacheStatus`](crate::CacheStatus)), `age_ms` and `reason`.
pub const CACHE_META: &str = "io.callward/cache";

impl Freshness {
    /// Says nothing.
    pub const SILENT: Self = Self {
        no_store: false,
        private: false,
        max_age: None,
        shared_max_age: None,
        age: None,
        stale_while_revalidate: None,
        stale_if_error: None,
    };

    /// Reads the value of a `Cache-Control` header (RFC 9111, section 5.2, and RFC 5861). Values of
    /// several headers are joined with a comma, as HTTP has it.
    ///
    /// Unknown directives, and what is no directive at all, are ignored. Of one given twice, the
    /// stricter counts. A lifetime that is no whole number of seconds reads as zero: the RFC asks to
    /// take such an answer for stale.
    #[must_use]
    pub fn from_cache_control(value: &str) -> Self {
        header::read(value)
    }

    /// Reads what a tool result says in its own body: the members `ttlMs` and `cacheScope` of the
    /// protocol, in the result or in its `_meta`; `cache_hint` in its `_meta`; and what a runtime of
    /// this kind further up wrote there under [`CACHE_META`], or is found to have written under
    /// [`UPSTREAM_META`](crate::UPSTREAM_META).
    ///
    /// A member of the wrong type reads as absent, and so does everything in a body that is no JSON
    /// object: metadata never fails a call.
    #[must_use]
    pub fn from_result(body: &[u8]) -> Self {
        hints::read(body)
    }

    /// Says the stricter of two in each respect.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        Self {
            no_store: self.no_store || other.no_store,
            private: self.private || other.private,
            max_age: shorter(self.max_age, other.max_age),
            shared_max_age: shorter(self.shared_max_age, other.shared_max_age),
            age: self.age.max(other.age),
            stale_while_revalidate: shorter(
                self.stale_while_revalidate,
                other.stale_while_revalidate,
            ),
            stale_if_error: shorter(self.stale_if_error, other.stale_if_error),
        }
    }

    /// Returns how long the answer may be kept where the plan allows `planned`: never longer than
    /// that. `None`: it must not be kept. `shared` says whether several principals would get it.
    #[must_use]
    pub fn lifetime(&self, planned: Duration, shared: bool) -> Option<Duration> {
        if self.no_store || (shared && self.private) {
            return None;
        }
        let said = match self.shared_max_age {
            Some(age) if shared => Some(age),
            _ => self.max_age,
        };
        let left = said
            .map_or(planned, |said| said.min(planned))
            .saturating_sub(self.age.unwrap_or_default());
        (!left.is_zero()).then_some(left)
    }

    /// Returns how long after its lifetime the answer may be given while a new one is fetched, where
    /// the operator allows `allowed`.
    #[must_use]
    pub fn revalidation_window(&self, allowed: Duration, shared: bool) -> Duration {
        self.window(self.stale_while_revalidate, allowed, shared)
    }

    /// Returns how long after its lifetime the answer may be given while the server fails, where the
    /// operator allows `allowed`.
    #[must_use]
    pub fn error_window(&self, allowed: Duration, shared: bool) -> Duration {
        self.window(self.stale_if_error, allowed, shared)
    }

    /// A lifetime that was stated for shared caches forbids them to serve beyond it.
    fn window(&self, said: Option<Duration>, allowed: Duration, shared: bool) -> Duration {
        if self.no_store || (shared && (self.private || self.shared_max_age.is_some())) {
            return Duration::ZERO;
        }
        said.map_or(allowed, |said| said.min(allowed))
    }
}

fn shorter(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn nothing_said_leaves_the_plan_as_it_is() {
        for shared in [false, true] {
            assert_eq!(Freshness::SILENT.lifetime(secs(5), shared), Some(secs(5)));
            let window = Freshness::SILENT.revalidation_window(secs(7), shared);
            assert_eq!(window, secs(7));
        }
    }

    #[test]
    fn a_lifetime_for_shared_caches_is_theirs_alone() {
        let said = Freshness::from_cache_control("s-maxage=10, max-age=60");
        assert_eq!(said.lifetime(secs(300), true), Some(secs(10)));
        assert_eq!(said.lifetime(secs(300), false), Some(secs(60)));
        assert_eq!(said.error_window(secs(9), true), Duration::ZERO);
        assert_eq!(said.error_window(secs(9), false), secs(9));
    }

    #[test]
    fn what_was_old_when_it_came_lives_the_shorter() {
        let said = Freshness {
            age: Some(secs(40)),
            ..Freshness::SILENT
        };
        assert_eq!(said.lifetime(secs(60), false), Some(secs(20)));
        assert_eq!(said.lifetime(secs(40), false), None);
    }

    fn any_freshness() -> impl Strategy<Value = Freshness> {
        let time = || prop::option::of((0_u64..500).prop_map(secs));
        (any::<[bool; 2]>(), [time(), time(), time(), time(), time()]).prop_map(
            |([no_store, private], [max_age, shared_max_age, age, revalidate, error])| Freshness {
                no_store,
                private,
                max_age,
                shared_max_age,
                age,
                stale_while_revalidate: revalidate,
                stale_if_error: error,
            },
        )
    }

    proptest! {
        #[test]
        fn whatever_is_said_only_tightens(said in any_freshness(), planned in 0_u64..500, shared: bool) {
            let planned = secs(planned);
            prop_assert!(said.lifetime(planned, shared).unwrap_or_default() <= planned);
            prop_assert!(said.revalidation_window(planned, shared) <= planned);
            prop_assert!(said.error_window(planned, shared) <= planned);
        }

        #[test]
        fn two_together_allow_no_more_than_either(a in any_freshness(), b in any_freshness()) {
            let both = a.strictest(b);
            prop_assert_eq!(both, b.strictest(a));
            for one in [a, b] {
                prop_assert!(both.lifetime(secs(400), false) <= one.lifetime(secs(400), false));
                prop_assert!(both.error_window(secs(400), false) <= one.error_window(secs(400), false));
                let windows = [both, one].map(|said| said.revalidation_window(secs(400), false));
                prop_assert!(windows[0] <= windows[1]);
            }
        }
    }
}
