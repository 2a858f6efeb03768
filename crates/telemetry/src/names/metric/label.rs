//! Attributes that metrics have and spans do not. What both have is in [`names`](crate::names).
//!
//! Each is one word of a bounded set. Principals, sessions, keys and whatever else a caller can
//! make up are attributes of no metric.

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
    OUTCOME = "callward.outcome" "what became of a call or of an attempt to help it, or what was said to it";
    OVERFLOW = "otel.metric.overflow" "`true` where all that is beyond the limit of series comes together";
    REASON = "callward.reason" "why something was not done";
    RESULT = "callward.result" "what came of a look-up, a refresh, a check, a repeat or a listing";
    SCOPE = "callward.scope" "what a limit or a breaker stands before";
    STATE = "callward.state" "what a breaker or a server is in";
}
