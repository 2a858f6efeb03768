//! A service of the operator that looks at calls.

use bytes::Bytes;
use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput};

/// Looks at calls before and after they run, outside of this process. Both futures have to end in
/// bounded time: a call waits for them.
pub trait Screen: Send + Sync + 'static {
    /// Looks at a call before it runs. `None` lets it pass, and `Some` replaces its arguments,
    /// which are checked by the rules again. The error refuses it: it was not sent.
    fn arguments(&self, call: &ToolCall) -> BoxFuture<'static, Result<Option<Bytes>, ToolError>>;

    /// Looks at a result. `None` lets it pass, and `Some` replaces it. The error says why it is
    /// withheld.
    fn result(
        &self,
        call: &ToolCall,
        output: &ToolOutput,
    ) -> BoxFuture<'static, Result<Option<ToolOutput>, String>>;
}
