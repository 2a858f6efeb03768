//! The service.

use std::task::{Context, Poll};

use tollgate_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::future::AuditFuture;
use crate::watch::Watch;
use crate::{AuditLog, watch};

/// Writes down calls as their plans ask.
#[derive(Debug, Clone)]
pub struct Audit<S> {
    inner: S,
    log: Option<AuditLog>,
}

impl<S> Audit<S> {
    pub(crate) const fn new(inner: S, log: Option<AuditLog>) -> Self {
        Self { inner, log }
    }
}

impl<S: ToolService> Service<ToolCall> for Audit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = AuditFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let log = match &self.log {
            Some(log) if call.plan().audit.is_recorded() => log.clone(),
            _ => return AuditFuture::passed(self.inner.call(call)),
        };
        let (call, mut watch) = Watch::begin(log, call);
        match watch.enter() {
            watch::Entry::Admit => AuditFuture::running(self.inner.call(call), watch),
            watch::Entry::Refuse(error) => AuditFuture::refused(error, watch),
            watch::Entry::Wait => {
                let fresh = self.inner.clone();
                let readied = std::mem::replace(&mut self.inner, fresh);
                AuditFuture::waiting(readied, call, watch)
            }
        }
    }
}
