//! Sets of hints, written field by field.

use serde_json::Value;

use crate::{Annotations, Complexity, SecurityLevel};

/// One method a field. All of them state the hint; leaving a method out leaves the field absent.
///
/// ```
/// use callward_core::Annotations;
///
/// let hints = Annotations::default().with_destructive(true).with_tags(["billing"]);
/// assert_eq!(hints.to_string(), "[DESTRUCTIVE | tags: billing]");
/// ```
impl Annotations {
    /// Sets `title`.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets `readOnlyHint`.
    #[must_use]
    pub fn with_read_only(mut self, hint: bool) -> Self {
        self.read_only_hint = Some(hint);
        self
    }

    /// Sets `destructiveHint`.
    #[must_use]
    pub fn with_destructive(mut self, hint: bool) -> Self {
        self.destructive_hint = Some(hint);
        self
    }

    /// Sets `idempotentHint`.
    #[must_use]
    pub fn with_idempotent(mut self, hint: bool) -> Self {
        self.idempotent_hint = Some(hint);
        self
    }

    /// Sets `openWorldHint`.
    #[must_use]
    pub fn with_open_world(mut self, hint: bool) -> Self {
        self.open_world_hint = Some(hint);
        self
    }

    /// Sets `requiresConfirmation`.
    #[must_use]
    pub fn with_requires_confirmation(mut self, hint: bool) -> Self {
        self.requires_confirmation = Some(hint);
        self
    }

    /// Sets `tags`, as they are: duplicates stay.
    #[must_use]
    pub fn with_tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Sets `estimatedDuration`, in milliseconds.
    #[must_use]
    pub fn with_estimated_duration(mut self, millis: f64) -> Self {
        self.estimated_duration = Some(millis);
        self
    }

    /// Sets `rateLimitHint`, in calls a minute.
    #[must_use]
    pub fn with_rate_limit(mut self, per_minute: f64) -> Self {
        self.rate_limit_hint = Some(per_minute);
        self
    }

    /// Sets `costHint`, in relative units.
    #[must_use]
    pub fn with_cost(mut self, cost: f64) -> Self {
        self.cost_hint = Some(cost);
        self
    }

    /// Sets `complexity`.
    #[must_use]
    pub fn with_complexity(mut self, complexity: Complexity) -> Self {
        self.complexity = Some(complexity);
        self
    }

    /// Sets `auditRequired`.
    #[must_use]
    pub fn with_audit_required(mut self, hint: bool) -> Self {
        self.audit_required = Some(hint);
        self
    }

    /// Sets `securityLevel`.
    #[must_use]
    pub fn with_security_level(mut self, level: SecurityLevel) -> Self {
        self.security_level = Some(level);
        self
    }

    /// Sets a field that is not ours.
    #[must_use]
    pub fn with_vendor(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.vendor.insert(key.into(), value.into());
        self
    }
}
