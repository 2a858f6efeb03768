//! Hints as they are written on a command line.

use serde_json::{Map, Value};

use super::{Annotations, Shape};
use crate::{Field, InvalidValue};

impl Annotations {
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
impl Annotations {
    /// Reads hints separated by spaces, each as [`from_assignment`](Self::from_assignment) does.
    pub(crate) fn stated(hints: &str) -> Self {
        let hints = hints.split_whitespace().map(Self::from_assignment);
        hints.fold(Self::default(), |all, one| all.merge(&one.unwrap()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (text, says) in [
            ("readOnlyHint", "expected FIELD=VALUE"),
            (
                "readonly=true",
                "no hint `readonly`: expected one of title, readOnlyHint",
            ),
            ("readOnlyHint=yes", "is `yes`: expected true or false"),
            ("costHint=much", "costHint is `much`: expected a number"),
            ("costHint=NaN", "costHint is `NaN`: expected a number"),
            ("complexity=hard", "expected simple or medium or complex"),
            ("securityLevel=", "public or internal or restricted"),
        ] {
            let error = Annotations::from_assignment(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let spaced = Annotations::from_assignment(" tags = a , b ").unwrap();
        assert_eq!(spaced, Annotations::default().with_tags(["a", "b"]));
    }
}
