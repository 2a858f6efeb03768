//! From hints of several sources to one effective set, each field with its source and reason.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Annotations;

/// Where a hint came from, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// Concluded from the tool's name and description.
    Inferred,
    /// Configured for all tools of the server.
    ServerDefault,
    /// Declared by the server for the tool.
    Declared,
    /// Set by the operator.
    Operator,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Inferred => "inferred",
            Self::ServerDefault => "server default",
            Self::Declared => "declared",
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

/// One of the fields of [`Annotations`].
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

/// Why one effective field is what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// The field.
    pub field: Field,
    /// Who decided it.
    pub source: Source,
    /// The word or rule that did.
    pub reason: Cow<'static, str>,
}

/// The effective hints of a tool, and for each field who decided it and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    annotations: Annotations,
    provenance: Vec<Provenance>,
    warnings: Vec<String>,
}

impl Resolved {
    /// Takes the hints of one source as they are.
    #[must_use]
    pub fn from_single(annotations: Annotations, source: Source) -> Self {
        let provenance = set_fields(&annotations)
            .map(|field| Provenance {
                field,
                source,
                reason: source.to_string().into(),
            })
            .collect();
        Self {
            annotations,
            provenance,
            warnings: Vec::new(),
        }
    }

    /// Returns the effective hints.
    #[must_use]
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// Returns who decided a field, and why; `None` if nobody did.
    #[must_use]
    pub fn provenance(&self, field: Field) -> Option<&Provenance> {
        self.provenance.iter().find(|entry| entry.field == field)
    }

    /// Returns contradictions that were settled towards the stricter reading.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns, in a few words, who decided a field and why.
    #[must_use]
    pub fn why(&self, field: Field) -> Cow<'static, str> {
        match self.provenance(field) {
            Some(Provenance { source, reason, .. }) => format!("{source}, {reason}").into(),
            None => "nothing says so".into(),
        }
    }
}

fn set_fields(hints: &Annotations) -> impl Iterator<Item = Field> {
    [
        (Field::Title, hints.title.is_some()),
        (Field::ReadOnly, hints.read_only_hint.is_some()),
        (Field::Destructive, hints.destructive_hint.is_some()),
        (Field::Idempotent, hints.idempotent_hint.is_some()),
        (Field::OpenWorld, hints.open_world_hint.is_some()),
        (
            Field::RequiresConfirmation,
            hints.requires_confirmation.is_some(),
        ),
        (Field::Tags, hints.tags.is_some()),
        (Field::EstimatedDuration, hints.estimated_duration.is_some()),
        (Field::RateLimitHint, hints.rate_limit_hint.is_some()),
        (Field::CostHint, hints.cost_hint.is_some()),
        (Field::Complexity, hints.complexity.is_some()),
        (Field::AuditRequired, hints.audit_required.is_some()),
        (Field::SecurityLevel, hints.security_level.is_some()),
    ]
    .into_iter()
    .filter_map(|(field, set)| set.then_some(field))
}
