//! Who says something, how far they are believed, and what about.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a hint came from, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// Said by nobody: the MCP specification's default, which takes the worst for granted.
    Assumed,
    /// Concluded from the tool's name and description.
    Inferred,
    /// Configured for all tools of the server.
    ServerDefault,
    /// Declared by the server for the tool.
    Declared,
    /// Seen while the tool ran: it counts against what was declared, never for it.
    Observed,
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
            Self::Operator => "operator",
        })
    }
}

/// How far a server's own hints are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the three levels are the whole vocabulary"
)]
pub enum Trust {
    /// Declared hints count as they are.
    Trusted,
    /// Declared hints count, unless strong evidence says the opposite: then the stricter reading.
    #[default]
    Standard,
    /// Declared and inferred hints may only tighten; what they leave open is read pessimistically.
    Untrusted,
}

/// One of the fields of [`Annotations`](crate::Annotations).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the published vocabulary has exactly these thirteen"
)]
pub enum Field {
    /// `title`
    Title,
    /// `readOnlyHint`
    #[serde(rename = "readOnlyHint")]
    ReadOnly,
    /// `destructiveHint`
    #[serde(rename = "destructiveHint")]
    Destructive,
    /// `idempotentHint`
    #[serde(rename = "idempotentHint")]
    Idempotent,
    /// `openWorldHint`
    #[serde(rename = "openWorldHint")]
    OpenWorld,
    /// `requiresConfirmation`
    RequiresConfirmation,
    /// `tags`
    Tags,
    /// `estimatedDuration`
    EstimatedDuration,
    /// `rateLimitHint`
    RateLimitHint,
    /// `costHint`
    CostHint,
    /// `complexity`
    Complexity,
    /// `auditRequired`
    AuditRequired,
    /// `securityLevel`
    SecurityLevel,
}

impl Field {
    /// All fields, in the order of [`Annotations`](crate::Annotations).
    pub const ALL: [Self; 13] = [
        Self::Title,
        Self::ReadOnly,
        Self::Destructive,
        Self::Idempotent,
        Self::OpenWorld,
        Self::RequiresConfirmation,
        Self::Tags,
        Self::EstimatedDuration,
        Self::RateLimitHint,
        Self::CostHint,
        Self::Complexity,
        Self::AuditRequired,
        Self::SecurityLevel,
    ];

    /// Returns the field's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::ReadOnly => "readOnlyHint",
            Self::Destructive => "destructiveHint",
            Self::Idempotent => "idempotentHint",
            Self::OpenWorld => "openWorldHint",
            Self::RequiresConfirmation => "requiresConfirmation",
            Self::Tags => "tags",
            Self::EstimatedDuration => "estimatedDuration",
            Self::RateLimitHint => "rateLimitHint",
            Self::CostHint => "costHint",
            Self::Complexity => "complexity",
            Self::AuditRequired => "auditRequired",
            Self::SecurityLevel => "securityLevel",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_as_on_the_wire() {
        for field in Field::ALL {
            assert_eq!(serde_json::to_value(field).unwrap(), field.as_str());
        }
    }
}
