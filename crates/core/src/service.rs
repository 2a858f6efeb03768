//! The bound of every layer on its inner service.

use tower_service::Service;

use crate::{ToolCall, ToolError, ToolOutput};

/// A service that answers tool calls. Layers wrap one and are one.
///
/// Implemented for every matching [`Service`], so that layers write `S: ToolService` instead of
/// five bounds.
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
