//! All servers of a small set, compared.

use smallvec::SmallVec;

/// Sets of up to so many servers are compared whole where that pays. Twice as many cost twice as much,
/// and two drawn of more are the better the more there are to draw from.
pub(super) const FEW: usize = 16;

/// Takes the cheapest of a few that is wanted. Of equals, the first that is told.
pub(super) fn cheapest(
    costs: impl Iterator<Item = (usize, f64)>,
    wanted: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut costs: SmallVec<[(usize, f64); FEW]> = costs.take(FEW).collect();
    // whether it fits is dearer to know than what it costs
    while let Some(place) = least(&costs) {
        let (index, _) = costs.remove(place);
        if wanted(index) {
            return Some(index);
        }
    }
    None
}

fn least(costs: &[(usize, f64)]) -> Option<usize> {
    let places = costs.iter().enumerate();
    let (place, _) = places.min_by(|(_, (_, one)), (_, (_, other))| one.total_cmp(other))?;
    Some(place)
}

/// Numbers them all, beginning with this one.
pub(super) fn starting_at(first: usize, len: usize) -> impl Iterator<Item = usize> {
    (first..len).chain(0..first.min(len))
}
