//! The service.

use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::future::AuditFuture;
use crate::watch::Watch;
use crate::{AuditLog, watch};

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

/// The start of a call.
enum Begun {
    /// No record.
    Pass(ToolCall),
    Admit(ToolCall, Box<Watch>),
    Refuse(ToolError, Box<Watch>),
    /// The queue is full.
    Wait(ToolCall, Box<Watch>),
}

impl<S: ToolService> Audit<S> {
    /// Like [`Service::call`], for a shared service. `send` passes the call to the inner service, which
    /// must be ready, like its clones.
    #[inline]
    pub fn call_ref(
        &self,
        call: ToolCall,
        send: impl FnOnce(&S, ToolCall) -> S::Future,
    ) -> AuditFuture<S> {
        match self.begin(call) {
            Begun::Pass(call) => AuditFuture::passed(send(&self.inner, call)),
            Begun::Admit(call, watch) => AuditFuture::running(send(&self.inner, call), watch),
            Begun::Refuse(error, watch) => AuditFuture::refused(error, watch),
            Begun::Wait(call, watch) => AuditFuture::waiting(self.inner.clone(), call, watch),
        }
    }

    #[inline]
    fn begin(&self, call: ToolCall) -> Begun {
        let log = match &self.log {
            Some(log) if call.plan().audit.is_recorded() => log.clone(),
            _ => return Begun::Pass(call),
        };
        let (call, mut watch) = Watch::begin(log, call);
        match watch.enter() {
            watch::Entry::Admit => Begun::Admit(call, watch),
            watch::Entry::Refuse(error) => Begun::Refuse(error, watch),
            watch::Entry::Wait => Begun::Wait(call, watch),
        }
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
        match self.begin(call) {
            Begun::Pass(call) => AuditFuture::passed(self.inner.call(call)),
            Begun::Admit(call, watch) => AuditFuture::running(self.inner.call(call), watch),
            Begun::Refuse(error, watch) => AuditFuture::refused(error, watch),
            Begun::Wait(call, watch) => {
                let fresh = self.inner.clone();
                let readied = std::mem::replace(&mut self.inner, fresh);
                AuditFuture::waiting(readied, call, watch)
            }
        }
    }
}
