//! The better of two, by how long calls take there.

use smallvec::SmallVec;

use super::draw;
use crate::candidates::Candidates;
use crate::ewma::Estimate;

/// Up to this many candidates are all compared: two of a few are often the wrong two.
const FEW: usize = 16;

/// Chooses one of these candidates: see [`StrategyName::PeakEwma`](super::StrategyName::PeakEwma).
pub(super) fn choose(candidates: &Candidates<'_>, among: &[usize]) -> Option<usize> {
    if let [only] = among {
        return Some(*only);
    }
    let two = draw::two(candidates, among)?;
    // the draw has already regarded the weights
    let better = cheapest(candidates, &two, |_| 1.0)?;
    if among.len() > FEW || candidates.in_flight(better) == 0 {
        return Some(better);
    }
    // in turn from the better one, so that equals do not all go to the first
    let start = among.iter().position(|index| *index == better).unwrap_or(0);
    let (before, after) = among.split_at_checked(start)?;
    let in_turn: SmallVec<[usize; FEW]> = after.iter().chain(before).copied().collect();
    cheapest(candidates, &in_turn, |index| {
        candidates.weight(index).max(1) as f64
    })
}

/// Returns the one with the least work for its weight; of equals, the first.
fn cheapest(
    candidates: &Candidates<'_>,
    among: &[usize],
    weight: impl Fn(usize) -> f64,
) -> Option<usize> {
    let known = among.iter().filter_map(|index| {
        let server = candidates.server(*index)?;
        Some((*index, server.state.estimate()))
    });
    let known: SmallVec<[(usize, Estimate); FEW]> = known.collect();
    let mean = mean(&known);
    let cost = |(index, estimate): &(usize, Estimate)| {
        let calls = candidates.in_flight(*index) as f64 + 1.0;
        estimate.towards(mean) * calls * estimate.penalty / weight(*index)
    };
    let best = known
        .iter()
        .min_by(|one, other| cost(one).total_cmp(&cost(other)));
    best.map(|(index, _)| *index)
}

/// Returns the mean of what is known, by how far it is trusted; 1 if nothing is known.
fn mean(known: &[(usize, Estimate)]) -> f64 {
    let (mut sum, mut trust) = (0.0, 0.0);
    for (_, estimate) in known {
        sum += estimate.nanos * estimate.trust;
        trust += estimate.trust;
    }
    if trust > 0.0 { sum / trust } else { 1.0 }
}
