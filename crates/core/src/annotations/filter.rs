//! Selects tools by their hints.

use serde_json::{Map, Value};

use super::{Annotations, Shape};
use crate::{Field, InvalidValue};

impl Annotations {
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
        macro_rules! has_each {
            ($($field:ident)+) => {
                $((pattern.$field.is_none() || self.$field == pattern.$field))&&+
            };
        }
        let tags = self.tags.as_deref().unwrap_or_default();
        has_each!(
            title read_only_hint destructive_hint idempotent_hint open_world_hint
            requires_confirmation estimated_duration rate_limit_hint cost_hint complexity
            audit_required security_level
        ) && pattern.tags.iter().flatten().all(|tag| tags.contains(tag))
            && pattern
                .vendor
                .iter()
                .all(|(key, wanted)| self.vendor.get(key) == Some(wanted))
    }

    /// Keeps the tools whose hints match, in order. A tool without hints counts as one with an
    /// empty set.
    ///
    /// ```
    /// use callward_core::Annotations;
    ///
    /// let reads = Annotations::default().with_read_only(true);
    /// let tools = [("get_user", Some(&reads)), ("zap", None)];
    /// let kept: Vec<_> = Annotations::filter(tools, |hints| hints.matches(&reads)).collect();
    /// assert_eq!(kept, ["get_user"]);
    /// ```
    pub fn filter<'a, T>(
        tools: impl IntoIterator<Item = (T, Option<&'a Self>)>,
        mut keep: impl FnMut(&Self) -> bool,
    ) -> impl Iterator<Item = T> {
        let none = Self::default();
        tools
            .into_iter()
            .filter_map(move |(tool, hints)| keep(hints.unwrap_or(&none)).then_some(tool))
    }

    /// Reads one hint written as `FIELD=VALUE`, as on a command line.
    ///
    /// Fields have the names of the wire (the short forms `readOnly`, `destructive`, `idempotent`
    /// and `openWorld` are understood); `tags` is a list separated by commas.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the field does not exist, or the value has the wrong type.
    ///
    /// ```
    /// use callward_core::Annotations;
    ///
    /// let hint = Annotations::from_assignment("readOnlyHint=true")?;
    /// assert_eq!(hint, Annotations::default().with_read_only(true));
    /// let error = Annotations::from_assignment("readOnlyHint=perhaps").unwrap_err();
    /// assert_eq!(error.to_string(), "readOnlyHint is `perhaps`: expected true or false");
    /// # Ok::<(), callward_core::InvalidValue>(())
    /// ```
    pub fn from_assignment(text: &str) -> Result<Self, InvalidValue> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(InvalidValue::new(format!(
                "`{text}` is not a hint: expected FIELD=VALUE, such as readOnlyHint=true"
            )));
        };
        let (name, value) = (name.trim(), value.trim());
        let field = Field::by_key(name).ok_or_else(|| {
            let known: Vec<_> = Field::ALL.iter().map(|field| field.as_str()).collect();
            let known = known.join(", ");
            InvalidValue::new(format!(
                "there is no hint `{name}`: expected one of {known}"
            ))
        })?;
        let json = match field.shape() {
            Shape::Texts => value.split(',').map(str::trim).collect(),
            Shape::Text | Shape::OneOf(_) => Value::from(value),
            Shape::Number => value.parse::<f64>().map_or(Value::Null, Value::from),
            Shape::Flag => value.parse::<bool>().map_or(Value::Null, Value::from),
        };
        if json.is_null() || !field.shape().fits(&json) {
            let wanted = field.shape().wanted();
            let message = format!("{field} is `{value}`: expected {wanted}");
            return Err(InvalidValue::new(message));
        }
        let hint = Map::from_iter([(field.as_str().to_owned(), json)]);
        serde_json::from_value(Value::Object(hint))
            .map_err(|error| InvalidValue::new(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Annotations {
        let stated = "title=T,readOnly=true,destructive=false,idempotent=true,openWorld=false,\
            requiresConfirmation=false,estimatedDuration=1,rateLimitHint=2,costHint=3,\
            complexity=medium,auditRequired=true,securityLevel=internal";
        let stated = stated
            .split(',')
            .map(|hint| Annotations::from_assignment(hint).unwrap());
        let tags = Annotations::default().with_tags(["a", "b"]);
        stated.fold(tags, |all, one| all.merge(&one))
    }

    #[test]
    fn every_field_can_be_wanted_and_missed() {
        for (matching, other) in [
            ("title=T", "title=U"),
            ("readOnlyHint=true", "readOnlyHint=false"),
            ("destructiveHint=false", "destructive=true"),
            ("idempotent=true", "idempotentHint=false"),
            ("openWorldHint = false", "openWorld=true"),
            ("requiresConfirmation=false", "requiresConfirmation=true"),
            ("tags=b", "tags=b,c"),
            ("estimatedDuration=1", "estimatedDuration=1.5"),
            ("rateLimitHint=2.0", "rateLimitHint=20"),
            ("costHint=3", "costHint=4"),
            ("complexity=medium", "complexity=simple"),
            ("auditRequired=true", "auditRequired=false"),
            ("securityLevel=internal", "securityLevel=public"),
        ] {
            let read = |text| Annotations::from_assignment(text).unwrap();
            assert!(full().matches(&read(matching)), "{matching}");
            assert!(!full().matches(&read(other)), "{other}");
            let nothing = Annotations::default();
            assert!(!nothing.matches(&read(matching)), "{matching}");
        }
        assert!(full().matches(&full()));
    }

    #[test]
    fn vendor_fields_are_wanted_by_value() {
        let hints = full().with_vendor("x-team", "billing");
        assert!(hints.matches(&Annotations::default().with_vendor("x-team", "billing")));
        assert!(!hints.matches(&Annotations::default().with_vendor("x-team", "crm")));
        assert!(!hints.matches(&Annotations::default().with_vendor("x-tier", "billing")));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (text, says) in [
            ("readOnlyHint", "expected FIELD=VALUE"),
            (
                "readonly=true",
                "there is no hint `readonly`: expected one of title, readOnlyHint",
            ),
            (
                "readOnlyHint=yes",
                "readOnlyHint is `yes`: expected true or false",
            ),
            ("costHint=much", "costHint is `much`: expected a number"),
            ("costHint=NaN", "costHint is `NaN`: expected a number"),
            ("complexity=hard", "expected simple or medium or complex"),
            (
                "securityLevel=",
                "expected public or internal or restricted",
            ),
        ] {
            let error = Annotations::from_assignment(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_tool_without_hints_is_asked_with_none() {
        let stated = full();
        let tools = [("a", Some(&stated)), ("b", None)];
        let silent = |hints: &Annotations| hints.read_only_hint.is_none();
        let kept: Vec<_> = Annotations::filter(tools, silent).collect();
        assert_eq!(kept, ["b"]);
    }
}
