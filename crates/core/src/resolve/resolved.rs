//! The effective hints of a tool, each with its source and reason.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Field, Source};
use crate::Annotations;
use crate::infer::{Strength, Volatile};

/// The source and reason of one effective field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// The field.
    pub field: Field,
    /// The source that decided it.
    pub source: Source,
    /// The word or rule that it rests on.
    pub reason: Cow<'static, str>,
    /// Its strength, if it was inferred; a stated hint is neither weak nor strong.
    pub strength: Option<Strength>,
}

/// What a tool did that a hint of it does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a field and its reason")]
pub struct Observation {
    /// A boolean hint, which gets its stricter value. Other fields are ignored.
    pub field: Field,
    /// What was seen, with its numbers.
    pub reason: String,
}

/// The effective hints of a tool, each with its source and reason.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Resolved {
    /// The effective hints.
    pub annotations: Annotations,
    /// The source and reason of each effective field.
    pub provenance: Vec<Provenance>,
    /// The contradictions that were settled in favour of the stricter hint.
    pub warnings: Vec<String>,
    /// Why an answer of the tool must be fresh, should it read; `None` if nothing says so.
    pub volatile: Option<Volatile>,
    pub(super) takes_away: bool,
}

impl Provenance {
    /// The provenance of a hint that a source states.
    pub(super) fn stated(field: Field, source: Source) -> Self {
        Self {
            field,
            source,
            reason: says(source).into(),
            strength: None,
        }
    }
}

impl Resolved {
    /// Takes the hints of one source as they are.
    pub fn from_single(annotations: Annotations, source: Source) -> Self {
        let fields = set_fields(&annotations);
        Self {
            provenance: fields
                .map(|field| Provenance::stated(field, source))
                .collect(),
            takes_away: annotations.destructive_hint == Some(true),
            annotations,
            warnings: Vec::new(),
            volatile: None,
        }
    }

    /// Sets the reason of the operator's hints.
    pub(crate) fn attribute(&mut self, hints: &Annotations, reason: &str) {
        for field in set_fields(hints) {
            let is_said =
                |entry: &&mut Provenance| entry.field == field && entry.source == Source::Operator;
            if let Some(entry) = self.provenance.iter_mut().find(is_said) {
                entry.reason = reason.to_owned().into();
            }
        }
    }

    /// Returns the source and reason of a field; `None` if it is absent.
    pub fn provenance_of(&self, field: Field) -> Option<&Provenance> {
        self.provenance.iter().find(|entry| entry.field == field)
    }

    /// Returns `true` if a call may remove something, and not only overwrite or change it.
    ///
    /// That is `true` if `destructiveHint` is stated or assumed. If it was inferred, the word it
    /// rests on decides: `delete`, or `update`. The word of an untrusted server does not count.
    pub(crate) const fn takes_away(&self) -> bool {
        self.takes_away
    }

    /// Returns the source and reason of a field, in a few words.
    pub fn why(&self, field: Field) -> Cow<'static, str> {
        match self.provenance_of(field) {
            Some(Provenance { source, reason, .. }) => format!("{source}, {reason}").into(),
            None => "nothing says so".into(),
        }
    }
}

/// The reason of a hint that a source states.
const fn says(source: Source) -> &'static str {
    match source {
        Source::Assumed => "no source that counts says otherwise",
        Source::Inferred => "concluded from name and description",
        Source::ServerDefault => "set for all tools of the server",
        Source::Declared => "the server says so",
        Source::Observed => "seen while it ran",
        Source::Plugin => "tightened when it was discovered",
        Source::Operator => "set for this tool",
    }
}

fn set_fields(hints: &Annotations) -> impl Iterator<Item = Field> {
    let values = serde_json::to_value(hints).unwrap_or_default();
    let is_set = move |field: &Field| values.get(field.as_str()).is_some();
    Field::ALL.iter().copied().filter(is_set)
}
