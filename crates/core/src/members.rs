//! The members of a JSON object, as written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON string; borrowed unless it holds an escape.
#[derive(serde::Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The members of one object in their order, duplicates included.
///
/// ```
/// let members = callward_core::Members::read(r#"{"a": 1, "\u0062": [2], "a": 3}"#)?;
/// assert_eq!(members.iter().count(), 3);
/// assert_eq!(members.last("a").map(|value| value.get()), Some("3"));
/// assert_eq!(members.last("b").map(|value| value.get()), Some("[2]"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads a text that must hold exactly one object.
    ///
    /// # Errors
    ///
    /// The parser's error if it does not.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Returns the value of a member; of one given twice the last, as most parsers have it.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&'a RawValue> {
        let mut members = self.iter();
        members
            .rfind(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Returns the unescaped name and the value of each.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        from.deserialize_map(Object)
    }
}
