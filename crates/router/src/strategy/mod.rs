//! How calls are spread over servers that are equally fit for them.

mod affinity;
mod any;
mod capability;
mod category;
mod few;
mod least_connections;
mod matching;
mod name;
mod peak_ewma;
mod priority;
mod random;
mod round_robin;
mod weighted;

use std::fmt;

pub use affinity::Affinity;
pub use capability::{Capability, Lacking};
pub use category::Category;
pub use least_connections::LeastConnections;
pub use name::StrategyName;
pub use peak_ewma::PeakEwma;
pub use priority::Priority;
pub use random::Random;
pub use round_robin::RoundRobin;
pub use weighted::Weighted;

use callward_core::ToolCall;

use crate::eligible::Eligible;
use crate::endpoint::Endpoint;
use crate::unfit::Unfit;

/// Chooses among the servers that may get a call.
///
/// A strategy is asked for one server at a time, best first: where that one refuses the call at its
/// own gate, the strategy is asked again and the one that refused fits no more. So its answers are a
/// list of candidates in order, of which mostly the head alone is needed, and a fallback needs no
/// second rule.
///
/// What it is shown are the servers that the annotation rule admits. It chooses among them and cannot
/// choose beside them. One that [does not fit](Eligible::fits) is not taken, and the heaviest that
/// fits is, instead.
///
/// It is asked on the path of every call: it should look at few servers, and neither block nor
/// allocate.
///
/// ```
/// use callward_router::{Eligible, Strategy};
///
/// /// Keeps calls in one zone as long as a server there is fit.
/// #[derive(Debug)]
/// struct Near(&'static str);
///
/// impl Strategy for Near {
///     fn name(&self) -> &'static str {
///         "near"
///     }
///
///     fn next(&self, among: &Eligible<'_>) -> Option<usize> {
///         let is_far = |zone: Option<&str>| zone != Some(self.0);
///         let (index, _) = among
///             .fit()
///             .min_by_key(|(_, server)| (is_far(server.zone()), server.in_flight()))?;
///         Some(index)
///     }
/// }
/// ```
pub trait Strategy: fmt::Debug + Send + Sync + 'static {
    /// Names the strategy in decisions, spans and tables, as `round_robin`.
    fn name(&self) -> &'static str;

    /// Returns the number of the best server that fits; `None` if none does.
    fn next(&self, among: &Eligible<'_>) -> Option<usize>;

    /// Says whether a server may get a call at all, as far as the strategy is concerned. One that may
    /// not fits never, whatever else there is. Default: each may.
    ///
    /// # Errors
    ///
    /// [`Unfit`]: what speaks against it.
    fn admits(&self, call: &ToolCall, server: &Endpoint) -> Result<(), Unfit> {
        let _ = (call, server);
        Ok(())
    }
}
