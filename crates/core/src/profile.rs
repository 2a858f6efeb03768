//! Named presets over the table that turns hints into a plan.

use std::time::Duration;

use crate::{AuditScope, Lifetime};

/// How hints become a plan: every number and switch of the table, as data.
///
/// | | `standard` | `strict` | `neurolink` | `mcpgate` | `epd` |
/// | --- | --- | --- | --- | --- | --- |
/// | absent `destructiveHint` of a tool that is not read-only | harmless | destructive | harmless | harmless | harmless |
/// | the four hints are read as one of three [categories](crate::Category) | no | no | no | yes | no |
/// | asks before mutating calls | no | yes | no | no | no |
/// | read-only results are kept at most | 300 s | 300 s | 300 s | 300 s | 300 s |
/// | idempotent results are kept at most | 5 s | 5 s | 5 s | no | 5 s |
/// | repeats what is destructive and idempotent | no | no | no | no | yes |
/// | records calls by their effect | none | none | none | none | none |
/// | records each call into an open world | no | no | no | no | yes |
/// | first pause before a repeat | 100 ms | 100 ms | 1 s | 100 ms | 100 ms |
/// | weight a destructive call needs | 50 | 50 | 50 | 50 | 50 |
///
/// `strict` takes the pessimistic defaults of the MCP specification (schema 2025-03-26 and later,
/// `ToolAnnotations`). The last three follow the documentation of the systems they are named after,
/// for users who migrate from one; what such a system leaves open is as in `standard`. Every
/// profile asks before a destructive call, and refuses it where no server of that weight is
/// healthy.
///
/// A profile is data: change a field of a preset to make your own.
///
/// ```
/// use std::time::Duration;
/// use callward_core::Profile;
///
/// let mut patient = Profile::by_name("epd").unwrap();
/// patient.attempt_timeout = Duration::from_secs(120);
/// assert!(patient.retry_destructive_idempotent);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// The preset's name, as written in a config.
    pub name: &'static str,
    /// A tool that is neither read-only nor says `destructiveHint` counts as destructive.
    pub absent_is_destructive: bool,
    /// The four hints of the MCP specification are read as one of three categories, and the tool
    /// gets the hints of its [`Category`](crate::Category) instead of its own.
    pub by_category: bool,
    /// Mutating calls ask for confirmation too.
    pub confirm_mutating: bool,
    /// Whether any result is kept.
    pub caches: bool,
    /// How long a read-only result is kept at most.
    pub read_ttl: Duration,
    /// What decides how long a read-only result is kept.
    pub read_lifetime: Lifetime,
    /// How long an idempotent write's result is kept at most; `None` turns that off.
    pub idempotent_ttl: Option<Duration>,
    /// What decides how long an idempotent write's result is kept.
    pub idempotent_lifetime: Lifetime,
    /// The least weight of a server that may get a destructive call.
    pub primary_weight: u32,
    /// Tools that are destructive *and* idempotent are repeated.
    pub retry_destructive_idempotent: bool,
    /// Which calls leave a full audit record because of their effect.
    pub audit: AuditScope,
    /// Each call that may reach into an open world leaves an audit record.
    pub audit_open_world: bool,
    /// The attempt timeout of a tool without `estimatedDuration`.
    pub attempt_timeout: Duration,
    /// `estimatedDuration` times this is the attempt timeout of a tool that has it.
    pub timeout_factor: u32,
    /// The first backoff of a tool without `estimatedDuration`.
    pub first_backoff: Duration,
}

impl Profile {
    /// The names of all presets.
    pub const NAMES: &[&str] = &["standard", "strict", "neurolink", "mcpgate", "epd"];

    /// Returns the default: useful without configuration, safe where a hint is missing.
    pub const fn standard() -> Self {
        Self {
            name: "standard",
            absent_is_destructive: false,
            by_category: false,
            confirm_mutating: false,
            caches: true,
            read_ttl: Duration::from_secs(300),
            read_lifetime: Lifetime::Fixed,
            idempotent_ttl: Some(Duration::from_secs(5)),
            idempotent_lifetime: Lifetime::Fixed,
            primary_weight: 50,
            retry_destructive_idempotent: false,
            audit: AuditScope::Hinted,
            audit_open_world: false,
            attempt_timeout: Duration::from_secs(60),
            timeout_factor: 10,
            first_backoff: Duration::from_millis(100),
        }
    }

    /// Returns the MCP specification's pessimistic defaults: what is not declared harmless is not.
    pub const fn strict() -> Self {
        Self {
            name: "strict",
            absent_is_destructive: true,
            confirm_mutating: true,
            ..Self::standard()
        }
    }

    /// Returns the rules of NeuroLink: an absent hint is harmless, read-only and idempotent tools
    /// are retried after a second; destructive ones are never retried and ask first.
    ///
    /// There is one intended deviation: where no server of the weight is healthy, a destructive
    /// call is refused, and does not go to any other server.
    pub const fn neurolink() -> Self {
        Self {
            name: "neurolink",
            first_backoff: Duration::from_secs(1),
            ..Self::standard()
        }
    }

    /// Returns the rules of MCPGate: each tool reads, writes or deletes, and no write is
    /// idempotent.
    const fn mcpgate() -> Self {
        Self {
            name: "mcpgate",
            by_category: true,
            idempotent_ttl: None,
            ..Self::standard()
        }
    }

    /// Returns the rules of EPD: an idempotent tool is retried even if it is destructive, and each
    /// call into an open world is recorded.
    const fn epd() -> Self {
        Self {
            name: "epd",
            retry_destructive_idempotent: true,
            audit_open_world: true,
            ..Self::standard()
        }
    }

    /// Finds a preset by its name.
    pub fn by_name(name: &str) -> Option<Self> {
        let preset = match name {
            "standard" => Self::standard,
            "strict" => Self::strict,
            "neurolink" => Self::neurolink,
            "mcpgate" => Self::mcpgate,
            "epd" => Self::epd,
            _ => return None,
        };
        Some(preset())
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::standard()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name() {
        for name in Profile::NAMES {
            assert_eq!(Profile::by_name(name).unwrap().name, *name);
        }
        assert_eq!(Profile::by_name("none"), None);
    }
}
