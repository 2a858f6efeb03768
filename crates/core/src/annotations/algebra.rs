//! Merges two sets of hints, and answers questions about one.

use std::collections::HashSet;

use crate::{Annotations, SafetyLevel};

impl Annotations {
    /// Lays `over` on top of these hints: what it states replaces, what it leaves out stays.
    ///
    /// `tags` are united instead, without duplicates, in the order first seen; an empty list stays
    /// an empty list. Unknown fields are replaced one by one. An explicit `false` is a statement.
    ///
    /// ```
    /// use callward_core::Annotations;
    ///
    /// let base = Annotations::default().with_read_only(true).with_tags(["a", "b"]);
    /// let over = Annotations::default().with_read_only(false).with_tags(["b", "c"]);
    /// let merged = base.merge(&over);
    /// assert_eq!(merged.read_only_hint, Some(false));
    /// assert_eq!(merged.tags.unwrap_or_default(), ["a", "b", "c"]);
    /// ```
    pub fn merge(&self, over: &Self) -> Self {
        let mut merged = self.clone();
        macro_rules! lay_over {
            ($($field:ident)+) => {
                $(if over.$field.is_some() {
                    merged.$field.clone_from(&over.$field);
                })+
            };
        }
        lay_over!(
            title read_only_hint destructive_hint idempotent_hint open_world_hint
            requires_confirmation estimated_duration rate_limit_hint cost_hint complexity
            audit_required security_level
        );
        merged.tags = unite(self.tags.as_deref(), over.tags.as_deref());
        let vendor = over
            .vendor
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()));
        merged.vendor.extend(vendor);
        merged
    }

    /// Returns how dangerous the hints call the tool: destructive wins over read-only.
    pub fn safety_level(&self) -> SafetyLevel {
        if self.destructive_hint == Some(true) {
            SafetyLevel::Dangerous
        } else if self.read_only_hint == Some(true) {
            SafetyLevel::Safe
        } else {
            SafetyLevel::Moderate
        }
    }

    /// Returns `true` if a human must agree first. A destructive tool asks even where
    /// `requiresConfirmation` is `false`.
    pub fn requires_confirmation(&self) -> bool {
        self.destructive_hint == Some(true) || self.requires_confirmation == Some(true)
    }
}

/// Unites two lists of tags; `None` only if neither source has a list.
pub(crate) fn unite(base: Option<&[String]>, over: Option<&[String]>) -> Option<Vec<String>> {
    if base.is_none() && over.is_none() {
        return None;
    }
    // servers list as many tags as they like
    let mut seen = HashSet::new();
    let all = base.into_iter().chain(over).flatten();
    Some(all.filter(|tag| seen.insert(*tag)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tags_are_united_in_one_pass() {
        // one by one against all before it, this would take minutes
        let count = 150_000;
        let many = |from: usize| (from..from + count).map(|tag| tag.to_string());
        let base = Annotations::default().with_tags(many(0));
        let over = Annotations::default().with_tags(many(count / 2));
        let united = base.merge(&over).tags.unwrap();
        assert!(
            united
                .iter()
                .cloned()
                .eq((0..count + count / 2).map(|tag| tag.to_string()))
        );
    }

    #[test]
    fn destructive_outweighs_every_other_hint() {
        let both = Annotations::default()
            .with_read_only(true)
            .with_idempotent(true)
            .with_destructive(true)
            .with_requires_confirmation(false);
        assert!(both.requires_confirmation());
        assert_eq!(both.safety_level(), SafetyLevel::Dangerous);
        let idempotent = Annotations::default().with_idempotent(true);
        assert!(!idempotent.requires_confirmation());
        assert_eq!(idempotent.safety_level(), SafetyLevel::Moderate);
    }
}
