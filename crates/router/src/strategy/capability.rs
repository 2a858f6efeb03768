//! Servers that can do what the tool asks for.

use super::{Strategy, peak_ewma};
use crate::candidates::{Candidates, Places};
use crate::endpoint::Endpoint;

/// The servers whose capabilities match the most of the tool's `tags`; of equals, as
/// [`PeakEwma`](super::PeakEwma) chooses.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Capability;

impl Strategy for Capability {
    fn name(&self) -> &'static str {
        "capability"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let tags = &candidates.call().plan().route.tags;
        let matches = |server: &Endpoint| {
            let own = server.capabilities();
            tags.iter().filter(|tag| own.contains(tag)).count()
        };
        let most = candidates.iter().map(|(_, server)| matches(server)).max()?;
        let best: Places = candidates
            .iter()
            .filter(|(_, server)| matches(server) == most)
            .map(|(index, _)| index)
            .collect();
        peak_ewma::choose(candidates, &best)
    }
}
