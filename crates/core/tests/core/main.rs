//! The types and rules that all layers share.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod properties;
mod refine;
mod refine_readers;
mod resolve;

use callward_core::{Annotations, IdempotencyKey, ToolCall};

/// Reads hints separated by spaces, each as `FIELD=VALUE`.
fn stated(hints: &str) -> Annotations {
    let hints = hints.split_whitespace().map(Annotations::from_assignment);
    hints.fold(Annotations::default(), |all, one| all.merge(&one.unwrap()))
}

/// Every layer moves a call, and some keep a clone of it: it must stay small.
#[test]
fn a_call_is_a_few_words() {
    let words = |bytes: usize| bytes.div_ceil(size_of::<u64>());
    assert!(words(size_of::<Option<IdempotencyKey>>()) <= 2);
    // what goes in registers
    assert!(words(size_of::<ToolCall>()) <= 2);
    assert!(words(size_of::<Option<ToolCall>>()) <= 2);
}
