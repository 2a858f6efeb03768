//! The moment at which a server or gate that refused a call is worth asking again.

use std::fmt;
use std::sync::Arc;

use crate::BoxFuture;

/// The moment at which a gate of ours that refused a call is worth asking again, where it may come
/// before the time that the [refusal states](crate::ToolError::retry_after): a breaker waits for
/// the outcome of a probe, say, and states when it would do without. Or the moment at which an
/// unreachable server is back, if it is restarted.
///
/// This is not a promise: the gate, or the server, is asked as usual and may refuse again.
///
/// Clones are the same moment.
#[derive(Clone)]
pub struct Reopening(Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>);

impl Reopening {
    /// Wraps the moment that a gate knows, as a function that waits for it: at once if it was after
    /// the refusal and is over. What it returns may be dropped, and it may be called by any number
    /// of callers.
    pub fn new(reopened: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reopened))
    }

    /// Waits for the moment. At once if it was after the refusal and is over.
    pub fn reopened(&self) -> BoxFuture<'static, ()> {
        (self.0)()
    }
}

impl fmt::Debug for Reopening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reopening").finish_non_exhaustive()
    }
}
