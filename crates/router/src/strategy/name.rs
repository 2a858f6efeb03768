//! The strategies that can be asked for by name.

use std::sync::Arc;

use callward_core::words;

use super::{Affinity, Strategy, draw, peak_ewma};
use crate::candidates::{Candidates, Places};
use crate::endpoint::Endpoint;

words! {
    /// A strategy that comes with the router, by the name that configs use.
    ///
    /// ```
    /// use callward_router::StrategyName;
    ///
    /// assert_eq!(serde_json::to_string(&StrategyName::default())?, r#""peak_ewma""#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[non_exhaustive]
    StrategyName {
        /// Calls that belong together go to one server: see [`Affinity`]; with the default settings
        /// if none are given.
        Affinity = "affinity",
        /// The servers whose capabilities match the most of the tool's `tags`; of equals, as
        /// `peak_ewma` chooses.
        Capability = "capability",
        /// The servers in a category that is one of the tool's `tags`; of those, as `peak_ewma`
        /// chooses. The others are chosen where there is none.
        Category = "category",
        /// The better of two servers that are drawn by weight: the one that is expected to answer
        /// sooner.
        ///
        /// What a server costs is how long calls take there, as a peak-sensitive moving average,
        /// times the calls in flight, this one included, as in Finagle's and linkerd's balancers.
        /// Two choices keep queues short whatever the size of the set (Mitzenmacher, "The Power of
        /// Two Choices in Randomized Load Balancing", 2001). Where both are busy and there are up
        /// to 16 candidates, all are compared.
        ///
        /// An unknown server counts as the mean of those it is compared with, not as free. One that
        /// fails seems three times as costly with each consecutive failure, however quickly it
        /// fails.
        PeakEwma = "peak_ewma",
        /// The server with the fewest calls in flight for its weight; equals take turns by weight.
        LeastConnections = "least_connections",
        /// The heaviest server, and the next one when that is not available. Of equals, the one
        /// that was added first.
        Priority = "priority",
        /// Any server, each as often as its weight says.
        Random = "random",
        /// Each server in turn, whatever the weights and whatever the tool: of as many consecutive
        /// calls as there are candidates, each gets one.
        RoundRobin = "round_robin",
        /// Each server in turn, in proportion to its weight, and spread: of as many consecutive
        /// calls as all weights together, each gets as many as its weight.
        ///
        /// Weights with a common divisor need as many times fewer calls: among 50, 50 and 25, five.
        Weighted = "weighted",
    } default PeakEwma
}

impl StrategyName {
    /// Makes the strategy.
    #[must_use]
    pub fn strategy(self) -> Arc<dyn Strategy> {
        match self {
            Self::Affinity => Arc::new(Affinity::default()),
            other => Arc::new(Stateless(other)),
        }
    }
}

/// Any strategy but [`Affinity`]: it keeps nothing of its own.
#[derive(Debug)]
struct Stateless(StrategyName);

impl Strategy for Stateless {
    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let tags = &candidates.call.plan().route.tags;
        match self.0 {
            StrategyName::Affinity | StrategyName::PeakEwma => {
                peak_ewma::choose(candidates, &candidates.indexes())
            }
            StrategyName::Capability => best_match(candidates, |server| {
                let own = &server.capabilities;
                tags.iter().filter(|tag| own.contains(tag)).count()
            }),
            StrategyName::Category => best_match(candidates, |server| {
                let mut own = server.categories.iter();
                usize::from(own.any(|own| tags.contains(own)))
            }),
            StrategyName::LeastConnections => least_connections(candidates),
            // heaviest first
            StrategyName::Priority => (!candidates.is_empty()).then_some(0),
            StrategyName::Random => draw::one(candidates, &candidates.indexes()),
            StrategyName::RoundRobin => {
                let count = u64::try_from(candidates.len()).ok()?;
                usize::try_from(candidates.turn().checked_rem(count)?).ok()
            }
            StrategyName::Weighted => draw::in_turn(candidates, candidates.turn()),
        }
    }
}

/// Chooses among the servers that match most.
fn best_match(candidates: &Candidates<'_>, matches: impl Fn(&Endpoint) -> usize) -> Option<usize> {
    let most = candidates.iter().map(|(_, server)| matches(server)).max()?;
    let best = candidates
        .iter()
        .filter(|(_, server)| matches(server) == most);
    let best: Places = best.map(|(index, _)| index).collect();
    peak_ewma::choose(candidates, &best)
}

fn least_connections(candidates: &Candidates<'_>) -> Option<usize> {
    // without turns, the first would get every call as long as nothing is in flight
    let first = draw::in_turn(candidates, candidates.turn())?;
    let load = |index: &usize| {
        let weight = candidates.weight(*index).max(1) as f64;
        candidates.in_flight(*index) as f64 / weight
    };
    let in_turn = (first..candidates.len()).chain(0..first);
    in_turn.min_by(|one, other| load(one).total_cmp(&load(other)))
}
