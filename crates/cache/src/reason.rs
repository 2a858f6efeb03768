//! Why a call was not looked up, a result not kept, an entry removed: names and counts.

use callward_core::words;
use serde::{Serialize, Serializer};

/// Makes a count for each reason, which is its place in the array.
macro_rules! counts {
    ($(#[$doc:meta])* $counts:ident of $reason:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $counts([u64; $reason::ALL.len()]);

        impl $counts {
            pub(crate) fn add_one(&mut self, reason: $reason) {
                self.0[reason as usize] += 1;
            }

            /// Returns how often this reason was met.
            #[must_use]
            pub const fn get(&self, reason: $reason) -> u64 {
                self.0[reason as usize]
            }

            /// Returns each reason and how often it was met.
            pub fn iter(&self) -> impl Iterator<Item = ($reason, u64)> {
                $reason::ALL.iter().copied().zip(self.0)
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
                to.collect_map(self.iter())
            }
        }
    };
}

words! {
    /// Why a call was sent without a look-up.
    #[non_exhaustive]
    BypassReason {
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
        /// It is a further round, with answers of the client.
        Round = "round",
    }
}

counts! {
    /// How often calls were sent without a look-up, by reason.
    Bypasses of BypassReason
}

words! {
    /// Why a result was not kept.
    #[non_exhaustive]
    RefusalReason {
        /// The call failed.
        Failed = "failed",
        /// The tool itself reported failure.
        ToolError = "tool_error",
        /// It is a round of an exchange that goes on.
        Incomplete = "incomplete",
        /// The client was asked something for it.
        Asked = "asked",
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

counts! {
    /// How often results were not kept, by reason.
    Refusals of RefusalReason
}

words! {
    /// Why the store removed an entry.
    #[non_exhaustive]
    EvictionCause {
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

counts! {
    /// How often entries were removed, by cause.
    Evictions of EvictionCause
}
