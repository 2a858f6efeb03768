//! Attributes that metrics have and spans do not. What both have is in [`names`](crate::names).
//!
//! Each is one word of a bounded set. Principals, sessions, keys and other values that a caller
//! can invent are never attributes.

/// Writes each name as a constant, and all of them as [`ALL`].
macro_rules! labels {
    ($($constant:ident = $name:literal $values:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $values, ".")]
            pub const $constant: &str = $name;
        )*
        /// All of them, each with its values.
        pub const ALL: &[(&str, &str)] = &[$(($name, $values)),*];
    };
}

labels! {
    KIND = "callward.kind" "what a question asks for";
    OUTCOME = "callward.outcome" "the outcome of a call, retry, confirmation, question or delivery";
    OVERFLOW = "otel.metric.overflow" "`true` for the series that sums what exceeds the limit of series";
    REASON = "callward.reason" "why something was not done";
    RESULT = "callward.result" "the result of a lookup, a refresh, a check, a repetition or a listing";
    SCOPE = "callward.scope" "what a limit or a breaker protects";
    STATE = "callward.state" "the state of a breaker or a server";
}
