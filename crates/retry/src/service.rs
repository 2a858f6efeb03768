//! The service: `tower::retry` with a policy of ours.

use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tokio::time::Instant;
use tower::retry::future::ResponseFuture;
use tower_service::Service;

use crate::RetryPolicy;

/// Retries a failed call when that is safe.
///
/// ```
/// use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
/// use callward_retry::RetryLayer;
/// use callward_testkit::{MockService, call, tool};
/// use serde_json::json;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), ToolError> {
/// let server = MockService::sequence(vec![
///     Err(ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer within 5s")),
///     Ok(ToolOutput::text("sunny")),
/// ]);
/// let service = ServiceBuilder::new().layer(RetryLayer::default()).service(server);
/// let weather = tool("get_weather").read_only().build();
/// let output = service.oneshot(call(&weather, json!({"city": "Oslo"}))).await?;
/// assert_eq!(output.to_text(), "sunny");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Retry<S> {
    inner: tower::retry::Retry<RetryPolicy, S>,
    /// The one that `inner` holds and does not expose.
    policy: RetryPolicy,
}

impl<S> Retry<S> {
    pub(crate) fn new(inner: S, policy: RetryPolicy) -> Self {
        Self {
            inner: tower::retry::Retry::new(policy.clone(), inner),
            policy,
        }
    }
}

impl<S: ToolService> Service<ToolCall> for Retry<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = ResponseFuture<RetryPolicy, S, ToolCall>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        // before the first attempt, so that all attempts have one key
        call.ensure_idempotency_key();
        let shared = &self.policy.shared;
        shared.share_out(&mut call, Instant::now(), 0);
        self.inner.call(call)
    }
}
