//! Servers that can do what the tool asks for.

use callward_core::ToolCall;
use serde::{Deserialize, Serialize};

use super::Strategy;
use super::matching::Matching;
use crate::eligible::Eligible;
use crate::endpoint::Endpoint;
use crate::unfit::Unfit;

/// The servers whose capabilities match the tool's `tags`, those with the most matches first; of equals,
/// as [`PeakEwma`](super::PeakEwma) chooses.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Capability {
    /// What becomes of servers that lack one. Default: they come last.
    pub lacking: Lacking,
}

/// What becomes of a server that lacks a capability which is one of the tool's tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "such a server may be chosen, or not"
)]
pub enum Lacking {
    /// It comes after those that lack fewer: tags may say more of a tool than what it needs.
    #[default]
    Last,
    /// It is no candidate: every tag is a thing the tool cannot do without.
    Excluded,
}

impl Capability {
    /// Makes it with what becomes of servers that lack a capability.
    #[must_use]
    pub const fn new(lacking: Lacking) -> Self {
        Self { lacking }
    }
}

impl Strategy for Capability {
    fn name(&self) -> &'static str {
        "capability"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        let matching = Matching {
            groups: among.capabilities(),
            words: Endpoint::capabilities,
            most: usize::MAX,
        };
        matching.choose(among)
    }

    fn admits(&self, call: &ToolCall, server: &Endpoint) -> Result<(), Unfit> {
        let tags = &call.plan().route.tags;
        let has_all = || tags.iter().all(|tag| server.capabilities().contains(tag));
        match self.lacking {
            Lacking::Excluded if !has_all() => Err(Unfit::LacksCapability),
            Lacking::Excluded | Lacking::Last => Ok(()),
        }
    }
}
