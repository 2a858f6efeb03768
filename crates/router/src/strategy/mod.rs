//! How calls are spread over the servers that may get them.

mod affinity;
mod draw;
mod name;
mod peak_ewma;

use std::fmt;

pub use affinity::Affinity;
pub use name::StrategyName;

use crate::candidates::Candidates;

/// Chooses among the servers that a call may go to.
///
/// A strategy is asked for one server at a time, best first. If that one refuses the call with
/// nothing sent, the strategy is asked again, without it. It is called for every call, so it should
/// neither block nor be slow.
///
/// ```
/// use callward_router::{Candidates, Strategy};
///
/// /// Keeps calls in one zone as long as a server there is available.
/// #[derive(Debug)]
/// struct Near(&'static str);
///
/// impl Strategy for Near {
///     fn name(&self) -> &'static str {
///         "near"
///     }
///
///     fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
///         let is_far = |zone: Option<&str>| zone != Some(self.0);
///         let (index, _) = candidates
///             .iter()
///             .min_by_key(|(_, server)| (is_far(server.zone.as_deref()), server.in_flight()))?;
///         Some(index)
///     }
/// }
/// ```
pub trait Strategy: fmt::Debug + Send + Sync + 'static {
    /// Names the strategy in decisions, spans and tables, as `round_robin`.
    fn name(&self) -> &'static str;

    /// Returns the number of the best candidate. `None`, or a number that is not there, stands for
    /// the heaviest.
    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize>;
}
