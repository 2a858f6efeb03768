//! The layer and its service.

use std::task::{Context, Poll};

use callward_core::{AuditLevel, BoxFuture, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_layer::Layer;
use tower_service::Service;

use crate::AuditLog;
use crate::watch::Watch;

/// Wraps a service in [`Audit`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AuditLayer {
    /// The log; without one, nothing is recorded.
    pub log: Option<AuditLog>,
}

impl AuditLayer {
    /// Creates a layer that records into `log`.
    #[must_use]
    pub const fn new(log: AuditLog) -> Self {
        Self { log: Some(log) }
    }
}

impl<S> Layer<S> for AuditLayer {
    type Service = Audit<S>;

    fn layer(&self, inner: S) -> Audit<S> {
        let log = self.log.clone();
        Audit { inner, log }
    }
}

/// Records calls as their plans demand.
#[derive(Debug, Clone)]
pub struct Audit<S> {
    inner: S,
    log: Option<AuditLog>,
}

/// The response future of [`Audit`]: that of the inner service for a call without a record.
pub type AuditFuture<S> = Either<<S as Service<ToolCall>>::Future, BoxFuture<'static, Answer>>;

pub(crate) type Answer = Result<ToolOutput, ToolError>;

impl<S: ToolService> Service<ToolCall> for Audit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = AuditFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let log = match &self.log {
            Some(log) if call.plan().audit.level != AuditLevel::None => log.clone(),
            _ => return Either::Left(self.inner.call(call)),
        };
        let (call, mut watch) = Watch::begin(log, call);
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        Either::Right(Box::pin(async move {
            match watch.enter().await {
                Ok(()) => watch.follow(inner.call(call)).await,
                Err(error) => watch.refuse(error),
            }
        }))
    }
}
