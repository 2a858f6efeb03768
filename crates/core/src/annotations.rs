//! The thirteen hints of a tool, each of them optional.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

mod algebra;
mod assign;
mod build;
mod direction;
mod read;
mod shape;
mod summary;
mod validate;

pub(crate) use algebra::unite;
pub use direction::{Direction, HintChange};
pub(crate) use shape::Shape;
pub use validate::AnnotationProblem;

/// The hints of one tool, exactly as one source states them; nothing is resolved here.
///
/// Absent is not `false`: both survive a round trip. On input the short forms `readOnly`,
/// `destructive`, `idempotent` and `openWorld` are understood; on output the names of the MCP
/// specification are used. Fields we do not know are kept in [`vendor`](Self::vendor). `null` is
/// the same as absent; a field given twice, in either of its forms, is an error.
///
/// ```
/// use callward_core::Annotations;
///
/// let hints: Annotations =
///     serde_json::from_str(r#"{"readOnly": false, "x-team": "billing"}"#)?;
/// assert_eq!(hints.read_only_hint, Some(false));
/// assert_eq!(hints.destructive_hint, None);
/// assert_eq!(serde_json::to_string(&hints)?, r#"{"readOnlyHint":false,"x-team":"billing"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// A display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool does not change its environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy or overwrite; `false` means it only adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeating the call with equal arguments has no further effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool touches an open world of external entities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// A human must agree before each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_confirmation: Option<bool>,
    /// Words to group tools by. An empty list is not the same as none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// How long a call usually takes, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_duration: Option<f64>,
    /// How many calls per minute the tool can take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit_hint: Option<f64>,
    /// What a call costs, in relative units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_hint: Option<f64>,
    /// How much work a call is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complexity: Option<Complexity>,
    /// Every call must leave an audit record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_required: Option<bool>,
    /// Who may see the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_level: Option<SecurityLevel>,
    /// Fields that are not ours, kept as they came.
    #[serde(flatten)]
    pub vendor: BTreeMap<String, Value>,
}

words! {
    /// How much work a call is.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Complexity {
        /// Little work.
        Simple = "simple",
        /// Some work.
        Medium = "medium",
        /// Heavy work: such calls prefer servers of category `high-compute`.
        Complex = "complex",
    }
}

words! {
    /// Who may see a tool's results.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    SecurityLevel {
        /// Anyone.
        Public = "public",
        /// Principals of the same organisation.
        Internal = "internal",
        /// The calling principal only: results are never shared.
        Restricted = "restricted",
    }
}
