//! The better of two, by what calls take there.

use smallvec::SmallVec;

use super::few::{self, FEW};
use super::{Strategy, any};
use crate::eligible::Eligible;
use crate::endpoint::Endpoint;
use crate::ewma::Estimate;

/// The better of two servers that are drawn by weight: the one where the call is expected to take less
/// time, and that has less to do.
///
/// What a server costs is what the tool takes there, as a peak-sensitive moving average, times the calls
/// in flight, this one included, as in Finagle's and linkerd's balancers. Two choices are enough to keep
/// queues short whatever the size of the set, and let nobody run after one server that looks idle
/// (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001).
///
/// Where both of the two are busy and the set has up to 16 servers, all are compared: two of a few are
/// often the wrong two. Their calls in flight are then measured by weight.
///
/// A server that nobody knows, or of which nothing was heard for long, counts as the mean of those it is
/// compared with, not as free. One that fails seems three times as costly with each failure in a row,
/// however quickly it fails.
#[derive(Debug, Clone, Default)]
pub struct PeakEwma {
    _private: (),
}

impl PeakEwma {
    /// Makes it with its defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { _private: () }
    }
}

impl Strategy for PeakEwma {
    fn name(&self) -> &'static str {
        "peak_ewma"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        choose(among, |index| among.fits(index))
    }
}

/// Chooses among those that are `wanted`, all of which fit.
pub(super) fn choose(among: &Eligible<'_>, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    if among.len() == 1 {
        // whatever would be drawn, and however it compares
        return wanted(0).then_some(0);
    }
    if among.len() <= FEW {
        return of_two_or_few(among, wanted);
    }
    choose_drawn(among, || among.draw_two(), &wanted).or_else(|| any::by_weight(among, &wanted))
}

/// Chooses among those that are drawn, a few times.
pub(super) fn choose_drawn(
    among: &Eligible<'_>,
    draw_two: impl Fn() -> Option<(usize, usize)>,
    wanted: impl Fn(usize) -> bool,
) -> Option<usize> {
    for _ in 0..PAIRS {
        let (one, other) = draw_two()?;
        let two = in_order(among, [one, other]);
        if let Some(index) = two.into_iter().find(|index| wanted(*index)) {
            return Some(index);
        }
    }
    None
}

fn of_two_or_few(among: &Eligible<'_>, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    let (one, other) = among.draw_two()?;
    if among.is_fallback() {
        // how busy a server is that has refused must not matter, or nobody could tell who is next
        return of_few(among, one, wanted);
    }
    let [first, second] = in_order(among, [one, other]);
    let is_idle = among.server(first).is_some_and(|s| s.in_flight() == 0);
    if is_idle && wanted(first) {
        return Some(first);
    }
    let begin = if is_idle { second } else { first };
    of_few(among, begin, wanted)
}

/// Puts the better of two first.
fn in_order(among: &Eligible<'_>, two: [usize; 2]) -> [usize; 2] {
    let [one, other] = two;
    if one == other {
        return two;
    }
    // as `estimates`, without a list: every call comes here
    let mut known = two.map(|index| among.of_tool(index));
    if known.iter().all(|estimate| estimate.trust <= 0.0) {
        known = two.map(|index| among.of_all(index));
    }
    let (mean, [own, others]) = (mean(&known), &known);
    // the draw has already seen to the weights
    let cost = |index, estimate| {
        let server = among.server(index);
        server.map_or(f64::INFINITY, |server| work(server, estimate, mean))
    };
    match cost(other, others) < cost(one, own) {
        true => [other, one],
        false => two,
    }
}

/// Compares all of a small set. Of equals, the first is taken, if it is one of them.
fn of_few(among: &Eligible<'_>, first: usize, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    let indexes: SmallVec<[usize; FEW]> = few::starting_at(first, among.len()).take(FEW).collect();
    let known = estimates(among, &indexes);
    let mean = mean(&known);
    let cost = |(index, estimate): (usize, &Estimate)| {
        let server = among.server(index)?;
        // one that has just come has a part of its weight
        let weight = f64::from(server.weight().get().max(1)) * server.share();
        Some((index, work(server, estimate, mean) / weight))
    };
    few::cheapest(indexes.into_iter().zip(&known).filter_map(cost), wanted)
}

/// Returns what is known of servers: of this tool, or of all their calls where no one is known by this
/// tool. Never of one by the tool and of another by all, which would compare different things.
fn estimates(among: &Eligible<'_>, indexes: &[usize]) -> SmallVec<[Estimate; FEW]> {
    let of_tool: SmallVec<_> = indexes.iter().map(|index| among.of_tool(*index)).collect();
    if of_tool
        .iter()
        .any(|estimate: &Estimate| estimate.trust > 0.0)
    {
        return of_tool;
    }
    indexes.iter().map(|index| among.of_all(*index)).collect()
}

/// Returns the mean of what is known, by how far it is trusted; 1 if nothing is, as then all are alike.
fn mean(estimates: &[Estimate]) -> f64 {
    let (mut sum, mut trust) = (0.0, 0.0);
    for estimate in estimates {
        sum += estimate.nanos * estimate.trust;
        trust += estimate.trust;
    }
    if trust > 0.0 { sum / trust } else { 1.0 }
}

/// Returns the time that a server needs for what it has to do and this call, to compare it with others.
fn work(server: &Endpoint, estimate: &Estimate, mean: f64) -> f64 {
    let calls = server.in_flight() as f64 + 1.0;
    estimate.towards(mean) * calls * estimate.penalty
}

/// So many pairs are drawn before all servers are looked at.
const PAIRS: usize = 4;
