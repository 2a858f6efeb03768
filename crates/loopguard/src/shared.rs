//! What all services of one layer share, and one call's part in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::time::Instant;
use tollgate_core::trail::{self, Stage};
use tollgate_core::{Caller, Tool, ToolCall, ToolError, ToolOutput};

use crate::answer::{answer, shorten};
use crate::key::{Keys, is_counted};
use crate::table::{Admission, Table};
use crate::{LoopGuardConfig, Verdict, WithoutSession, classify};

/// What all services of one layer share.
#[derive(Debug)]
pub(crate) struct Shared {
    table: Table,
    keys: Keys,
    without_session: WithoutSession,
    answered: AtomicU64,
}

/// What the guard holds and did, since the layer was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LoopGuardStats {
    /// How many calls it answered in their servers' place.
    pub answered: u64,
    /// How many failing calls it remembers now.
    pub held: usize,
}

/// What is to be done with a call.
pub(crate) enum Decision {
    /// It is answered.
    Answer(ToolOutput),
    /// It is sent, and its end does not count.
    Pass,
    /// It is sent, and its end counts.
    Watch(Watch),
}

/// One call whose end counts. Dropped before it, the call counts as nothing.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    caller: Arc<Caller>,
    tool: Arc<Tool>,
    arguments: Bytes,
    /// The try that this call is, until its end. Boxed, as few calls are one.
    trial: Option<Box<(u128, Instant)>>,
}

impl Shared {
    /// `config` is valid.
    pub(crate) fn new(config: &LoopGuardConfig) -> Self {
        Self {
            table: Table::new(config),
            keys: Keys::new(),
            without_session: config.without_session,
            answered: AtomicU64::new(0),
        }
    }

    pub(crate) fn stats(&self) -> LoopGuardStats {
        LoopGuardStats {
            answered: self.answered.load(Ordering::Relaxed),
            held: self.table.held(),
        }
    }

    /// Decides about a call that is about to be sent.
    pub(crate) fn decide(self: &Arc<Self>, call: &ToolCall) -> Decision {
        if call.purpose().is_background() || !is_counted(call.caller(), self.without_session) {
            return Decision::Pass;
        }
        let mut watch = Watch {
            shared: self.clone(),
            caller: call.caller().clone(),
            tool: call.tool().clone(),
            arguments: call.arguments_bytes(),
            trial: None,
        };
        let Some((_, key)) = watch.on_the_books() else {
            return Decision::Watch(watch);
        };
        let now = Instant::now();
        match self.table.admit(key, now) {
            Admission::Go => {}
            Admission::Try => watch.trial = Some(Box::new((key, now))),
            Admission::Stop {
                failures,
                told,
                wait,
            } => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                let tool = call.tool().name();
                tracing::info!(%tool, failures, "answers a call that keeps failing in its server's place");
                if let Some(record) = call.record() {
                    record.note_guarded();
                    record.decided(|| {
                        let why = format!("the session saw it fail {failures} times");
                        trail::Decision::new(Stage::LoopGuard, trail::Verdict::Answered, why)
                    });
                }
                return Decision::Answer(answer(tool.as_str(), failures, &told, wait));
            }
        }
        Decision::Watch(watch)
    }
}

impl Watch {
    /// Takes in how the call ended.
    pub(crate) fn end(mut self, result: &Result<ToolOutput, ToolError>) {
        match classify(result) {
            // dropping the watch gives the try back
            Verdict::Ignore => {}
            Verdict::Succeed => {
                self.trial = None;
                if let Some((_, key)) = self.on_the_books() {
                    self.shared.table.succeed(key);
                }
            }
            Verdict::Fail(told) => {
                self.trial = None;
                let (session, now) = (self.session(), Instant::now());
                let key = self.key(session);
                self.shared.table.fail(session, key, now, shorten(&told));
            }
        }
    }

    /// Returns what stands for session and call, if the session may have failures on the books. Nothing
    /// is hashed where nothing failed.
    fn on_the_books(&self) -> Option<(u64, u128)> {
        let table = &self.shared.table;
        if table.is_empty() {
            return None;
        }
        let session = self.session();
        table
            .has_any_of(session)
            .then(|| (session, self.key(session)))
    }

    fn session(&self) -> u64 {
        self.shared.keys.session(&self.caller)
    }

    fn key(&self, session: u64) -> u128 {
        self.shared.keys.call(session, &self.tool, &self.arguments)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(trial) = self.trial.take() {
            let (key, began) = *trial;
            self.shared.table.give_back(key, began);
        }
    }
}
