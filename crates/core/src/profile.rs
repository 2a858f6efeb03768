//! Named presets over the table that turns hints into a plan.

use std::time::Duration;

/// How hints become a plan: every number and switch of the table, as data.
///
/// | | `standard` | `strict` |
/// | --- | --- | --- |
/// | absent `destructiveHint` of a tool that is not read-only | harmless | destructive |
/// | asks before mutating calls | no | yes |
/// | read-only results are kept | 300 s | 300 s |
/// | idempotent results are kept | 5 s | 5 s |
/// | weight a destructive call needs | 50 | 50 |
///
/// `strict` takes the pessimistic defaults of the MCP specification (schema 2025-03-26 and later,
/// `ToolAnnotations`).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// The preset's name, as written in a config.
    pub name: &'static str,
    /// A tool that is neither read-only nor says `destructiveHint` counts as destructive.
    pub absent_is_destructive: bool,
    /// Mutating calls ask for confirmation too.
    pub confirm_mutating: bool,
    /// How long a read-only result is kept.
    pub read_ttl: Duration,
    /// How long an idempotent write's result is kept; `None` turns that off.
    pub idempotent_ttl: Option<Duration>,
    /// The least weight of a server that may get a destructive call.
    pub primary_weight: u32,
    /// Tools that are destructive *and* idempotent are repeated.
    pub repeat_destructive_idempotent: bool,
    /// The attempt timeout of a tool that does not say how long it takes.
    pub attempt_timeout: Duration,
    /// `estimatedDuration` times this is the attempt timeout of a tool that does.
    pub timeout_factor: u32,
    /// The first backoff of a tool that does not say how long it takes.
    pub first_backoff: Duration,
}

impl Profile {
    /// Returns the default: useful without configuration, safe where a hint is missing.
    #[must_use]
    pub const fn standard() -> Self {
        Self {
            name: "standard",
            absent_is_destructive: false,
            confirm_mutating: false,
            read_ttl: Duration::from_secs(300),
            idempotent_ttl: Some(Duration::from_secs(5)),
            primary_weight: 50,
            repeat_destructive_idempotent: false,
            attempt_timeout: Duration::from_secs(60),
            timeout_factor: 10,
            first_backoff: Duration::from_millis(100),
        }
    }

    /// Returns the MCP specification's pessimistic defaults: what is not declared harmless is not.
    #[must_use]
    pub const fn strict() -> Self {
        Self {
            name: "strict",
            absent_is_destructive: true,
            confirm_mutating: true,
            ..Self::standard()
        }
    }

    /// Finds a preset by its name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::standard(), Self::strict()]
            .into_iter()
            .find(|profile| profile.name == name)
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::standard()
    }
}
