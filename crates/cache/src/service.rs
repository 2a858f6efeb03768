//! The service: which way a call goes.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{CacheRule, ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::future::CacheFuture;
use crate::key::Role;
use crate::read::Read;
use crate::shared::Shared;
use crate::write::{Keep, Write, WriteFuture};

/// Answers calls from the cache where their plan allows it, and passes the rest on.
#[derive(Debug, Clone)]
pub struct Cache<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Cache<S> {
    pub(crate) fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl<S: ToolService> Cache<S> {
    fn read(&self, call: ToolCall, ttl: Duration) -> CacheFuture<S> {
        let shared = &self.shared;
        let now = Instant::now();
        let scope = shared.scope(&call, now);
        let Some(epoch) = scope.quiet_epoch(now) else {
            return self.pass(call);
        };
        let Ok(identity) = shared.keys.identify(scope.digest(), &call, Role::Read) else {
            return self.pass(call);
        };
        let key = shared.keys.key(&identity, epoch);
        if let Some(output) = shared.find(key, &call, now) {
            return CacheFuture::hit(output);
        }
        let read = Read {
            shared: shared.clone(),
            scope,
            identity,
            ttl,
        };
        CacheFuture::read(Box::pin(read.run(self.inner.clone(), call)))
    }

    /// Answers the repeat of the scope's last write without sending it.
    fn idempotent_write(&self, call: ToolCall, ttl: Duration) -> CacheFuture<S> {
        let shared = &self.shared;
        let now = Instant::now();
        let scope = shared.scope(&call, now);
        let Ok(identity) = shared.keys.identify(scope.digest(), &call, Role::Write) else {
            return self.write(call, None);
        };
        if let Some(epoch) = scope.quiet_epoch(now) {
            let key = shared.keys.key(&identity, epoch);
            if let Some(output) = shared.find(key, &call, now) {
                return CacheFuture::hit(output);
            }
        }
        self.write(call, Some(Keep { identity, ttl }))
    }

    fn write(&self, call: ToolCall, keep: Option<Keep>) -> CacheFuture<S> {
        let scope = self.shared.scope(&call, Instant::now());
        let write = Write::new(self.shared.clone(), scope, keep);
        CacheFuture::write(WriteFuture::new(self.inner.clone(), call, write))
    }

    fn pass(&self, call: ToolCall) -> CacheFuture<S> {
        self.shared.bypass(&call);
        CacheFuture::pass(self.inner.clone(), call)
    }
}

impl<S: ToolService> Service<ToolCall> for Cache<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = CacheFuture<S>;

    /// Always ready: a hit needs nothing of the inner service, and whether a call is one is known
    /// only when it is there.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> CacheFuture<S> {
        let config = &self.shared.config;
        if !config.enabled {
            return self.pass(call);
        }
        match call.plan().cache {
            CacheRule::Bypass => self.pass(call),
            CacheRule::Store { ttl } => self.read(call, ttl),
            CacheRule::KeepOwn { ttl } if config.idempotent_writes => {
                self.idempotent_write(call, ttl)
            }
            // a rule this crate does not know yet may stand for a write
            _ => self.write(call, None),
        }
    }
}
