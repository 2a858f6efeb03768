//! The MCP request that an attempt or a listing is sent as.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callward_core::{Outbound, SendWatch, TraceContext, Watch};
use parking_lot::Mutex;
use tracing::Span;

use crate::{context, names};

/// Writes the request of a span into it, and continues its trace there. A span becomes one of a
/// client only when a request is sent: a tool may also run in this process.
#[derive(Debug)]
pub(crate) struct ClientRequestInfo {
    /// `None` after the span's end: a call that is kept must not keep its span open.
    span: Mutex<Option<Span>>,
    method: &'static str,
    /// The tool, if one is called.
    tool: Option<String>,
    is_written: AtomicBool,
}

impl ClientRequestInfo {
    pub(crate) fn new(span: &Span, method: &'static str, tool: Option<&str>) -> Arc<Self> {
        Arc::new(Self {
            span: Mutex::new(Some(span.clone())),
            method,
            tool: tool.map(str::to_owned),
            is_written: AtomicBool::new(false),
        })
    }

    /// Returns the observer for whatever sends requests.
    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        self.clone()
    }

    /// Drops the span, which ends.
    pub(crate) fn close(&self) {
        *self.span.lock() = None;
    }

    fn write(&self, span: &Span, request: &Outbound<'_>) {
        let name = self.tool.as_ref();
        let name = name.map(|tool| format!("{} {tool}", self.method));
        // kind and name have to be set before the context is read
        tracing::record_all!(
            span,
            { names::OTEL_KIND } = names::KIND_CLIENT,
            { names::OTEL_NAME } = name.as_deref().unwrap_or(self.method),
            { names::METHOD } = self.method,
            { names::REQUEST_ID } = display(request.request),
            { names::TRANSPORT } = request.transport.as_str(),
            { names::PROTOCOL_VERSION } = request.protocol_version,
            { names::SESSION_ID } = request.session,
            { names::SERVER_ADDRESS } = request.address,
            { names::SERVER_PORT } = request.port,
            { names::PROTOCOL } = request.http_version.map(|_| "http"),
            { names::PROTOCOL_HTTP_VERSION } = request.http_version,
        );
    }
}

impl SendWatch for ClientRequestInfo {
    fn sends(&self, request: &Outbound<'_>) -> Option<TraceContext> {
        let span = self.span.lock().clone()?;
        // only the first request is written: one may be sent again, or be one of several pages
        if !self.is_written.swap(true, Ordering::Relaxed) {
            self.write(&span, request);
        }
        context::of(&span)
    }
}
