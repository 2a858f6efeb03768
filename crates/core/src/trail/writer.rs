//! Writing decisions after the call itself went on.

use std::sync::Arc;

use super::Decision;
use crate::{CallRecord, ToolCall};

/// Writes decisions about one attempt whose call moved on. Made only for calls with a
/// record that wants decisions.
#[derive(Debug, Clone)]
pub struct Writer {
    record: Arc<CallRecord>,
    attempt: u32,
    beside: bool,
}

impl Writer {
    /// Returns a writer for this attempt of the call, if the decisions are read.
    pub fn of(call: &ToolCall) -> Option<Self> {
        let record = call.record()?;
        record.wants_decisions().then(|| Self {
            record: record.clone(),
            attempt: call.attempt().number,
            beside: call.attempt().elsewhere_only,
        })
    }

    /// Writes a decision about the attempt.
    pub fn decided(&self, make: impl FnOnce() -> Decision) {
        self.record.decided(|| Decision {
            attempt: Some(self.attempt),
            beside: self.beside,
            ..make()
        });
    }
}
