//! Servers that can do what the tool asks for.

use callward_core::ToolCall;
use serde::{Deserialize, Serialize};

use super::{Strategy, peak_ewma};
use crate::candidates::{Candidates, Places};
use crate::endpoint::Endpoint;
use crate::rule::ExclusionReason;

/// The servers whose capabilities match the most of the tool's `tags`; of equals, as
/// [`PeakEwma`](super::PeakEwma) chooses.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Capability {
    /// How a server that lacks a capability is treated. Default: it comes last.
    pub lacking: Lacking,
}

/// How a server is treated that lacks a capability which is one of the tool's tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "such a server may be chosen, or not"
)]
pub enum Lacking {
    /// It comes after those that lack fewer: not every tag is something the tool needs.
    #[default]
    Last,
    /// It is no candidate: the tool needs every tag.
    Excluded,
}

impl Capability {
    /// Makes it with how servers that lack a capability are treated.
    #[must_use]
    pub const fn new(lacking: Lacking) -> Self {
        Self { lacking }
    }
}

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

    fn admits(&self, call: &ToolCall, server: &Endpoint) -> Result<(), ExclusionReason> {
        let tags = &call.plan().route.tags;
        let has_all = || tags.iter().all(|tag| server.capabilities().contains(tag));
        match self.lacking {
            Lacking::Excluded if !has_all() => Err(ExclusionReason::LacksCapability),
            Lacking::Excluded | Lacking::Last => Ok(()),
        }
    }
}
