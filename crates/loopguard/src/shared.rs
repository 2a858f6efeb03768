//! What all services of one layer share, and one call's part in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use callward_core::trail::{self, Stage};
use callward_core::{Caller, Tool, ToolCall, ToolError, ToolOutput};
use tokio::time::Instant;

use crate::answer::{answer, shorten};
use crate::key::{Keys, is_counted};
use crate::policy::may_have_changed;
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
    /// How many failing calls it remembers now; those that a write has reset count until they are
    /// looked at again.
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

/// One call whose end counts. Dropped before it, the call counts as no failure; but it may have run, so
/// it resets other calls.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    caller: Arc<Caller>,
    tool: Arc<Tool>,
    arguments: Bytes,
    /// Whether its own failures count. If not, it is watched for what it may change.
    counted: bool,
    ended: bool,
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
        // a read may be a poll: what it waits for can come from outside of the gateway
        if !call.plan().is_write() {
            return Decision::Pass;
        }
        let counted =
            !call.purpose().is_background() && is_counted(call.caller(), self.without_session);
        let mut watch = Watch {
            shared: self.clone(),
            caller: call.caller().clone(),
            tool: call.tool().clone(),
            arguments: call.arguments_bytes(),
            counted,
            ended: false,
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
        self.ended = true;
        let wrote = may_have_changed(result);
        match classify(result) {
            Verdict::Fail(told) if self.counted => {
                self.trial = None;
                let (session, now) = (self.session(), Instant::now());
                let key = self.key(session);
                let told = shorten(&told);
                self.shared.table.fail(session, key, now, told, wrote);
            }
            Verdict::Succeed => {
                self.trial = None;
                if let Some((_, key)) = self.on_the_books() {
                    self.shared.table.succeed(key);
                }
                self.reset_all();
            }
            // dropping the watch gives the try back
            Verdict::Ignore | Verdict::Fail(_) if wrote => self.reset_others(),
            Verdict::Ignore | Verdict::Fail(_) => {}
        }
    }

    /// Resets all calls. The counter is not touched where nothing is held.
    fn reset_all(&self) {
        if !self.shared.table.is_empty() {
            self.shared.table.reset();
        }
    }

    /// Resets all calls but this one.
    fn reset_others(&self) {
        match self.on_the_books() {
            Some((_, key)) => self.shared.table.reset_others(key),
            None => self.reset_all(),
        }
    }

    /// Returns what stands for session and call, if the session may have failures on the books. Nothing
    /// is hashed where nothing failed.
    fn on_the_books(&self) -> Option<(u64, u128)> {
        let table = &self.shared.table;
        if !self.counted || table.is_empty() {
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
        if !self.ended {
            self.reset_others();
        }
    }
}
