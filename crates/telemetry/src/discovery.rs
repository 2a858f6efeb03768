//! One span per listing of a server's tools.

use std::future::Future;
use std::sync::Arc;

use callward_core::{ServerId, ToolDefinition, ToolError, Watch};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::client_request::ClientRequestInfo;
use crate::error_type::Status;
use crate::names;

/// The span of one listing. Dropped before its end, the listing was cancelled.
///
/// Listings are few, so each has a span; sampling does not apply.
#[derive(Debug)]
pub struct DiscoverySpan {
    span: Span,
    request: Option<Arc<ClientRequestInfo>>,
    started: Instant,
    /// What is written at the end.
    status: Status,
}

impl DiscoverySpan {
    /// Begins a span for a listing of this server.
    #[must_use]
    pub fn begin(server: &ServerId) -> Self {
        let span = tracing::info_span!(
            target: names::TARGET,
            parent: None,
            names::DISCOVERY_SPAN,
            { names::OTEL_NAME } = names::METHOD_TOOLS_LIST,
            { names::OTEL_KIND } = names::KIND_INTERNAL,
            { names::OTEL_STATUS } = Empty,
            { names::METHOD } = Empty,
            { names::REQUEST_ID } = Empty,
            { names::PROTOCOL_VERSION } = Empty,
            { names::SESSION_ID } = Empty,
            { names::TRANSPORT } = Empty,
            { names::PROTOCOL } = Empty,
            { names::PROTOCOL_HTTP_VERSION } = Empty,
            { names::SERVER_ADDRESS } = Empty,
            { names::SERVER_PORT } = Empty,
            { names::ERROR_TYPE } = Empty,
            { names::STATUS_CODE } = Empty,
            { names::SERVER } = server.as_str(),
            { names::TOOLS } = Empty,
            { names::DURATION_MS } = Empty,
        );
        Self {
            request: (!span.is_disabled())
                .then(|| ClientRequestInfo::new(&span, names::METHOD_TOOLS_LIST, None)),
            span,
            started: Instant::now(),
            status: Status::of_request(None),
        }
    }

    /// Returns the observer of the requests that are sent for the listing; `None` if the span is
    /// disabled.
    #[must_use]
    pub fn watch(&self) -> Option<Watch> {
        self.request.as_ref().map(ClientRequestInfo::watch)
    }

    /// Runs the listing within the span, and returns its outcome. Dropping the future cancels it.
    ///
    /// # Errors
    ///
    /// The error of the listing.
    pub async fn follow<F>(mut self, listed: F) -> Result<Vec<ToolDefinition>, ToolError>
    where
        F: Future<Output = Result<Vec<ToolDefinition>, ToolError>>,
    {
        let listed = listed.instrument(self.span.clone()).await;
        self.status = match &listed {
            Ok(tools) => {
                self.span.record(names::TOOLS, tools.len());
                Status::default()
            }
            Err(error) => Status::of_request(Some(&Err(error.clone()))),
        };
        listed
    }
}

impl Drop for DiscoverySpan {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            request.close();
        }
        let status = std::mem::take(&mut self.status);
        tracing::record_all!(
            self.span,
            { names::STATUS_CODE } = status.code,
            { names::ERROR_TYPE } = status.error_type,
            { names::OTEL_STATUS } = status.status,
            { names::DURATION_MS } = self.started.elapsed().as_secs_f64() * 1e3,
        );
    }
}
