//! A line for each call: "Delete customer {customer_id}".

use std::fmt;

use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use super::phrase::Phrase;
use super::{arguments, value};
use crate::Subject;
use crate::infer::words;

/// Names of arguments that read better with a word before them.
const PREPOSITIONS: &[(&str, &[&str])] = &[
    ("to", &["to", "destination", "recipient", "recipients"]),
    ("from", &["from", "source"]),
];

/// What a call does, as a line with places for its arguments.
///
/// Made once of a tool's name, title and schema, and filled in for each call. The name's verb comes
/// first; a prefix that only names the server is left out; the title is taken where it says more
/// than the name and does not contradict it. At most two arguments get a place: required ones
/// before optional ones, ids before names. What looks like a secret by its name never gets one.
///
/// ```
/// use serde_json::value::RawValue;
/// use callward_core::Subject;
/// use callward_core::activity::ActionTemplate;
///
/// let schema = r#"{"properties": {"customer_id": {"type": "string"}}, "required": ["customer_id"]}"#;
/// let schema = RawValue::from_string(schema.to_owned())?;
/// let action = ActionTemplate::of(&Subject::new("delete_customer").with_input_schema(&schema));
/// assert_eq!(action.to_string(), "Delete customer {customer_id}");
/// assert_eq!(action.render(br#"{"customer_id": "cus_17"}"#), "Delete customer cus_17");
/// assert_eq!(action.render(b"{}"), "Delete customer");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionTemplate {
    phrase: String,
    places: SmallVec<[Place; 2]>,
}

/// Where an argument goes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    argument: String,
    preposition: Option<&'static str>,
}

impl ActionTemplate {
    /// Makes a line for the calls of a tool. Never fails: where nothing can be made of name and
    /// schema, the line is the name.
    #[must_use]
    pub fn of(subject: &Subject<'_>) -> Self {
        let phrase = Phrase::of(subject.name, subject.title, subject.server);
        let places = arguments::pick(subject.input_schema, &phrase.words)
            .into_iter()
            .map(|argument| Place {
                preposition: preposition(&argument, &phrase.words),
                argument,
            })
            .collect();
        Self {
            phrase: phrase.text,
            places,
        }
    }

    /// Returns the line without any argument.
    #[must_use]
    pub fn phrase(&self) -> &str {
        &self.phrase
    }

    /// Returns the names of the arguments that have a place, in the order of their places.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|place| place.argument.as_str())
    }

    /// Fills in the arguments of a call, a JSON object.
    ///
    /// What is missing, `null`, empty or given twice is left out together with its place; so is
    /// everything if the bytes are no JSON object. A value is shown in one line of at most 48 characters, without
    /// control characters, its end cut off and marked by `…`; longer lists and objects are counted.
    #[must_use]
    pub fn render(&self, arguments: &[u8]) -> String {
        if self.places.is_empty() {
            return self.phrase.clone();
        }
        let names: SmallVec<[&str; 2]> = self.arguments().collect();
        let shown = value::pick(arguments, &names);
        let mut line = String::new();
        let filled = self
            .places
            .iter()
            .zip(&shown)
            .filter_map(|(place, value)| Some((place, value.as_deref()?)));
        // a string takes whatever is written to it
        let _ = self.write(&mut line, filled);
        line
    }

    fn write<'a>(
        &self,
        to: &mut impl fmt::Write,
        places: impl Iterator<Item = (&'a Place, &'a str)>,
    ) -> fmt::Result {
        to.write_str(&self.phrase)?;
        for (at, (place, value)) in places.enumerate() {
            match place.preposition {
                Some(word) => write!(to, " {word} {value}")?,
                None if at == 0 => write!(to, " {value}")?,
                None => write!(to, ", {value}")?,
            }
        }
        Ok(())
    }
}

/// Writes the line with the names of the arguments in braces.
impl fmt::Display for ActionTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: SmallVec<[String; 2]> =
            self.arguments().map(|name| format!("{{{name}}}")).collect();
        self.write(f, self.places.iter().zip(names.iter().map(String::as_str)))
    }
}

/// Written as the line with the names of the arguments in braces.
impl Serialize for ActionTemplate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Finds the word before an argument, unless the line has the argument's own name in it.
fn preposition(argument: &str, phrase: &[String]) -> Option<&'static str> {
    let words = words::split(argument);
    let first = words.first()?.to_lowercase();
    if phrase.contains(&first) {
        return None;
    }
    PREPOSITIONS
        .iter()
        .find(|(_, names)| names.contains(&first.as_str()))
        .map(|(word, _)| *word)
}

#[cfg(test)]
mod tests;
