//! Looking whether what is served from the cache is right.
//!
//! A hit that is drawn is run once more, beside the call. If the answer is another one although
//! nothing was written from when the kept one was read until the new one is here, then the tool's
//! answers change by themselves, and none of them is kept any more. Every doubt is in the tool's
//! favour: a check that fails, is refused, or overlaps with a write or a purge says nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};
use tollgate_core::{Purpose, Tool, ToolCall, ToolOutput, ToolService};
use tower::ServiceExt;

use crate::event::Happened;
use crate::key::Identity;
use crate::scope::{are_current, epochs};
use crate::shared::{Shared, unshareable};
use crate::tools::Version;

/// One hit to be checked.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) shared: Arc<Shared>,
    pub(crate) version: Arc<Version>,
    pub(crate) tool: Arc<Tool>,
    pub(crate) identity: Identity,
    pub(crate) key: u128,
    /// The answer that was served.
    pub(crate) served: ToolOutput,
    /// When it was served, and how old it was.
    pub(crate) at: Instant,
    pub(crate) age: Duration,
}

/// A check is given up after this many of the tool's attempt timeouts.
const PATIENCE: u32 = 2;

impl Check {
    /// Starts the check beside the call, unless there is one of this key already, or there are enough.
    pub(crate) fn start<S: ToolService>(self, inner: &S, call: &ToolCall) {
        let fresh = &self.shared.fresh;
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let Ok(permit) = fresh.checks.clone().try_acquire_owned() else {
            return;
        };
        let Some(turn) = fresh.checking.enter(self.key) else {
            return;
        };
        let (inner, call) = (inner.clone(), call.in_background(Purpose::Verify));
        runtime.spawn(async move {
            let patience = call.plan().limits.attempt_timeout.saturating_mul(PATIENCE);
            let same = timeout(patience, self.run(inner, call)).await;
            self.conclude(same.ok().flatten());
            drop((permit, turn));
        });
    }

    /// Runs the call once more. Says whether its answer is still the one that was served; `None` if
    /// that cannot be said.
    async fn run<S: ToolService>(&self, inner: S, call: ToolCall) -> Option<bool> {
        let (shared, version) = (&*self.shared, &*self.version);
        let watched = version.footprint.read(&shared.scopes, &call);
        let epochs = epochs(&watched, shared.scopes.at(Instant::now())).ok()?;
        // no other epochs than those under which the kept answer was read, before the call and after
        let undisturbed = || shared.key(&self.identity, &epochs) == self.key;
        if !undisturbed() {
            return None;
        }
        let output = inner.oneshot(call).await.ok()?;
        if unshareable(&output).is_some() || !are_current(&watched, &epochs) || !undisturbed() {
            return None;
        }
        self.served.says_the_same(&output)
    }

    fn conclude(&self, same: Option<bool>) {
        let (shared, record) = (&*self.shared, &*self.version.record);
        match same {
            None => record.counters.unclear_checks.add_one(),
            Some(true) => {
                record.counters.checks.add_one();
                shared.tell(record, || Happened::Verified);
            }
            Some(false) => {
                record.counters.checks.add_one();
                // of several that find it out at once, one tells
                if self.version.turn_volatile() {
                    self.tell();
                }
            }
        }
    }

    fn tell(&self) {
        let (shared, record) = (&*self.shared, &*self.version.record);
        let apart = self.age.saturating_add(self.at.elapsed());
        let evidence: Arc<str> = format!(
            "two answers to one call, {:.1} s apart, differ, and nothing was written to `{}` in \
             between",
            apart.as_secs_f64(),
            record.set
        )
        .into();
        tracing::warn!(
            set = %record.set, tool = %record.tool, %evidence,
            "results change without a write: not caching the tool any more"
        );
        shared.tell(record, || Happened::TurnedVolatile {
            definition: self.tool.digest(),
            evidence: evidence.clone(),
        });
        shared.fresh.observer.tell(&self.tool, &evidence);
    }
}
