//! Lists in rules, of which one element must hold.

use serde::{Deserialize, Deserializer, Serialize};

/// A list of which one element must hold; an absent one always holds. It cannot be empty: a rule
/// for no one would otherwise be one for all.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AnyOf<T>(Vec<T>);

impl<T> Default for AnyOf<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> AnyOf<T> {
    /// Takes one element.
    pub fn one(element: T) -> Self {
        Self(vec![element])
    }

    /// Adds another one.
    pub fn or(mut self, element: T) -> Self {
        self.0.push(element);
        self
    }

    /// Returns the elements; none stand for any.
    pub fn elements(&self) -> &[T] {
        &self.0
    }

    /// Returns `true` if there are none, or if one holds.
    pub fn admits(&self, holds: impl FnMut(&T) -> bool) -> bool {
        self.0.is_empty() || self.0.iter().any(holds)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for AnyOf<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let list = Vec::deserialize(from)?;
        if list.is_empty() {
            let message = "expected at least one element; leave the key out for any";
            return Err(serde::de::Error::custom(message));
        }
        Ok(Self(list))
    }
}
