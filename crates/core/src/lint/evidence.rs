//! Declared hints that the tool's own words contradict.
//!
//! Only strong evidence counts, the same that makes [`resolve`](crate::resolve) doubt a server of
//! standard trust. An author may state a hint that is stricter than the evidence.

use super::candidate::Case;
use super::{Code, Notes};
use crate::Field;
use crate::infer::words::plain;

/// Arguments that hold an address to open. A list of them is often data: `urls` to block.
const ADDRESSES: &[&str] = &["url", "website", "webpage"];
/// Words of a description that explain why a repeat is harmless.
const REPEATS: &str = "already|idempoten|if it does not exist|if it doesn't exist|if needed|\
     if not exist|no effect|no-op|or ensure|or update|unless it exists|upsert";
/// Arguments by which a server knows a repeat.
const REPEAT_KEYS: &[&str] = &["idempotency", "requestid", "clienttoken", "dedup"];

pub(super) fn check(case: &Case<'_>, notes: &mut Notes<'_>) {
    read_only(case, notes);
    if case.hints.read_only_hint != Some(true) {
        destructive(case, notes);
        idempotent(case, notes);
    }
    closed_world(case, notes);
}

fn read_only(case: &Case<'_>, notes: &mut Notes<'_>) {
    let hints = &case.hints;
    // both at once is reported as that
    if hints.read_only_hint != Some(true) || hints.destructive_hint == Some(true) {
        return;
    }
    let whole = &case.whole;
    if let Some(evidence) = whole.firm(Field::Destructive, true) {
        notes.add(Code::ReadOnlyDestroys, evidence);
    } else if let Some(evidence) = whole.firm(Field::ReadOnly, false) {
        notes.add(Code::ReadOnlyWrites, evidence);
    } else if case.words.annotations.read_only_hint == Some(true)
        && whole.annotations.read_only_hint == Some(false)
        && let Some(evidence) = whole.evidence_for(Field::ReadOnly)
    {
        notes.add(Code::ReadOnlyByArgument, evidence);
    }
}

fn destructive(case: &Case<'_>, notes: &mut Notes<'_>) {
    if case.hints.destructive_hint == Some(false)
        && let Some(evidence) = case.whole.firm(Field::Destructive, true)
    {
        notes.add(Code::DestructiveDenied, evidence);
    }
}

fn idempotent(case: &Case<'_>, notes: &mut Notes<'_>) {
    if case.hints.idempotent_hint == Some(true)
        && case.whole.annotations.idempotent_hint.is_none()
        && let Some(evidence) = case.whole.firm(Field::ReadOnly, false)
        && !accounts_for_repeats(case)
    {
        notes.add(Code::DoubtfulIdempotence, evidence);
    }
}

fn accounts_for_repeats(case: &Case<'_>) -> bool {
    let text = case.subject.description.unwrap_or("").to_lowercase();
    let has_key = |argument: &str| {
        let plain = plain(argument);
        REPEAT_KEYS.iter().any(|key| plain.contains(key))
    };
    REPEATS.split('|').any(|phrase| text.contains(phrase)) || case.arguments().any(has_key)
}

fn closed_world(case: &Case<'_>, notes: &mut Notes<'_>) {
    if case.hints.open_world_hint != Some(false) {
        return;
    }
    let is_address = |argument: &&str| {
        ADDRESSES
            .iter()
            .any(|word| argument.eq_ignore_ascii_case(word))
    };
    if let Some(argument) = case.arguments().find(is_address) {
        notes.add(Code::ClosedWorldUrl, argument);
    }
}
