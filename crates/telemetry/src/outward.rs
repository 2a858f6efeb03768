//! What is told of the MCP request that an attempt or a listing goes out as.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_core::{Outbound, SendWatch, TraceContext, Watch};
use tracing::Span;
use tracing::field::display;

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
        // kind and name have to be there before the context is asked for
        span.record(names::OTEL_KIND, names::KIND_CLIENT);
        match &self.of {
            Some(of) => span.record(names::OTEL_NAME, format!("{} {of}", self.method)),
            None => span.record(names::OTEL_NAME, self.method),
        };
        span.record(names::METHOD, self.method);
        span.record(names::REQUEST_ID, display(request.request));
        span.record(names::TRANSPORT, request.transport.as_str());
        if let Some(version) = request.protocol_version {
            span.record(names::PROTOCOL_VERSION, version);
        }
        if let Some(session) = request.session {
            span.record(names::SESSION_ID, session);
        }
        if let Some(address) = request.address {
            span.record(names::SERVER_ADDRESS, address);
        }
        if let Some(port) = request.port {
            span.record(names::SERVER_PORT, port);
        }
        if let Some(version) = request.http_version {
            span.record(names::PROTOCOL, "http");
            span.record(names::PROTOCOL_HTTP_VERSION, version);
        }
    }
}
