//! Protocol revisions, and the two eras they fall into.

/// The revision that begins the modern era: no handshake, no sessions, metadata on each request.
pub(super) const MODERN: &str = "2026-07-28";

/// The newest revision with an `initialize` handshake.
pub(super) const NEWEST_LEGACY: &str = "2025-11-25";

/// Every revision served, newest first.
pub(super) const KNOWN: [&str; 5] = [
    MODERN,
    NEWEST_LEGACY,
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
];

/// How one request is served; chosen per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Revisions up to 2025-11-25: `initialize`, sessions, a stream of notifications.
    Legacy,
    /// From 2026-07-28: each request stands alone.
    Modern,
}

/// Says whether a revision is served.
pub(super) fn is_known(version: &str) -> bool {
    KNOWN.contains(&version)
}

/// Says whether a revision, known or not, belongs to the modern era. Revisions are dates, so the
/// order of their texts is the order of time.
pub(super) fn is_modern(version: &str) -> bool {
    version >= MODERN
}

/// Answers the revision asked for in `initialize`: the same if it has a handshake and is known,
/// else the newest that has one.
pub(super) fn negotiate(asked: &str) -> &'static str {
    KNOWN
        .into_iter()
        .find(|known| *known == asked && !is_modern(known))
        .unwrap_or(NEWEST_LEGACY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_legacy_revision_is_echoed_and_anything_else_gets_the_newest() {
        for (asked, answered) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(negotiate(asked), answered, "{asked}");
        }
    }
}
