//! The pause before a retry.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{CallRecord, ToolCall, ToolError};
use tokio::time::{Instant, sleep, timeout};

use crate::budget::Waiting;
use crate::failure::retried;

/// The pause before a retry.
#[derive(Debug)]
pub(crate) struct Pause {
    /// A wait for a breaker or a server, which may end early.
    pub(crate) wait: Duration,
    /// The rest, in any case.
    pub(crate) rest: Duration,
    pub(crate) waiting: Option<Waiting>,
}

impl Pause {
    pub(crate) const fn longest(&self) -> Duration {
        self.wait.saturating_add(self.rest)
    }

    /// Begins the pause after a failed attempt.
    pub(crate) fn after(
        self,
        call: &ToolCall,
        error: &ToolError,
    ) -> impl Future<Output = ()> + Send + use<> {
        let recorder = PauseRecorder {
            began: Instant::now(),
            error: error.clone(),
            record: call.record.clone(),
            call: call.clone_to_decide(),
        };
        async move {
            if let Some(waiting) = &self.waiting {
                let woken = async {
                    tokio::select! {
                        () = reopened(&recorder.error) => {}
                        () = waiting.0.server_is_back.notified() => {}
                    }
                };
                let _ended = timeout(self.wait, woken).await;
            }
            sleep(self.rest).await;
            drop((recorder, self.waiting));
        }
    }
}

/// Completes when what refused the call, or the server it was for, is worth another attempt.
async fn reopened(error: &ToolError) {
    match &error.reopening {
        Some(reopening) => reopening().await,
        None => std::future::pending().await,
    }
}

/// Records a pause when it ends, also with the call.
struct PauseRecorder {
    began: Instant,
    error: ToolError,
    record: Option<Arc<CallRecord>>,
    call: Option<ToolCall>,
}

impl Drop for PauseRecorder {
    fn drop(&mut self) {
        let paused = self.began.elapsed();
        if let Some(record) = &self.record {
            record.with(|facts| facts.pause_time += paused);
        }
        if let Some(call) = &self.call {
            call.decided(|| retried(&self.error, paused));
        }
    }
}
