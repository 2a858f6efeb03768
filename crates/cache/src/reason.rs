//! Why a call was not looked up, a result not kept, an entry dropped: words and counts.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Makes an enum of reasons, the counts of how often each was met, and the counters behind them.
macro_rules! reasons {
    (
        $(#[$doc:meta])* $reason:ident,
        $(#[$counts_doc:meta])* $counts:ident,
        $counters:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $reason {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $reason {
            /// All of them, in the order tables show them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the word used in spans, tables and JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        $(#[$counts_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $counts([u64; $reason::ALL.len()]);

        impl $counts {
            /// Returns how often this reason was met.
            #[must_use]
            #[expect(clippy::indexing_slicing, reason = "there is a place for each variant")]
            pub const fn get(&self, reason: $reason) -> u64 {
                self.0[reason as usize]
            }

            /// Returns each reason and how often it was met.
            pub fn iter(&self) -> impl Iterator<Item = ($reason, u64)> {
                $reason::ALL.iter().copied().zip(self.0)
            }

            /// Returns how often any of them was met.
            #[must_use]
            pub fn total(&self) -> u64 {
                self.0.iter().sum()
            }
        }

        impl std::ops::AddAssign for $counts {
            fn add_assign(&mut self, other: Self) {
                for (own, other) in self.0.iter_mut().zip(other.0) {
                    *own += other;
                }
            }
        }

        impl Serialize for $counts {
            /// Writes an object: each reason's word, and its count.
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut map = to.serialize_map(Some(self.0.len()))?;
                for (reason, count) in self.iter() {
                    map.serialize_entry(reason.as_str(), &count)?;
                }
                map.end()
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct $counters([AtomicU64; $reason::ALL.len()]);

        impl $counters {
            #[expect(clippy::indexing_slicing, reason = "there is a place for each variant")]
            pub(crate) fn add_one(&self, reason: $reason) {
                self.0[reason as usize].fetch_add(1, Ordering::Relaxed);
            }

            pub(crate) fn snapshot(&self) -> $counts {
                let mut counts = $counts::default();
                for (count, counter) in counts.0.iter_mut().zip(&self.0) {
                    *count = counter.load(Ordering::Relaxed);
                }
                counts
            }
        }
    };
}

reasons! {
    /// Why a call was sent without a look-up.
    BypassReason,
    /// How often calls were sent without a look-up, by reason.
    Bypasses,
    BypassCounters {
        /// The cache is off.
        Disabled = "disabled",
        /// The tool's plan says so: it reads a clock or a cursor, say.
        Plan = "plan",
        /// The arguments have no fingerprint: two parsers may read them differently.
        Arguments = "arguments",
        /// A write to what it reads was in flight.
        Writing = "writing",
        /// A write to what it reads has ended, and may still land.
        Settling = "settling",
        /// The call is meant for one server, and no other's answer is one to it.
        Pinned = "pinned",
    }
}

reasons! {
    /// Why a result was not kept.
    RefusalReason,
    /// How often results were not kept, by reason.
    Refusals,
    RefusalCounters {
        /// The call failed.
        Failed = "failed",
        /// The tool itself reported failure.
        ToolError = "tool_error",
        /// It is a round of an exchange, and not its end.
        Incomplete = "incomplete",
        /// A write, or a purge, came between the call and its answer.
        Overtaken = "overtaken",
        /// Its body is larger than one item may be.
        TooLarge = "too_large",
        /// Its lifetime is zero.
        NoLifetime = "no_lifetime",
        /// The server said it must not be kept.
        NoStore = "no_store",
        /// It would push out what is worth more.
        NotWorthIt = "not_worth_it",
    }
}

reasons! {
    /// Why a store dropped an entry.
    Cause,
    /// How often entries were dropped, by cause.
    Evictions,
    EvictionCounters {
        /// To make room for another.
        Size = "size",
        /// It had ended, and was in the way.
        Expired = "expired",
        /// Another took its place.
        Replaced = "replaced",
        /// It was removed, or everything was cleared.
        Cleared = "cleared",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_in_a_place_of_its_own() {
        let counters = BypassCounters::default();
        for (times, reason) in BypassReason::ALL.iter().enumerate() {
            for _ in 0..=times {
                counters.add_one(*reason);
            }
        }
        let mut counts = counters.snapshot();
        for (times, (reason, count)) in counts.iter().enumerate() {
            assert_eq!(count, times as u64 + 1, "{reason}");
            assert_eq!(counts.get(reason), count);
        }
        counts += counters.snapshot();
        let each_once: u64 = (1..=BypassReason::ALL.len() as u64).sum();
        assert_eq!(counts.total(), 2 * each_once);
    }

    #[test]
    fn counts_are_written_by_word() {
        let written = serde_json::to_value(Refusals::default()).unwrap();
        assert_eq!(written["too_large"], 0);
        assert_eq!(written.as_object().unwrap().len(), RefusalReason::ALL.len());
    }
}
