//! Waits for the start of the servers.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

/// Whether every server has listed its tools, failed to, or used up the startup timeout. Clones
/// share it; one of them has to be polled.
#[derive(Clone)]
pub(crate) struct Started(Shared<BoxFuture<'static, ()>>);

impl Started {
    /// How long the answer to `initialize` may wait, which tells clients the instructions of
    /// servers. They come with a server's first answer, and clients never ask for them again. A
    /// program that `npx` or Python starts takes seconds.
    const INSTRUCTIONS: Duration = Duration::from_secs(5);

    pub(crate) fn new(start: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(start.boxed().shared())
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.peek().is_some()
    }

    /// Waits until the start is over: bounded by the startup timeout.
    pub(crate) fn finished(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.clone()
    }

    /// Waits briefly until the start is over.
    pub(crate) fn soon(&self) -> impl Future<Output = ()> + Send + use<> {
        let finished = self.finished();
        async move {
            let _ = tokio::time::timeout(Self::INSTRUCTIONS, finished).await;
        }
    }
}
