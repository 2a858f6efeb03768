//! What a server tells of itself, as a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use callward_core::ServerEvent;
use futures_core::Stream;
use tokio::sync::mpsc;

/// The receiving end.
pub(crate) struct Events(mpsc::UnboundedReceiver<ServerEvent>);

impl Events {
    pub(crate) fn channel() -> (mpsc::UnboundedSender<ServerEvent>, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (sender, Self(receiver))
    }
}

impl Stream for Events {
    type Item = ServerEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerEvent>> {
        self.0.poll_recv(cx)
    }
}
