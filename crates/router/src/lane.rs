//! A list of a set's servers that calls choose from, heaviest first.

use std::sync::Arc;

use callward_core::Weight;

use crate::draw::Draw;
use crate::endpoint::Endpoint;
use crate::turn::Turns;

/// A list of a set's servers that calls choose from, heaviest first: all of them, or those of the
/// categories that some tools prefer.
///
/// Made once with the snapshot, so that no call has to look for the few caching servers among
/// thousands.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Places in the set's own list; nothing for the lane of all.
    places: Option<Box<[u32]>>,
    /// How many are of each weight or more, by weight.
    at_least: Box<[u32]>,
    draw: Draw,
    turns: Arc<Turns>,
}

impl Lane {
    /// Takes all servers, which must be heaviest first. `turns` goes on from an earlier snapshot.
    pub(crate) fn of_all(endpoints: &[Endpoint], turns: Option<&Self>) -> Self {
        Self {
            places: None,
            at_least: at_least(endpoints.iter()),
            draw: draw(endpoints.iter()),
            turns: turns.map_or_else(Arc::default, |lane| lane.turns.clone()),
        }
    }

    /// Takes those in one of these categories, if there are any.
    pub(crate) fn of_categories(
        endpoints: &[Endpoint],
        categories: &[&'static str],
        turns: Option<&Self>,
    ) -> Option<Self> {
        let places: Box<[u32]> = (0u32..)
            .zip(endpoints)
            .filter(|(_, endpoint)| endpoint.is_in(categories))
            .map(|(place, _)| place)
            .collect();
        (!places.is_empty()).then(|| Self::of_places(endpoints, places, turns))
    }

    /// Takes those that stand at these places of the set.
    pub(crate) fn of_places(
        endpoints: &[Endpoint],
        places: Box<[u32]>,
        turns: Option<&Self>,
    ) -> Self {
        let chosen = || places.iter().filter_map(|p| endpoints.get(*p as usize));
        Self {
            at_least: at_least(chosen()),
            draw: draw(chosen()),
            turns: turns.map_or_else(Arc::default, |lane| lane.turns.clone()),
            places: Some(places),
        }
    }

    /// Returns where in the set all servers of the lane stand.
    pub(crate) fn all_places(&self) -> impl Iterator<Item = usize> {
        (0..self.at_least(0)).map(|index| self.place(index))
    }

    /// Returns how many servers are of this weight or more: the first of the lane.
    pub(crate) fn at_least(&self, weight: u32) -> usize {
        // nothing is heavier than the heaviest weight
        self.at_least
            .get(weight as usize)
            .map_or(0, |count| *count as usize)
    }

    /// Returns where in the set a server of the lane stands.
    pub(crate) fn place(&self, index: usize) -> usize {
        match &self.places {
            None => index,
            Some(places) => places
                .get(index)
                .map_or(usize::MAX, |place| *place as usize),
        }
    }

    /// Returns what servers of the lane are drawn from.
    pub(crate) fn draw(&self) -> &Draw {
        &self.draw
    }

    /// Returns where in the lane the server stands that has this place in the set.
    pub(crate) fn index(&self, place: usize) -> Option<usize> {
        match &self.places {
            None => Some(place),
            // both lists are heaviest first
            Some(places) => places.binary_search(&u32::try_from(place).ok()?).ok(),
        }
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }
}

fn draw<'a>(endpoints: impl Iterator<Item = &'a Endpoint>) -> Draw {
    Draw::new(endpoints.map(|endpoint| endpoint.weight().get()))
}

fn at_least<'a>(endpoints: impl Iterator<Item = &'a Endpoint>) -> Box<[u32]> {
    let mut counts = vec![0u32; Weight::MAX.get() as usize + 1];
    for endpoint in endpoints {
        let own = endpoint.weight().get() as usize;
        for count in counts.iter_mut().take(own + 1) {
            *count += 1;
        }
    }
    counts.into()
}
