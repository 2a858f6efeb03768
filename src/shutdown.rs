//! Ends the background tasks of a stack.

use std::mem;

use crate::stack::Stack;

impl Stack {
    /// Ends what runs in the background, and waits for it: the tasks that follow servers, the last
    /// calls of servers that were [removed](Self::remove_server), and the audit log, which writes
    /// what is still queued.
    ///
    /// For the end of a process. Calls still pass, but no server is listed again, a lost connection
    /// is not noticed, and the audit log takes no records. It cannot be undone. The servers
    /// themselves keep running: their owner shuts them down.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), callward::BuildError> {
    /// let stack = callward::Stack::builder().build().await?;
    /// stack.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self) {
        self.stop_discovery();
        let mut tasks = mem::take(&mut *self.0.shared.tasks.lock());
        while tasks.join_next().await.is_some() {}
        #[cfg(feature = "audit")]
        if let Some(log) = self.audit() {
            log.close().await;
        }
    }
}
