//! The one bound every layer has on what is inside it.

use tower_service::Service;

use crate::{ToolCall, ToolError, ToolOutput};

/// A service that answers tool calls: what layers wrap and what they are.
///
/// Implemented by itself for every fitting [`Service`], so that layers write `S: ToolService`
/// instead of five bounds.
pub trait ToolService:
    Service<ToolCall, Response = ToolOutput, Error = ToolError, Future: Send> + Clone + Send + 'static
{
}

impl<S> ToolService for S where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError, Future: Send>
        + Clone
        + Send
        + 'static
{
}
