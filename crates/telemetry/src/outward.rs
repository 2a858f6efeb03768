//! What is told of the MCP request that an attempt or a listing goes out as.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callward_core::{Outbound, SendWatch, TraceContext, Watch};
use tracing::Span;

use crate::{context, names};

/// Writes the request that a span goes out as into the span, and has the trace go on there. Only when
/// there is a request is it known that there is one: a tool may as well run in this process.
#[derive(Debug)]
pub(crate) struct Outward {
    /// Taken away at the span's end: whoever keeps a call must not keep its span open.
    span: Mutex<Option<Span>>,
    method: &'static str,
    /// What the method is applied to, if to anything.
    of: Option<String>,
    is_told: AtomicBool,
}

impl Outward {
    pub(crate) fn new(span: &Span, method: &'static str, of: Option<&str>) -> Arc<Self> {
        Arc::new(Self {
            span: Mutex::new(Some(span.clone())),
            method,
            of: of.map(str::to_owned),
            is_told: AtomicBool::new(false),
        })
    }

    /// Returns what is given to whoever sends requests.
    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        Watch::new(self.clone())
    }

    /// Takes the span away: it ends.
    pub(crate) fn close(&self) {
        *self.lock() = None;
    }

    /// A span is only told about, never relied on: a panic elsewhere must not spread through it.
    fn lock(&self) -> MutexGuard<'_, Option<Span>> {
        self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SendWatch for Outward {
    fn sends(&self, request: &Outbound<'_>) -> Option<TraceContext> {
        let span = self.lock().clone()?;
        // what is sent twice, or page by page, is told of once
        if !self.is_told.swap(true, Ordering::Relaxed) {
            self.tell(&span, request);
        }
        context::of(&span)
    }
}

impl Outward {
    fn tell(&self, span: &Span, request: &Outbound<'_>) {
        let name = self.of.as_ref().map(|of| format!("{} {of}", self.method));
        // kind and name have to be there before the context is asked for
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
