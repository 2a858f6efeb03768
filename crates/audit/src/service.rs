//! The service.

use std::future::ready;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::AuditLog;
use crate::future::AuditFuture;
use crate::watch::Watch;

/// Records calls as their plans demand.
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
        match watch.try_enter() {
            Ok(true) => AuditFuture::recorded(watch.follow(self.inner.call(call))),
            Ok(false) => {
                let fresh = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, fresh);
                AuditFuture::recorded(async move {
                    match watch.wait().await {
                        Ok(()) => watch.follow(inner.call(call)).await,
                        Err(error) => watch.refuse(error),
                    }
                })
            }
            Err(error) => AuditFuture::recorded(ready(watch.refuse(error))),
        }
    }
}
