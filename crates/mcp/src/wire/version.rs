//! Protocol revisions, and their two eras.

/// The newest supported revision: no handshake, no sessions.
pub(crate) const LATEST: &str = "2026-07-28";

/// The newest revision that begins with `initialize`.
pub(crate) const LATEST_LEGACY: &str = "2025-11-25";

/// Every supported revision, oldest first.
pub(crate) const KNOWN_VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    LATEST_LEGACY,
    LATEST,
];

/// Which of the two protocols a peer speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a revision has a handshake or it has none"
)]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, sessions, requests from the server.
    Legacy,
    /// From 2026-07-28: each request states its own context in `_meta`.
    Modern,
}

impl Era {
    /// Returns the era of a revision. Revisions are dates, so an unknown one is placed by its date.
    #[must_use]
    pub fn of(version: &str) -> Self {
        match version >= LATEST {
            true => Self::Modern,
            false => Self::Legacy,
        }
    }
}

/// Finds a supported revision.
pub(crate) fn known(version: &str) -> Option<&'static str> {
    KNOWN_VERSIONS.into_iter().find(|known| *known == version)
}
