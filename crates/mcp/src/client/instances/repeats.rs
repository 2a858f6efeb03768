//! Equal reads of one instance whose answers differ: the server keeps state, whatever its tools
//! declare.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use callward_core::ToolCall;

/// The answers that are remembered. Beyond that, all are forgotten.
const MAX_ANSWERS: usize = 1_024;

/// What equal reads of one instance were answered last.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    hasher: RandomState,
    /// By instance, tool, arguments and `_meta`.
    answers: HashMap<u64, u128>,
}

impl Repeats {
    /// Takes the digest of the answer of a read. Returns `true` if an equal read of the instance
    /// had another one.
    pub(super) fn differ(&mut self, instance: u64, call: &ToolCall, digest: u128) -> bool {
        let meta = call.meta.as_ref().map(|meta| meta.members());
        let read = (instance, call.tool().name(), call.arguments(), meta);
        let key = self.hasher.hash_one(read);
        if self.answers.len() >= MAX_ANSWERS && !self.answers.contains_key(&key) {
            self.answers.clear();
        }
        let last = self.answers.insert(key, digest);
        last.is_some_and(|last| last != digest)
    }
}
