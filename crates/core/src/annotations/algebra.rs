//! Merges and compares sets of hints.

use std::collections::HashSet;

use crate::Annotations;

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
        merged.vendor.extend(over.vendor.clone());
        merged
    }

    /// Returns `true` if these hints have everything a pattern states; what it leaves out may be
    /// anything.
    ///
    /// Of `tags` all that the pattern lists must be there. Absent is not `false`: a tool that says
    /// nothing about reading does not match `readOnlyHint: false`.
    ///
    /// ```
    /// use callward_core::Annotations;
    ///
    /// let hints = Annotations::default().with_read_only(true).with_tags(["crm", "fast"]);
    /// assert!(hints.matches(&Annotations::default().with_tags(["crm"])));
    /// assert!(!hints.matches(&Annotations::default().with_destructive(false)));
    /// assert!(hints.matches(&Annotations::default()));
    /// ```
    pub fn matches(&self, pattern: &Self) -> bool {
        let tags = self.tags.as_deref().unwrap_or_default();
        let mut wanted = pattern.tags.iter().flatten();
        // with the pattern laid over, nothing but the tags may change
        let tagged = Self {
            tags: None,
            ..self.clone()
        };
        let pattern = Self {
            tags: None,
            ..pattern.clone()
        };
        wanted.all(|tag| tags.contains(tag)) && tagged.merge(&pattern) == tagged
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
        let wanted = (0..count + count / 2).map(|tag| tag.to_string());
        assert!(united.into_iter().eq(wanted));
    }

    #[test]
    fn every_field_can_be_wanted_and_missed() {
        let all = "title=T readOnly=true destructive=false idempotent=true openWorld=false \
            requiresConfirmation=false estimatedDuration=1 rateLimitHint=2 costHint=3 \
            complexity=medium auditRequired=true securityLevel=internal tags=a,b";
        let full = Annotations::stated(all);
        let others = "title=U readOnly=false destructive=true idempotent=false openWorld=true \
            requiresConfirmation=true estimatedDuration=1.5 rateLimitHint=20 costHint=4 \
            complexity=simple auditRequired=false securityLevel=public tags=b,c";
        for (matching, other) in all.split_whitespace().zip(others.split_whitespace()) {
            let (matching, other) = (Annotations::stated(matching), Annotations::stated(other));
            assert!(full.matches(&matching), "{matching:?}");
            assert!(!full.matches(&other), "{other:?}");
            assert!(!Annotations::default().matches(&matching), "{matching:?}");
        }
        assert!(full.matches(&full));
        let of_vendor = |text: &str| serde_json::from_str::<Annotations>(text).unwrap();
        let billing = of_vendor(r#"{"x-team": "billing", "title": "T"}"#);
        assert!(billing.matches(&of_vendor(r#"{"x-team": "billing"}"#)));
        assert!(!billing.matches(&of_vendor(r#"{"x-team": "crm"}"#)));
        assert!(!billing.matches(&of_vendor(r#"{"x-tier": "billing"}"#)));
    }
}
