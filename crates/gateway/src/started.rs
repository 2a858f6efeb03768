//! Whether the servers behind the gateway have started.

use std::sync::Arc;
use std::time::Duration;

use callward::Startup;
use tokio::sync::SetOnce;

/// Whether every server has listed its tools, failed to, or used up the startup timeout. Clones
/// share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Started(Arc<SetOnce<()>>);

impl Started {
    /// How long the answer to `initialize` may wait, which tells clients the instructions of
    /// servers. They come with a server's first answer, and clients never ask for them again.
    const INSTRUCTIONS: Duration = Duration::from_millis(500);

    /// Waits for the servers.
    pub(crate) async fn follow(&self, startup: Startup) {
        startup.finished().await;
        self.set();
    }

    fn set(&self) {
        // it may be set already, which is the same
        let _ = self.0.set(());
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.initialized()
    }

    /// Waits until the start is over: bounded by the startup timeout.
    pub(crate) fn finished(&self) -> impl Future<Output = ()> + Send + use<> {
        let started = self.0.clone();
        async move {
            started.wait().await;
        }
    }

    /// Waits until the start is over, for a moment only.
    pub(crate) fn soon(&self) -> impl Future<Output = ()> + Send + use<> {
        let finished = self.finished();
        async move {
            let _ = tokio::time::timeout(Self::INSTRUCTIONS, finished).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn greetings_wait_briefly_and_lists_until_the_start_is_over() {
        let started = Started::default();
        let mut finished = pin!(started.finished());
        let began = tokio::time::Instant::now();
        started.soon().await;
        assert_eq!(began.elapsed(), Started::INSTRUCTIONS);
        assert!(!started.is_finished());
        assert!(futures_util::poll!(finished.as_mut()).is_pending());
        started.set();
        finished.await;
        started.soon().await;
        assert_eq!(began.elapsed(), Started::INSTRUCTIONS);
    }
}
