//! The service of one server, with a breaker for each of its tools.

use std::sync::Arc;
use std::task::{Context, Poll};

use tollgate_core::{Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::{BreakerFuture, BreakerSet, Rejection};

/// Refuses calls of tools that keep failing on this server.
#[derive(Debug, Clone)]
pub struct Breaker<S> {
    inner: S,
    /// One pointer: a service is cloned for each call.
    site: Arc<Site>,
}

/// Which server's breakers, and where they are.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) set: BreakerSet,
    pub(crate) server: ServerId,
}

impl<S> Breaker<S> {
    /// Wraps the service of a server; its breakers live in the set.
    #[must_use]
    pub fn new(inner: S, set: BreakerSet, server: ServerId) -> Self {
        Self::at(inner, Arc::new(Site { set, server }))
    }

    pub(crate) const fn at(inner: S, site: Arc<Site>) -> Self {
        Self { inner, site }
    }
}

impl<S: ToolService> Service<ToolCall> for Breaker<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BreakerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let Site { set, server } = &*self.site;
        let circuit = set.circuit(server, call.tool().name());
        match circuit.admit() {
            Ok(permit) => BreakerFuture::admitted(self.inner.call(call), permit),
            Err(rejection) => BreakerFuture::refused(refusal(&call, server, &rejection)),
        }
    }
}

fn refusal(call: &ToolCall, server: &ServerId, rejection: &Rejection) -> ToolError {
    let tool = call.tool().name();
    let message = format!("`{tool}` on server `{server}` was not called: {rejection}");
    let error = ToolError::new(ErrorKind::BreakerOpen, Delivery::NotSent, message)
        .with_server(server.clone());
    match rejection.time_to_probe() {
        Some(wait) => error.with_retry_after(wait),
        None => error,
    }
}
