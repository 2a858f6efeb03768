//! What is known of one definition of a tool.

use callward_core::{Field, Observation};
use serde::{Deserialize, Serialize};

/// The logarithms of what a pair with a changed trial and one with a changed control multiply the
/// evidence by: 0.9 / 0.5 and 0.1 / 0.5.
const CHANGED_AFTER: f64 = 0.587_786_664_902_119;
const CHANGED_WITHOUT: f64 = -1.609_437_912_434_1;
/// The logarithm of the evidence that is enough: 10⁹.
const ENOUGH: f64 = 20.723_265_836_946_41;
/// The pairs with a changed trial that count of one call.
const MOST_OF_ONE_CALL: u32 = 16;
/// The calls that are counted.
const MAX_CALLS: usize = 64;
/// The pairs of equal writes with different arguments that are enough.
const ENOUGH_REFUSED: usize = 2;

/// What is known of one definition of a tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Conduct {
    pub(super) definition: u128,
    /// Of each call, the pairs in which its answer changed in the trial alone.
    changed_after: Vec<(u128, u32)>,
    /// The pairs in which an answer changed in the control alone.
    changed_without: u32,
    /// The writes that succeeded, and were refused when they were repeated.
    refused: Vec<u128>,
    pub(super) observations: Vec<Observation>,
}

impl Conduct {
    pub(super) fn of(definition: u128) -> Self {
        Self {
            definition,
            ..Self::default()
        }
    }

    /// Takes a pair in which the answer of this call changed in the trial alone, or in the control
    /// alone.
    pub(super) fn add_pair(&mut self, call: u128, in_trial: bool) -> Option<Observation> {
        if !in_trial {
            self.changed_without = self.changed_without.saturating_add(1);
            return None;
        }
        let is_full = self.changed_after.len() >= MAX_CALLS;
        match self.changed_after.iter_mut().find(|(one, _)| *one == call) {
            Some((_, pairs)) => *pairs = pairs.saturating_add(1).min(MOST_OF_ONE_CALL),
            None if is_full => {}
            None => self.changed_after.push((call, 1)),
        }
        let pairs = |(_, pairs): &(u128, u32)| u64::from((*pairs).min(MOST_OF_ONE_CALL));
        let (after, calls) = (
            self.changed_after.iter().map(pairs).sum::<u64>(),
            self.changed_after.len(),
        );
        let without = self.changed_without;
        let evidence = after as f64 * CHANGED_AFTER + f64::from(without) * CHANGED_WITHOUT;
        (evidence >= ENOUGH).then_some(())?;
        self.add(Field::ReadOnly, || {
            format!(
                "after it alone ran, {calls} reads changed {after} times; without it, {without} \
                 times"
            )
        })
    }

    /// Takes a write that succeeded before, and is now refused as what it makes exists.
    pub(super) fn add_refused(&mut self, call: u128) -> Option<Observation> {
        if self.refused.len() < ENOUGH_REFUSED && !self.refused.contains(&call) {
            self.refused.push(call);
        }
        (self.refused.len() >= ENOUGH_REFUSED).then_some(())?;
        self.add(Field::Idempotent, || {
            format!("{ENOUGH_REFUSED} calls that had succeeded were refused when repeated")
        })
    }

    /// Adds an observation; returns it if it is new.
    fn add(&mut self, field: Field, reason: impl FnOnce() -> String) -> Option<Observation> {
        if self.observations.iter().any(|known| known.field == field) {
            return None;
        }
        let reason = reason();
        let observation = Observation { field, reason };
        self.observations.push(observation.clone());
        Some(observation)
    }
}

/// The longest part of an error that is read, in bytes.
const MAX_TEXT: usize = 4_096;

/// What errors say if something exists. Words are lower-case, with one blank between them.
const EXISTS: [&str; 7] = [
    "already exist",
    "already in use",
    "already taken",
    "duplicate",
    "conflict",
    "status 409",
    "code 409",
];

/// Returns `true` if an error says that what was to be made exists.
pub(super) fn says_exists(text: &str) -> bool {
    let end = text.floor_char_boundary(MAX_TEXT);
    let text = text[..end].to_lowercase();
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    EXISTS.iter().any(|said| text.contains(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_say_something_exists_are_recognised() {
        for (text, exists) in [
            ("Error: user already exists", true),
            ("UNIQUE violation: DUPLICATE key", true),
            (r#"{"status":409}"#, true),
            ("409 Conflict", true),
            ("order 409 is not there", false),
            ("timed out", false),
            ("", false),
        ] {
            assert_eq!(says_exists(text), exists, "{text}");
        }
        let far = "é ".repeat(4_000) + "duplicate";
        assert!(!says_exists(&far));
    }

    #[test]
    fn it_takes_36_pairs_of_three_calls_and_more_for_each_contrary_one() {
        let needed = |calls: u128, contrary: u32| {
            let mut conduct = Conduct::of(1);
            for _ in 0..contrary {
                conduct.add_pair(0, false);
            }
            (1..1_000).find(|pair| conduct.add_pair(pair % calls, true).is_some())
        };
        assert_eq!(needed(3, 0), Some(36));
        assert_eq!(needed(10, 0), Some(36));
        assert_eq!(needed(2, 0), None);
        assert_eq!(needed(10, 10), Some(63));
        assert_eq!(needed(3, 10), None);
    }
}
