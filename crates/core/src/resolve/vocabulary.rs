//! Sources, their trust, and the fields they set.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a hint came from, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// Stated by no source: the MCP specification's default, which assumes the worst.
    Assumed,
    /// Concluded from the tool's name and description.
    Inferred,
    /// Configured for all tools of the server.
    ServerDefault,
    /// Declared by the server for the tool.
    Declared,
    /// Observed while the tool ran: it can only make a declared hint stricter.
    Observed,
    /// Set by a plugin of discovery: it can only make other hints stricter.
    Plugin,
    /// Set by the operator.
    Operator,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Assumed => "assumed",
            Self::Inferred => "inferred",
            Self::ServerDefault => "server default",
            Self::Declared => "declared",
            Self::Observed => "observed",
            Self::Plugin => "plugin",
            Self::Operator => "operator",
        })
    }
}

words! {
    /// How far a server's own hints are trusted.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Trust {
        /// Declared hints count as they are.
        Trusted = "trusted",
        /// Declared hints count, unless strong evidence says the opposite: then the stricter
        /// reading.
        Standard = "standard",
        /// Declared and inferred hints may only tighten; what they leave open is read
        /// pessimistically.
        Untrusted = "untrusted",
    } default Standard
}

words! {
    /// One of the fields of [`Annotations`](crate::Annotations).
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Field {
        /// `title`
        Title = "title",
        /// `readOnlyHint`
        ReadOnly = "readOnlyHint",
        /// `destructiveHint`
        Destructive = "destructiveHint",
        /// `idempotentHint`
        Idempotent = "idempotentHint",
        /// `openWorldHint`
        OpenWorld = "openWorldHint",
        /// `requiresConfirmation`
        RequiresConfirmation = "requiresConfirmation",
        /// `tags`
        Tags = "tags",
        /// `estimatedDuration`
        EstimatedDuration = "estimatedDuration",
        /// `rateLimitHint`
        RateLimitHint = "rateLimitHint",
        /// `costHint`
        CostHint = "costHint",
        /// `complexity`
        Complexity = "complexity",
        /// `auditRequired`
        AuditRequired = "auditRequired",
        /// `securityLevel`
        SecurityLevel = "securityLevel",
    }
}
