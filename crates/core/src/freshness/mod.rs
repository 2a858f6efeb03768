//! The lifetime that an answer states.

mod hints;

use std::time::Duration;

/// The freshness that the source of an answer states.
///
/// It can only restrict: it may forbid that an answer is kept, or shorten its lifetime. Nothing
/// here lengthens what the tool's plan allows, or lets other principals get the answer. A `public`
/// mark of a source is therefore ignored.
///
/// | place | forbids | shortens | keeps to one principal |
/// | --- | --- | --- | --- |
/// | the result, or its `_meta` | `ttlMs` 0 | `ttlMs` | `cacheScope` `private` |
/// | its `_meta` | `cache_hint` `no-cache` | | |
/// | its `_meta`, under [`CACHE_META`] | `status` `stale` | `age_ms` | |
///
/// ```
/// use std::time::Duration;
/// use callward_core::ToolOutput;
///
/// let result = ToolOutput::from_json(r#"{"ttlMs": 60000, "cacheScope": "private"}"#)?;
/// let said = result.freshness();
/// let planned = Duration::from_secs(300);
/// assert_eq!(said.lifetime(planned, false), Some(Duration::from_secs(60)));
/// assert_eq!(said.lifetime(planned, true), None, "private: not for a shared entry");
/// # Ok::<(), callward_core::InvalidOutput>(())
/// ```
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Freshness {
    /// The answer must not be given to a second call.
    pub no_store: bool,
    /// The answer is for the principal it was computed for.
    pub private: bool,
    /// The lifetime of the answer, from when it was made.
    pub max_age: Option<Duration>,
    /// The age of the answer when it arrived.
    pub age: Option<Duration>,
}

/// The key of a result's `_meta` under which a cache states what it did: an object with the members
/// `status` (a word of [`CacheStatus`](crate::CacheStatus)), `age_ms` and `reason`.
pub const CACHE_META: &str = "io.callward/cache";

impl Freshness {
    /// Returns the stricter of two in each respect.
    fn strictest(self, other: Self) -> Self {
        Self {
            no_store: self.no_store || other.no_store,
            private: self.private || other.private,
            max_age: [self.max_age, other.max_age].into_iter().flatten().min(),
            age: self.age.max(other.age),
        }
    }

    /// Returns how long the answer may be kept where the plan allows `planned`: never longer than
    /// that. `None`: it must not be kept. `shared` is `true` if several principals would get it.
    pub fn lifetime(&self, planned: Duration, shared: bool) -> Option<Duration> {
        if self.no_store || (shared && self.private) {
            return None;
        }
        let left = self
            .max_age
            .map_or(planned, |said| said.min(planned))
            .saturating_sub(self.age.unwrap_or_default());
        (!left.is_zero()).then_some(left)
    }

    /// Returns how long after its lifetime the answer may be given where the operator allows
    /// `allowed`.
    pub fn stale_window(&self, allowed: Duration, shared: bool) -> Duration {
        match self.no_store || (shared && self.private) {
            true => Duration::ZERO,
            false => allowed,
        }
    }
}

words! {
    /// What decides how long the results of a server's reads are kept, where neither the operator
    /// nor the server says it. In configuration: `"learned"` or `"fixed"`.
    #[non_exhaustive]
    FreshnessMode {
        /// Evidence: results are served for as long as repeated calls almost never had another
        /// answer. Right for servers of unknown behavior.
        Learned = "learned",
        /// The TTL of the plan. Right where the author of the stack knows the tools. Default.
        Fixed = "fixed",
    } default Fixed
}

/// The lifetime that an operator sets for the results of a tool, or of all tools of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caching {
    /// Nothing is kept.
    Never,
    /// Results of reads are kept for this long, also if the server says otherwise.
    For(Duration),
    /// The mode decides, even if another lifetime is set for all tools of the server.
    ByMode,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn silence_leaves_the_plan_and_age_shortens_it() {
        let silent = Freshness::default();
        for shared in [false, true] {
            assert_eq!(silent.lifetime(secs(5), shared), Some(secs(5)));
            assert_eq!(silent.stale_window(secs(7), shared), secs(7));
        }
        let age = Some(secs(40));
        let aged = Freshness { age, ..silent };
        assert_eq!(aged.lifetime(secs(60), false), Some(secs(20)));
        assert_eq!(aged.lifetime(secs(40), false), None);
    }

    fn any_freshness() -> impl Strategy<Value = Freshness> {
        let time = || prop::option::of((0_u64..500).prop_map(secs));
        (any::<[bool; 2]>(), [time(), time()]).prop_map(|([no_store, private], [max_age, age])| {
            Freshness {
                no_store,
                private,
                max_age,
                age,
            }
        })
    }

    proptest! {
        #[test]
        fn two_together_allow_no_more_than_either(
            a in any_freshness(), b in any_freshness(), planned in 0_u64..500, shared: bool,
        ) {
            let (planned, both) = (secs(planned), a.strictest(b));
            prop_assert_eq!(both, b.strictest(a));
            let allowed = |said: Freshness| {
                let lifetime = said.lifetime(planned, shared).unwrap_or_default();
                [lifetime, said.stale_window(planned, shared)]
            };
            for one in [a, b] {
                for (both, one) in allowed(both).into_iter().zip(allowed(one)) {
                    prop_assert!(both <= one && one <= planned);
                }
            }
        }
    }
}
