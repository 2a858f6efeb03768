//! A running call, also after its client has left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use callward_core::{BoxFuture, Delivery, ErrorKind, Inbound, ToolError, ToolOutput};
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

/// A running call, as a future of its answer.
///
/// Dropping it cancels the call, unless the call was sent and may have an effect: then its answer
/// is still read, for 5 s at most, so that the cache and the audit log learn whether the effect is
/// there.
pub(super) struct RunningCall {
    pub(super) id: RequestId,
    pub(super) era: Era,
    pub(super) name: String,
    pub(super) relay: Option<Arc<Relay>>,
    pub(super) future: Option<CallFuture>,
    pub(super) inbound: Arc<Inbound>,
}

pub(super) type CallFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;

impl RunningCall {
    /// Cancels a call on its client's request: the server is notified at once. Returns the answer.
    pub(super) fn cancel(&mut self) -> Answer {
        self.future = None;
        let text = "the client cancelled the call";
        let error = ToolError::new(ErrorKind::Cancelled, Delivery::Unknown, text);
        self.end(Err(error))
    }

    fn end(&self, outcome: Result<ToolOutput, ToolError>) -> Answer {
        if let Some(relay) = &self.relay {
            relay.close();
        }
        answer::of_call(&self.id, self.era, &self.name, outcome)
    }
}

impl Future for RunningCall {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let this = &mut *self;
        let Some(future) = &mut this.future else {
            return Poll::Pending;
        };
        // a call that panics fails alone: its connection has other calls to carry
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        let outcome = match polled {
            Ok(polled) => ready!(polled),
            Err(_) => {
                let text = "the call panicked";
                Err(ToolError::new(ErrorKind::Internal, Delivery::Unknown, text))
            }
        };
        this.future = None;
        Poll::Ready(this.end(outcome))
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

    /// Says when it is dropped, and whether the call had ended.
    struct NotesEnd(Option<oneshot::Sender<(bool, Instant)>>, bool);

    impl Drop for NotesEnd {
        fn drop(&mut self) {
            if let Some(sender) = self.0.take() {
                let _receiver_may_be_gone = sender.send((self.1, Instant::now()));
            }
        }
    }

    /// A call that takes this long, and the receiver of its end.
    fn call(takes: Duration, is_sent: bool) -> (RunningCall, oneshot::Receiver<(bool, Instant)>) {
        let inbound = Arc::new(Inbound::new(Transport::Tcp));
        assert!(!is_sent || inbound.may_send());
        let (sender, ended) = oneshot::channel();
        let mut ends = NotesEnd(Some(sender), false);
        let future = Box::pin(async move {
            sleep(takes).await;
            ends.1 = true;
            drop(ends);
            pending().await
        });
        let id = RequestId::from_raw(r#""a""#).unwrap();
        let call = RunningCall {
            id,
            era: Era::Legacy,
            name: "add".into(),
            relay: None,
            future: Some(future),
            inbound,
        };
        (call, ended)
    }

    /// Returns whether a call ends whose client leaves it in this way, and when it is dropped.
    async fn leave(
        takes: Duration,
        is_sent: bool,
        leave: impl FnOnce(RunningCall),
    ) -> (bool, Duration) {
        let began = Instant::now();
        let (mut call, ended) = call(takes, is_sent);
        assert!(futures_util::poll!(&mut call).is_pending());
        leave(call);
        let (has_ended, at) = ended.await.unwrap();
        (has_ended, at - began)
    }

    #[tokio::test(start_paused = true)]
    async fn the_answer_of_a_sent_write_is_read_for_5_s_after_its_client() {
        let (quick, slow) = (Duration::from_secs(3), Duration::from_secs(6));
        assert_eq!(leave(quick, true, drop).await, (true, quick));
        assert_eq!(leave(slow, true, drop).await, (false, AFTER_ITS_CLIENT));
        assert_eq!(leave(quick, false, drop).await, (false, Duration::ZERO));
        let cancel = |mut call: RunningCall| {
            call.cancel();
        };
        assert_eq!(leave(quick, true, cancel).await, (false, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_not_sent_before_its_client_left_never_is() {
        let inbound = Inbound::new(Transport::Tcp);
        assert!(!inbound.client_left());
        assert!(!inbound.may_send());
    }
}
