//! NeuroLink's answers, defects included, for users who migrate from it.
//!
//! The rules give what NeuroLink 9.37 to 9.80 gives for the same input, known defects included: a
//! keyword anywhere in the description is enough, `getAndDelete` is read-only and destructive at
//! once, `sendEmail` that mentions a list is read-only. Nothing here is used unless the `neurolink`
//! rule set is asked for.

mod keywords;

use self::keywords::{Class, Found};
use super::evidence::Reason;
use super::{Inferred, Strength};
use crate::{Complexity, Field};

/// A description of more UTF-16 units makes its tool one of medium complexity.
const LONG: usize = 100;

/// Draws NeuroLink's conclusions.
///
/// A keyword in the name is strong evidence, one in the description weak; and read-only next to
/// destructive is weak wherever it stands.
pub(super) fn infer(name: &str, description: &str) -> Inferred {
    // as JavaScript lower-cases and counts
    let lowered = description.to_lowercase();
    let long = lowered.encode_utf16().count() > LONG;
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
        inferred.set(Field::ReadOnly, true, strength, reason);
    }
    if let Some((strength, reason)) = destructive {
        inferred.set(Field::Destructive, true, strength, reason.clone());
        inferred.set(Field::RequiresConfirmation, true, strength, reason);
    } else if let Some((strength, reason)) = found.first(Class::Idempotent) {
        inferred.set(Field::Idempotent, true, strength, reason);
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
