//! Sets of hints, written field by field.

use crate::{Annotations, Complexity, SecurityLevel};

macro_rules! setters {
    ($($method:ident sets $field:ident: $type:ty, $doc:literal;)+) => {
        /// One method a field. Each states the hint; without it the field stays absent.
        ///
        /// ```
        /// use callward_core::Annotations;
        ///
        /// let hints = Annotations::default().with_destructive(true).with_tags(["billing"]);
        /// assert_eq!(hints.to_string(), "[DESTRUCTIVE | tags: billing]");
        /// ```
        impl Annotations {
            $(
                #[doc = $doc]
                pub fn $method(mut self, hint: $type) -> Self {
                    self.$field = Some(hint.into());
                    self
                }
            )+
        }
    };
}

setters! {
    with_title sets title: impl Into<String>, "Sets `title`.";
    with_read_only sets read_only_hint: bool, "Sets `readOnlyHint`.";
    with_destructive sets destructive_hint: bool, "Sets `destructiveHint`.";
    with_idempotent sets idempotent_hint: bool, "Sets `idempotentHint`.";
    with_open_world sets open_world_hint: bool, "Sets `openWorldHint`.";
    with_requires_confirmation sets requires_confirmation: bool, "Sets `requiresConfirmation`.";
    with_estimated_duration sets estimated_duration: f64, "Sets `estimatedDuration`, in ms.";
    with_rate_limit sets rate_limit_hint: f64, "Sets `rateLimitHint`, in calls a minute.";
    with_cost sets cost_hint: f64, "Sets `costHint`, in relative units.";
    with_complexity sets complexity: Complexity, "Sets `complexity`.";
    with_audit_required sets audit_required: bool, "Sets `auditRequired`.";
    with_security_level sets security_level: SecurityLevel, "Sets `securityLevel`.";
}

impl Annotations {
    /// Sets `tags`, as they are: duplicates stay.
    pub fn with_tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }
}
