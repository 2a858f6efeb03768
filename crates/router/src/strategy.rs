//! How calls are spread over servers that are equally fit.

use serde::{Deserialize, Serialize};

/// How calls are spread over the servers that are equally fit for them.
///
/// The default is [`LeastConnections`](Self::LeastConnections): tools differ in duration by orders
/// of magnitude, so equal shares of calls are not equal shares of work, and a server that hangs
/// keeps its calls in flight and so gets no more of them. While nothing is in flight it spreads
/// calls exactly as [`Weighted`](Self::Weighted) does.
///
/// ```
/// use tollgate_router::Strategy;
///
/// assert_eq!(serde_json::to_string(&Strategy::default())?, r#""least_connections""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strategy {
    /// The fewest calls in flight for the member's weight; ties as in [`Weighted`](Self::Weighted).
    #[default]
    LeastConnections,
    /// Each in turn, whatever the weights.
    RoundRobin,
    /// Each in proportion to its weight, exact over a cycle, and spread evenly within it.
    Weighted,
}

impl Strategy {
    /// Returns the words that name the strategy as the reason of a choice.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::LeastConnections => "least connections",
            Self::RoundRobin => "round robin",
            Self::Weighted => "weighted",
        }
    }
}
