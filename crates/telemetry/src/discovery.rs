//! One span per listing of a server's tools.

use std::future::Future;
use std::sync::Arc;

use callward_core::{ServerId, ToolDefinition, ToolError, Watch};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::error_type::Ending;
use crate::outward::Outward;
use crate::{names, status};

/// What a server's tools are listed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscoveryPurpose {
    /// To know the tools.
    Discovery,
    /// To know whether the server is back.
    Probe,
}

impl DiscoveryPurpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Discovery => "discovery",
            Self::Probe => "probe",
        }
    }
}

/// The span of one listing. Dropped before its end, the listing was cancelled.
///
/// Listings are few, so each has a span, whatever the sampling of calls.
#[derive(Debug)]
pub struct DiscoverySpan {
    span: Span,
    outward: Option<Arc<Outward>>,
    started: Instant,
    ended: bool,
}

impl DiscoverySpan {
    /// Begins a span for a listing of this server.
    #[must_use]
    pub fn begin(server: &ServerId, purpose: DiscoveryPurpose) -> Self {
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
            { names::PURPOSE } = purpose.as_str(),
            { names::TOOLS } = Empty,
            { names::DURATION_MS } = Empty,
        );
        let is_seen = !span.is_disabled();
        Self {
            outward: is_seen.then(|| Outward::new(&span, names::METHOD_TOOLS_LIST, None)),
            span,
            started: Instant::now(),
            ended: false,
        }
    }

    /// Returns who is to be told of the requests that are sent for the listing; nobody if the span is
    /// disabled.
    #[must_use]
    pub fn watch(&self) -> Option<Watch> {
        self.outward.as_ref().map(|outward| outward.watch())
    }

    /// Follows the listing to its end, and gives its outcome back. Dropping the future gives it up.
    ///
    /// # Errors
    ///
    /// Whatever the listing failed with.
    pub async fn follow<F>(mut self, listed: F) -> Result<Vec<ToolDefinition>, ToolError>
    where
        F: Future<Output = Result<Vec<ToolDefinition>, ToolError>>,
    {
        let listed = listed.instrument(self.span.clone()).await;
        match &listed {
            Ok(tools) => {
                self.span.record(names::TOOLS, tools.len());
                self.end(None);
            }
            Err(error) => self.end(Some(Ending::Done(&Err(error.clone())))),
        }
        listed
    }

    fn end(&mut self, failure: Option<Ending<'_>>) {
        self.ended = true;
        if let Some(outward) = &self.outward {
            outward.close();
        }
        let status = failure.map(status::of_request).unwrap_or_default();
        tracing::record_all!(
            self.span,
            { names::STATUS_CODE } = status.code,
            { names::ERROR_TYPE } = status.error_type,
            { names::OTEL_STATUS } = status.status,
            { names::DURATION_MS } = self.started.elapsed().as_secs_f64() * 1e3,
        );
    }
}

impl Drop for DiscoverySpan {
    fn drop(&mut self) {
        if !self.ended && !self.span.is_disabled() {
            self.end(Some(Ending::Cancelled));
        }
    }
}
