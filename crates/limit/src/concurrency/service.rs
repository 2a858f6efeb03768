//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use super::site::Site;
use super::{ConcurrencyHandle, ConcurrencyLimitFuture};

/// Lets only so many calls at a server at once; the others wait in line, first come, first served.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit<S> {
    inner: S,
    site: Arc<Site>,
}

impl<S> ConcurrencyLimit<S> {
    pub(super) const fn at(inner: S, site: Arc<Site>) -> Self {
        Self { inner, site }
    }

    /// Returns the places, to look at.
    #[must_use]
    pub fn handle(&self) -> ConcurrencyHandle {
        ConcurrencyHandle(self.site.clone())
    }

    /// Returns how many calls wait for a place of the server.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.handle().status().server.waiting
    }

    /// Returns how many calls have a place of the server.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.handle().status().server.in_flight
    }
}

impl<S: ToolService> Service<ToolCall> for ConcurrencyLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = ConcurrencyLimitFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        // the readied service goes with the call, a clone stays
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        ConcurrencyLimitFuture::arriving(inner, call, self.site.clone())
    }
}
