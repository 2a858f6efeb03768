//! Which servers of a set have a word: a category, or a capability.

use std::collections::HashMap;

use crate::endpoint::Endpoint;
use crate::lane::Lane;
use crate::set::QuickMap;

/// Which servers of a set have a word: a category, or a capability. Made once with the snapshot, so that
/// no call has to look for the few that have it among thousands.
#[derive(Debug)]
pub(crate) struct Groups {
    by_word: QuickMap<Box<str>, Lane>,
}

impl Groups {
    /// Reads the words of all servers, which must be heaviest first.
    pub(crate) fn new(endpoints: &[Endpoint], words: impl Fn(&Endpoint) -> &[Box<str>]) -> Self {
        let mut places: HashMap<&str, Vec<u32>> = HashMap::new();
        for (place, endpoint) in (0u32..).zip(endpoints) {
            for word in words(endpoint) {
                let group = places.entry(word).or_default();
                // a word may be there twice
                if group.last() != Some(&place) {
                    group.push(place);
                }
            }
        }
        let groups = places.into_iter().map(|(word, places)| {
            let lane = Lane::of_places(endpoints, places.into(), None);
            (word.into(), lane)
        });
        Self {
            by_word: groups.collect(),
        }
    }

    /// Finds the servers that have a word.
    pub(crate) fn of(&self, word: &str) -> Option<&Lane> {
        self.by_word.get(word)
    }
}
