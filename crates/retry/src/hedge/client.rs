//! The client of a hedge, which is not asked: the first attempt may ask the same.

use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{
    BoxFuture, CallClient, ClientMethod, ClientPeer, ClientRefusal, LogLevel, OutputStatus,
    ToolCall, ToolOutput,
};
use tokio::sync::Notify;

use super::future::Output;

/// The client of a hedge.
pub(super) struct Unasked {
    peer: Arc<dyn ClientPeer>,
    would_ask: Notify,
}

impl Unasked {
    /// Puts one before the client of this call, if it has a client.
    pub(super) fn before(call: &mut ToolCall) -> Option<Arc<Self>> {
        let client = call.client.clone()?;
        let unasked = Arc::new(Self {
            peer: client.peer().clone(),
            would_ask: Notify::new(),
        });
        let instead = CallClient::new(unasked.clone(), client.takes_rounds());
        call.context_mut().client = Some(instead);
        Some(unasked)
    }

    /// Runs the hedge; `None` if it would ask, then or by its result.
    pub(super) async fn run(
        unasked: Option<Arc<Self>>,
        hedge: impl Future<Output = Output>,
    ) -> Option<Output> {
        let Some(unasked) = unasked else {
            return Some(hedge.await);
        };
        tokio::select! {
            biased;
            () = unasked.would_ask.notified() => None,
            result = hedge => {
                let status = result.as_ref().ok().map(ToolOutput::status);
                (status != Some(OutputStatus::InputRequired)).then_some(result)
            }
        }
    }
}

impl ClientPeer for Unasked {
    fn ask(&self, _: ClientMethod, _: Bytes) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
        self.would_ask.notify_one();
        Box::pin(pending())
    }

    fn notify(&self, method: &'static str, params: &[u8]) {
        self.peer.notify(method, params);
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.peer.log_level()
    }
}
