//! The errors of tower's own layers as errors of calls.

use callward_core::{Delivery, ErrorKind, ToolError};
use tower::BoxError;
use tower::load_shed::error::Overloaded;
use tower::timeout::error::Elapsed;

/// Turns an error of tower's `Timeout`, `LoadShed` or `Buffer` into one of a call.
///
/// These layers fail with `BoxError`, and the layers here want services that fail with
/// [`ToolError`]: put `map_err(callward::tool_error)` between them. A [`ToolError`] of the service
/// within stays as it is. A timeout is [`ErrorKind::Timeout`], and the call may have run; a call
/// that was shed is [`ErrorKind::Overloaded`], and was not sent; any other error is
/// [`ErrorKind::ServerFault`], and the call may have run.
///
/// ```
/// use std::time::Duration;
///
/// use callward::retry::{RetryConfig, RetryLayer};
/// use callward::{Tool, ToolCall, ToolError, ToolOutput};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let answer = |_: ToolCall| async { Ok::<_, ToolError>(ToolOutput::text("1.1")) };
/// let mut service = ServiceBuilder::new()
///     .layer(RetryLayer::new(RetryConfig::default())?)
///     .map_err(callward::tool_error)
///     .timeout(Duration::from_secs(5))
///     .service_fn(answer);
/// let call = ToolCall::new(Tool::read_only("get_rate")?, r#"{"currency":"EUR"}"#);
/// assert_eq!(service.ready().await?.call(call).await?.to_text(), "1.1");
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn tool_error(error: BoxError) -> ToolError {
    let error = match error.downcast::<ToolError>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    // a buffer wraps the error of its worker
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<ToolError>() {
            return error.clone();
        }
        source = cause.source();
    }
    let text = error.to_string();
    let failed = if error.is::<Elapsed>() {
        ToolError::new(ErrorKind::Timeout, Delivery::Unknown, text)
    } else if error.is::<Overloaded>() {
        ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, text)
    } else {
        ToolError::new(ErrorKind::ServerFault, Delivery::Unknown, text)
    };
    failed.with_source(error)
}
