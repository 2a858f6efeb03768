//! Servers of a category that the tool names.

use super::Strategy;
use super::matching::Matching;
use crate::eligible::Eligible;
use crate::endpoint::Endpoint;

/// The servers in a category that is one of the tool's `tags`; of those, as
/// [`PeakEwma`](super::PeakEwma) chooses.
///
/// The others come after them, and at once where no category is named. The first eight tags that some
/// server has as a category are looked at.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Category;

impl Strategy for Category {
    fn name(&self) -> &'static str {
        "category"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        let matching = Matching {
            groups: among.categories(),
            words: Endpoint::categories,
            most: 1,
        };
        matching.choose(among)
    }
}
