//! Tools grouped by how safe they are to call.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Effect;

/// How an agent may use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the published vocabulary has exactly these three"
)]
pub enum SafetyGroup {
    /// Changes nothing.
    ReadOnly,
    /// Changes something, and loses nothing.
    Mutating,
    /// May lose something.
    Destructive,
}

impl SafetyGroup {
    /// All groups, from harmless to harmful.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::Mutating, Self::Destructive];

    /// Finds the group of an effect. An idempotent write changes something, so it mutates.
    #[must_use]
    pub const fn of(effect: Effect) -> Self {
        match effect {
            Effect::ReadOnly => Self::ReadOnly,
            Effect::Idempotent | Effect::Mutating => Self::Mutating,
            Effect::Destructive => Self::Destructive,
        }
    }

    /// Returns the word used in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Mutating => "mutating",
            Self::Destructive => "destructive",
        }
    }

    /// Returns the heading shown to people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::ReadOnly => "Read-only",
            Self::Mutating => "Mutating",
            Self::Destructive => "Destructive",
        }
    }

    /// Returns what to do with tools of the group, in a few words.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::ReadOnly => "let the agent call freely",
            Self::Mutating => "let the agent call, and keep an eye on what changes",
            Self::Destructive => "ask a person before each call",
        }
    }
}

impl fmt::Display for SafetyGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Tools in their groups, each group in the order the tools came in.
///
/// ```
/// use callward_core::Effect;
/// use callward_core::activity::{BySafety, SafetyGroup};
///
/// let tools = [
///     ("list_customers", Effect::ReadOnly),
///     ("delete_customer", Effect::Destructive),
///     ("get_customer", Effect::ReadOnly),
/// ];
/// let groups: BySafety<_> = tools.into_iter().map(|(name, effect)| (effect, name)).collect();
/// assert_eq!(groups.of(SafetyGroup::ReadOnly), ["list_customers", "get_customer"]);
/// assert_eq!(groups.of(SafetyGroup::Mutating), [""; 0]);
/// for (group, names) in groups.iter() {
///     println!("{} ({}): {names:?}", group.title(), group.advice());
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BySafety<T> {
    read_only: Vec<T>,
    mutating: Vec<T>,
    destructive: Vec<T>,
}

impl<T> BySafety<T> {
    /// Returns the tools of one group.
    #[must_use]
    pub fn of(&self, group: SafetyGroup) -> &[T] {
        match group {
            SafetyGroup::ReadOnly => &self.read_only,
            SafetyGroup::Mutating => &self.mutating,
            SafetyGroup::Destructive => &self.destructive,
        }
    }

    /// Goes through all groups, from harmless to harmful, empty ones included.
    pub fn iter(&self) -> impl Iterator<Item = (SafetyGroup, &[T])> {
        SafetyGroup::ALL
            .map(|group| (group, self.of(group)))
            .into_iter()
    }
}

impl<T> Default for BySafety<T> {
    fn default() -> Self {
        Self {
            read_only: Vec::new(),
            mutating: Vec::new(),
            destructive: Vec::new(),
        }
    }
}

impl<T> Extend<(Effect, T)> for BySafety<T> {
    fn extend<I: IntoIterator<Item = (Effect, T)>>(&mut self, tools: I) {
        for (effect, tool) in tools {
            match SafetyGroup::of(effect) {
                SafetyGroup::ReadOnly => self.read_only.push(tool),
                SafetyGroup::Mutating => self.mutating.push(tool),
                SafetyGroup::Destructive => self.destructive.push(tool),
            }
        }
    }
}

impl<T> FromIterator<(Effect, T)> for BySafety<T> {
    fn from_iter<I: IntoIterator<Item = (Effect, T)>>(tools: I) -> Self {
        let mut groups = Self::default();
        groups.extend(tools);
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_keeps_the_order_of_the_listing() {
        let effects = [
            Effect::Destructive,
            Effect::ReadOnly,
            Effect::Mutating,
            Effect::Idempotent,
            Effect::ReadOnly,
        ];
        let groups: BySafety<_> = effects.into_iter().zip(0..).collect();
        let all: Vec<_> = groups.iter().collect();
        assert_eq!(
            all,
            [
                (SafetyGroup::ReadOnly, &[1, 4][..]),
                (SafetyGroup::Mutating, &[2, 3]),
                (SafetyGroup::Destructive, &[0]),
            ]
        );
    }

    #[test]
    fn a_group_is_written_as_it_is_called() {
        for group in SafetyGroup::ALL {
            assert_eq!(serde_json::to_value(group).unwrap(), group.as_str());
        }
    }
}
