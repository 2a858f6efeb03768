//! Every layer moves a call, and some keep a clone of it: it must stay small.

use callward_core::{IdempotencyKey, ToolCall};

#[test]
fn a_call_is_a_few_words() {
    let words = |bytes: usize| bytes.div_ceil(size_of::<u64>());
    assert!(words(size_of::<Option<IdempotencyKey>>()) <= 2);
    // what goes in registers
    assert!(words(size_of::<ToolCall>()) <= 2);
    assert!(words(size_of::<Option<ToolCall>>()) <= 2);
}
