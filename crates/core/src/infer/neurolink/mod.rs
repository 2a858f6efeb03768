//! NeuroLink's answers, right or wrong, for those who move from it.
//!
//! These functions give what NeuroLink 9.37 to 9.80 gives for the same input, known defects
//! included: a keyword anywhere in the description is enough, `getAndDelete` is read-only and
//! destructive at once and safe to retry, `sendEmail` that mentions a list is read-only. Nothing
//! here is used unless the `neurolink` rule set is asked for.
//!
//! Where NeuroLink and this crate agree there is one function: the summary is the `Display` of
//! [`Annotations`], the level is [`Annotations::safety_level`], and
//! [`Annotations::requires_confirmation`] and [`Annotations::filter`] do the same.

mod keywords;

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use self::keywords::{Class, Found};
use super::evidence::Reason;
use super::{Inferred, Strength};
use crate::{Annotations, Complexity};

/// More UTF-16 units than this make a description long, and its tool of medium complexity.
const LONG: usize = 100;

/// A tool without a name or a description, which NeuroLink answers with a `TypeError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it reads these two texts")]
pub enum MissingText {
    /// There is no name.
    Name,
    /// There is no description.
    Description,
}

impl fmt::Display for MissingText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "the tool has no name",
            Self::Description => "the tool has no description",
        })
    }
}

impl std::error::Error for MissingText {}

/// Does what `inferAnnotations` does.
///
/// # Errors
///
/// [`MissingText`] where NeuroLink throws a `TypeError`. An empty text is not a missing one.
pub fn infer_annotations(
    name: Option<&str>,
    description: Option<&str>,
) -> Result<Annotations, MissingText> {
    let description = description.ok_or(MissingText::Description)?;
    let name = name.ok_or(MissingText::Name)?;
    Ok(infer(name, description).into_annotations())
}

/// Does what `createAnnotatedTool` does: inferred hints, and the stated ones merged on top. Nothing
/// is validated.
///
/// # Errors
///
/// As [`infer_annotations`].
pub fn annotate(
    name: Option<&str>,
    description: Option<&str>,
    stated: &Annotations,
) -> Result<Annotations, MissingText> {
    Ok(infer_annotations(name, description)?.merge(stated))
}

/// Does what `mergeAnnotations` does: later sets win, missing ones are skipped, tags are united.
#[must_use]
pub fn merge<'a>(sets: impl IntoIterator<Item = Option<&'a Annotations>>) -> Annotations {
    sets.into_iter()
        .flatten()
        .fold(Annotations::default(), |base, over| base.merge(over))
}

/// Does what `validateAnnotations` does, on the object as it was written: a `null` number is
/// wrong, an unknown level is not, and any number of bad tags is one error.
#[must_use]
pub fn validate(hints: &Map<String, Value>) -> Vec<&'static str> {
    let mut errors = Vec::new();
    let is_true = |key: &str| hints.get(key).is_some_and(is_truthy);
    if is_true("readOnlyHint") && is_true("destructiveHint") {
        errors.push("Tool cannot be both readOnly and destructive - these are conflicting hints");
    }
    for (key, error) in [
        (
            "rateLimitHint",
            "rateLimitHint must be a non-negative number",
        ),
        (
            "estimatedDuration",
            "estimatedDuration must be a non-negative number",
        ),
        ("costHint", "costHint must be a non-negative number"),
    ] {
        let valid = |value: &Value| value.as_f64().is_some_and(|n| n.is_finite() && n >= 0.0);
        if hints.get(key).is_some_and(|value| !valid(value)) {
            errors.push(error);
        }
    }
    let tags = hints.get("tags").and_then(Value::as_array);
    if tags.is_some_and(|tags| {
        tags.iter()
            .any(|tag| tag.as_str().is_none_or(str::is_empty))
    }) {
        errors.push("All tags must be non-empty strings");
    }
    errors
}

/// Does what `isSafeToRetry` does, which does not look at `destructiveHint`.
#[must_use]
pub fn is_safe_to_retry(hints: &Annotations) -> bool {
    hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
}

/// Draws NeuroLink's conclusions.
///
/// A keyword in the name is strong evidence, one in the description weak; and read-only next to
/// destructive is weak wherever it stands.
pub(super) fn infer(name: &str, description: &str) -> Inferred {
    let lowered = lower(description);
    let long = if lowered.is_ascii() {
        lowered.len() > LONG
    } else {
        lowered.encode_utf16().count() > LONG
    };
    let mut found = Found::default();
    found.search_name(name);
    found.search_description(&lowered);

    let mut inferred = Inferred::default();
    let destructive = found.first(Class::Destructive);
    if let Some((strength, reason)) = found.first(Class::ReadOnly) {
        let strength = if destructive.is_some() {
            Strength::Weak
        } else {
            strength
        };
        inferred.read_only(true, strength, reason);
    }
    if let Some((strength, reason)) = destructive {
        inferred.destructive(true, strength, reason.clone());
        inferred.confirm(strength, reason);
    } else if let Some((strength, reason)) = found.first(Class::Idempotent) {
        inferred.idempotent(true, strength, reason);
    }
    match found.first(Class::Complex) {
        Some((strength, reason)) => inferred.complexity(Complexity::Complex, strength, reason),
        None if long => {
            inferred.complexity(Complexity::Medium, Strength::Weak, Reason::LongDescription);
        }
        None => inferred.complexity(Complexity::Simple, Strength::Weak, Reason::NoKeyword),
    }
    inferred
}

/// Lower-cases as JavaScript does. ASCII text is left alone: keywords are compared without case.
fn lower(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.to_lowercase())
    }
}

/// What JavaScript takes for true. Hints are booleans, but nothing made sure of it.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
