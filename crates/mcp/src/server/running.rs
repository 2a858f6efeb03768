//! A running call, also after its client has left.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{BoxFuture, Delivery, ErrorKind, Inbound, ToolError, ToolOutput};
use futures_util::FutureExt;
use futures_util::future::OptionFuture;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{self, Answer};
use super::progress::Relay;
use crate::wire::{Era, RequestId};

/// How long the answer of a call that may have an effect is awaited after its client has left.
const AFTER_ITS_CLIENT: Duration = Duration::from_secs(5);

/// The most calls in this process that go on after their clients have left; any more are dropped at
/// once. Far fewer than a server's permits, which clients that stay need.
static LEFT_BEHIND: Semaphore = Semaphore::const_new(16);

/// A running call.
///
/// Dropping it cancels the call, unless the call was sent and may have an effect: then its answer
/// is still read, for 5 s at most, so that the cache and the audit log learn whether the effect is
/// there.
pub(super) struct RunningCall {
    pub(super) id: RequestId,
    pub(super) era: Era,
    pub(super) name: String,
    pub(super) relay: Option<Arc<Relay>>,
    /// Gone once the call has ended.
    pub(super) future: Option<BoxFuture<'static, Result<ToolOutput, ToolError>>>,
    pub(super) inbound: Arc<Inbound>,
}

impl RunningCall {
    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// The answer if the client cancelled the call; the server is notified at once.
    pub(super) async fn run(
        mut self,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Answer, Answer> {
        let call = self.future.as_mut();
        // a call that panics fails alone: its connection has other calls to carry
        let call = call.map(|call| AssertUnwindSafe(call).catch_unwind());
        let ended = tokio::select! {
            biased;
            () = cancelled => None,
            ended = OptionFuture::from(call) => ended,
        };
        self.future = None;
        let is_cancelled = ended.is_none();
        let outcome = match ended {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => {
                let text = "the call panicked";
                Err(ToolError::new(ErrorKind::Internal, Delivery::Unknown, text))
            }
            None => {
                let text = "the client cancelled the call";
                let error = ToolError::new(ErrorKind::Cancelled, Delivery::Unknown, text);
                Err(error)
            }
        };
        let answer = answer::of_call(&self.id, self.era, &self.name, outcome);
        if is_cancelled {
            Err(answer)
        } else {
            Ok(answer)
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(relay) = &self.relay {
            relay.close();
        }
        if let Some(future) = self.future.take()
            && self.inbound.client_left()
            && let Ok(place) = LEFT_BEHIND.try_acquire()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                // no caller waits for it: layers have seen how it ended
                let _ended = timeout(AFTER_ITS_CLIENT, future).await;
                drop(place);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use callward_core::Transport;
    use tokio::sync::oneshot;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Returns whether a call that takes this long ends after its client is gone, and when it is
    /// dropped.
    async fn leave(secs: u64, is_sent: bool, is_cancelled: bool) -> (bool, u64) {
        let inbound = Arc::new(Inbound::new(Transport::Tcp));
        assert!(!is_sent || inbound.may_send());
        let (sender, ended) = oneshot::channel::<()>();
        let call = RunningCall {
            id: RequestId::number(1),
            era: Era::Legacy,
            name: "add".into(),
            relay: None,
            future: Some(Box::pin(async move {
                sleep(Duration::from_secs(secs)).await;
                sender.send(()).unwrap();
                pending().await
            })),
            inbound,
        };
        let (began, soon) = (Instant::now(), Duration::from_millis(1));
        match is_cancelled {
            true => assert!(call.run(sleep(soon)).await.is_err()),
            false => assert!(timeout(soon, call.run(pending())).await.is_err()),
        }
        let has_ended = ended.await.is_ok();
        (has_ended, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn the_answer_of_a_sent_write_is_read_for_5_s_after_its_client() {
        for (secs, is_sent, is_cancelled, expected) in [
            (3, true, false, (true, 3)),
            (6, true, false, (false, 5)),
            (3, false, false, (false, 0)),
            (3, true, true, (false, 0)),
        ] {
            let ended = leave(secs, is_sent, is_cancelled).await;
            assert_eq!(ended, expected, "{secs} {is_sent} {is_cancelled}");
        }
        // one that was not sent by then never is
        let inbound = Inbound::new(Transport::Tcp);
        assert!(!inbound.client_left() && !inbound.may_send());
    }
}
