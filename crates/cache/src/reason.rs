//! Why a call was not looked up, a result not kept, an entry removed: names and counts.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Makes an enum of reasons, and a count for each of them.
macro_rules! reasons {
    (
        $(#[$doc:meta])* $reason:ident,
        $(#[$counts_doc:meta])* $counts:ident {
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

            /// Returns the name used in spans, tables and JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        $(#[$counts_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $counts([u64; $reason::ALL.len()]);

        impl $counts {
            #[expect(clippy::indexing_slicing, reason = "there is a count for each variant")]
            pub(crate) fn add_one(&mut self, reason: $reason) {
                self.0[reason as usize] += 1;
            }

            /// Returns how often this reason was met.
            #[must_use]
            #[expect(clippy::indexing_slicing, reason = "there is a count for each variant")]
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
            /// Writes an object: each reason's name, and its count.
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut map = to.serialize_map(Some(self.0.len()))?;
                for (reason, count) in self.iter() {
                    map.serialize_entry(reason.as_str(), &count)?;
                }
                map.end()
            }
        }
    };
}

reasons! {
    /// Why a call was sent without a look-up.
    BypassReason,
    /// How often calls were sent without a look-up, by reason.
    Bypasses {
        /// The cache is off.
        Disabled = "disabled",
        /// By the tool's plan: it reads a clock or a cursor, for example.
        Plan = "plan",
        /// Two parsers may read the arguments differently.
        Arguments = "arguments",
        /// A write to what it reads was in flight.
        Writing = "writing",
        /// A write to what it reads has ended, and may still land.
        Settling = "settling",
        /// The call is pinned to one server.
        Pinned = "pinned",
    }
}

reasons! {
    /// Why a result was not kept.
    RefusalReason,
    /// How often results were not kept, by reason.
    Refusals {
        /// The call failed.
        Failed = "failed",
        /// The tool itself reported failure.
        ToolError = "tool_error",
        /// It is a round of an exchange that goes on.
        Incomplete = "incomplete",
        /// A write, or a purge, came between the call and its answer.
        Overtaken = "overtaken",
        /// Its body is larger than one item may be.
        TooLarge = "too_large",
        /// Its lifetime is zero.
        NoLifetime = "no_lifetime",
        /// The server said it must not be kept.
        NoStore = "no_store",
    }
}

reasons! {
    /// Why the store removed an entry.
    EvictionCause,
    /// How often entries were removed, by cause.
    Evictions {
        /// For another entry, as the store was full.
        Size = "size",
        /// It had ended, and the store was full or its call got a new answer.
        Expired = "expired",
        /// Another entry of the same key came.
        Replaced = "replaced",
        /// It was removed, or everything was cleared.
        Cleared = "cleared",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let mut counts = Bypasses::default();
        for (times, reason) in BypassReason::ALL.iter().enumerate() {
            (0..=times).for_each(|_| counts.add_one(*reason));
        }
        for (times, (reason, count)) in counts.iter().enumerate() {
            assert_eq!(count, times as u64 + 1, "{reason:?}");
            assert_eq!(counts.get(reason), count);
        }
        let sum = counts.total();
        counts += counts;
        assert_eq!(counts.total(), 2 * sum);
    }

    #[test]
    fn counts_are_written_by_name() {
        let written = serde_json::to_value(Refusals::default()).unwrap();
        assert_eq!(written["too_large"], 0);
        assert_eq!(written.as_object().unwrap().len(), RefusalReason::ALL.len());
    }
}
