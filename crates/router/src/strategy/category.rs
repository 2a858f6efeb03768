//! Servers of a category that the tool names.

use super::{Strategy, peak_ewma};
use crate::candidates::{Candidates, Places};

/// The servers in a category that is one of the tool's `tags`; of those, as
/// [`PeakEwma`](super::PeakEwma) chooses. The others are chosen where there is none.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Category;

impl Strategy for Category {
    fn name(&self) -> &'static str {
        "category"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let tags = &candidates.call().plan().route.tags;
        let of_category: Places = candidates
            .iter()
            .filter(|(_, server)| server.categories().iter().any(|own| tags.contains(own)))
            .map(|(index, _)| index)
            .collect();
        match of_category.is_empty() {
            true => peak_ewma::choose(candidates, &candidates.indexes()),
            false => peak_ewma::choose(candidates, &of_category),
        }
    }
}
