//! The servers whose words match a tool's tags, the best match first.

use smallvec::SmallVec;

use super::few::FEW;
use super::{any, peak_ewma};
use crate::eligible::Eligible;
use crate::endpoint::Endpoint;
use crate::groups::Groups;
use crate::lane::Lane;

/// Which words of servers are matched with a tool's tags, and how many of them count.
pub(super) struct Matching<'a> {
    pub(super) groups: &'a Groups,
    pub(super) words: fn(&Endpoint) -> &[Box<str>],
    /// More matches than this are no better.
    pub(super) most: usize,
}

/// More of a tool's tags are not looked at.
const TAGS: usize = 8;

impl Matching<'_> {
    /// Chooses the server with the most matches, and of equals as the default strategy does; any other
    /// if none that matches fits.
    pub(super) fn choose(&self, among: &Eligible<'_>) -> Option<usize> {
        let tags = &among.call().plan().route.tags;
        let groups: SmallVec<[&Lane; TAGS]> = tags
            .iter()
            .filter_map(|tag| self.groups.of(tag))
            .take(TAGS)
            .collect();
        let fits = |index| among.fits(index);
        if groups.is_empty() {
            return peak_ewma::choose(among, fits);
        }
        let most = groups.len().min(self.most);
        let matches = |index| self.matches(among, index, tags);
        let found = if among.len() <= FEW {
            (1..=most)
                .rev()
                .find_map(|least| peak_ewma::choose(among, |i| matches(i) >= least && fits(i)))
        } else {
            self.of_many(among, &groups, most, matches)
        };
        found.or_else(|| peak_ewma::choose(among, fits))
    }

    fn of_many(
        &self,
        among: &Eligible<'_>,
        groups: &[&Lane],
        most: usize,
        matches: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        // who has all words is in the smallest group, too
        let smallest = groups.iter().min_by_key(|group| group.at_least(0))?;
        let drawn_from = match most {
            1 => groups,
            _ => std::slice::from_ref(smallest),
        };
        let best = |index: usize| matches(index) >= most && among.fits(index);
        peak_ewma::choose_drawn(among, || draw_two(among, drawn_from), best)
            .or_else(|| self.best_of_all(among, groups, matches))
    }

    /// Looks at each server of the groups, and takes one of those with the most matches.
    fn best_of_all(
        &self,
        among: &Eligible<'_>,
        groups: &[&Lane],
        matches: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        let all = || {
            let places = groups.iter().flat_map(|group| group.all_places());
            places.filter_map(|place| among.index_of(place))
        };
        let most = all()
            .filter(|index| among.fits(*index))
            .map(|index| matches(index).min(self.most))
            .max()?;
        let is_best = |index: &usize| matches(*index).min(self.most) == most && among.fits(*index);
        any::one_of(among, all().filter(is_best))
    }

    fn matches(&self, among: &Eligible<'_>, index: usize, tags: &[Box<str>]) -> usize {
        let Some(server) = among.server(index) else {
            return 0;
        };
        count((self.words)(server), tags)
    }
}

/// Counts the tags that are among a server's words.
fn count(words: &[Box<str>], tags: &[Box<str>]) -> usize {
    tags.iter().filter(|tag| words.contains(tag)).count()
}

/// Draws two servers of any of the groups, each as often as its weight says.
fn draw_two(among: &Eligible<'_>, groups: &[&Lane]) -> Option<(usize, usize)> {
    let weight: u64 = groups.iter().map(|group| group.draw().weight()).sum();
    let one = || {
        let mut point = fastrand::u64(..weight.max(1));
        let group = groups.iter().find(|group| {
            let own = group.draw().weight();
            let is_here = point < own;
            point = point.saturating_sub(own);
            is_here
        });
        let group = group.or_else(|| groups.first())?;
        let place = group.place(group.draw().one(usize::MAX)?);
        // one that is too light for the call is drawn, and not found
        Some(among.index_of(place).unwrap_or(usize::MAX))
    };
    Some((one()?, one()?))
}
