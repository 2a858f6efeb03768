//! The recipient of progress reports.

/// The recipient of the progress reports of a running call.
///
/// Called from the connection's reading task: it must neither block nor panic.
pub trait ProgressSink: Send + Sync {
    /// Takes one report: the raw JSON `params` of the server's `notifications/progress`, with the
    /// server's own token still in it.
    fn report(&self, params: &[u8]);

    /// Notes that the call starts or stops waiting for a person: for a confirmation, say, or for
    /// an answer to a question. Such time counts against no timeout. Default: does nothing.
    fn waits_for_person(&self, waits: bool) {
        let _ = waits;
    }
}
