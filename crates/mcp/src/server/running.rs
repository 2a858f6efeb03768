//! A running call, also after its client has left.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{BoxFuture, Delivery, ErrorKind, Inbound, Method, ToolError, ToolOutput};
use futures_util::FutureExt;
use futures_util::future::OptionFuture;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{self, Answer};
use super::client::Outlet;
use super::inflight::Entered;
use crate::wire::{Era, RequestId};

/// How long the answer of a call that may have an effect is awaited after its client has left.
const AFTER_ITS_CLIENT: Duration = Duration::from_secs(5);

/// The most calls in this process that go on after their clients have left; any more are dropped at
/// once. Far fewer than a server's permits, which clients that stay need.
static LEFT_BEHIND: Semaphore = Semaphore::const_new(16);

/// A running call.
///
/// Dropping it cancels the call, unless the call was sent and may have an effect: then its answer
/// is still read, for 5 s at most or until its client cancels it all the same, so that the cache
/// and the audit log learn whether the effect is there.
pub(super) struct RunningCall {
    pub(super) id: RequestId,
    pub(super) era: Era,
    pub(super) method: Method,
    pub(super) name: String,
    /// Where messages for the client go until the call ends.
    pub(super) outlet: Option<Arc<Outlet>>,
    /// Gone once the call has ended.
    pub(super) future: Option<BoxFuture<'static, Result<ToolOutput, ToolError>>>,
    pub(super) inbound: Arc<Inbound>,
    /// Where the client can cancel the call, if it can.
    pub(super) entered: Option<Entered>,
}

impl RunningCall {
    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// The answer if the client cancelled the call; the server is notified at once.
    pub(super) async fn run(mut self) -> Result<Answer, Answer> {
        let cancelled = OptionFuture::from(self.entered.as_ref().map(Entered::cancelled));
        let call = self.future.as_mut();
        // a call that panics fails alone: its connection has other calls to carry
        let call = call.map(|call| AssertUnwindSafe(call).catch_unwind());
        let ended = tokio::select! {
            biased;
            Some(()) = cancelled => None,
            ended = OptionFuture::from(call) => ended,
        };
        self.future = None;
        let is_cancelled = ended.is_none();
        let failed = |kind, text: &'static str| Err(ToolError::new(kind, Delivery::Unknown, text));
        let outcome = match ended {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => failed(ErrorKind::Internal, "the call panicked"),
            None => failed(ErrorKind::Cancelled, "the client cancelled the call"),
        };
        let answer = answer::of_call(&self.id, self.era, (self.method, &self.name), outcome);
        match is_cancelled {
            true => Err(answer),
            false => Ok(answer),
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(outlet) = &self.outlet {
            outlet.close();
        }
        if let Some(future) = self.future.take()
            && self.inbound.client_left()
            && let Ok(place) = LEFT_BEHIND.try_acquire()
            && let Ok(runtime) = Handle::try_current()
        {
            let entered = self.entered.take();
            runtime.spawn(async move {
                let cancelled = entered.as_ref().map(Entered::cancelled_by_id);
                tokio::select! {
                    Some(()) = OptionFuture::from(cancelled) => {}
                    // no caller waits for it: layers have seen how it ended
                    _ended = timeout(AFTER_ITS_CLIENT, future) => {}
                }
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

    use super::super::inflight::InFlight;
    use super::*;

    /// Returns whether a call that takes this long ends after its client is gone, and when it is
    /// dropped. The client leaves at once, and cancels the call at this time.
    async fn leave(secs: u64, is_sent: bool, cancel_at: Option<u64>) -> (bool, u64) {
        let inbound = Arc::new(Inbound::new(Transport::Tcp));
        assert!(!is_sent || inbound.may_send());
        let (sender, ended) = oneshot::channel::<()>();
        let (calls, id) = (Arc::new(InFlight::default()), RequestId::number(1));
        let call = RunningCall {
            id: id.clone(),
            era: Era::Legacy,
            name: "add".into(),
            method: Method::CallTool,
            outlet: None,
            future: Some(Box::pin(async move {
                sleep(Duration::from_secs(secs)).await;
                sender.send(()).unwrap();
                pending().await
            })),
            inbound,
            entered: Some(calls.enter(&id)),
        };
        let (began, soon) = (Instant::now(), Duration::from_millis(1));
        if cancel_at == Some(0) {
            calls.cancel(&id);
            assert!(call.run().await.is_err());
        } else {
            assert!(timeout(soon, call.run()).await.is_err());
        }
        if let Some(at) = cancel_at {
            sleep(Duration::from_secs(at)).await;
            calls.cancel(&id);
        }
        let has_ended = ended.await.is_ok();
        (has_ended, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn the_answer_of_a_sent_write_is_read_for_5_s_after_its_client() {
        for (secs, is_sent, cancel_at, expected) in [
            (3, true, None, (true, 3)),
            (6, true, None, (false, 5)),
            (3, false, None, (false, 0)),
            (3, true, Some(0), (false, 0)),
            (4, true, Some(2), (false, 2)),
        ] {
            let ended = leave(secs, is_sent, cancel_at).await;
            assert_eq!(ended, expected, "{secs} {is_sent} {cancel_at:?}");
        }
        // one that was not sent by then never is
        let inbound = Inbound::new(Transport::Tcp);
        assert!(!inbound.client_left() && !inbound.may_send());
    }
}
