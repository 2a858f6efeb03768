//! The service: which way a call goes.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::{Lifetime, ToolCall, ToolError, ToolOutput, ToolService};
use tokio::time::Instant;
use tower_service::Service;

use crate::foresee::Way;
use crate::fresh::{Gate, NotServed};
use crate::future::CacheFuture;
use crate::key::Role;
use crate::read::Read;
use crate::reason::BypassReason;
use crate::scope::epochs;
use crate::shared::{Look, Shared};
use crate::tools::Version;
use crate::write::{Keep, Write};

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

/// What becomes of a call.
enum Fate {
    Hit(ToolOutput),
    Pass,
    Read(Read),
    Write(Arc<Version>, Option<Box<Keep>>),
}

impl<S: ToolService> Cache<S> {
    /// Calls as [`Service::call`] does, by whoever shares the service with others: it is always ready,
    /// and no call changes it. A hit is looked up here, and clones nothing of what is inside.
    #[inline]
    pub fn call_ref(&self, call: ToolCall) -> CacheFuture<S> {
        let shared = &self.shared;
        let decide = |version: &Arc<Version>| self.decide(version, &call);
        match shared.tools.with(call.tool(), shared, decide) {
            Fate::Hit(output) => CacheFuture::hit(output),
            Fate::Pass => CacheFuture::pass(self.inner.clone(), call),
            Fate::Read(read) => CacheFuture::read(Box::pin(read.run(self.inner.clone(), call))),
            Fate::Write(version, keep) => {
                let write = Write::new(shared.clone(), version, keep);
                CacheFuture::write(self.inner.clone(), call, write)
            }
        }
    }

    #[inline]
    fn decide(&self, version: &Arc<Version>, call: &ToolCall) -> Fate {
        match Way::of(&self.shared, call) {
            Way::Pass(reason) => self.pass(call, version, reason),
            Way::Read { ttl, lifetime } => self.read(call, version, ttl, lifetime),
            Way::Rewrite { ttl, lifetime } => self.idempotent_write(call, version, ttl, lifetime),
            Way::Write => Fate::Write(version.clone(), None),
        }
    }

    #[inline]
    fn read(
        &self,
        call: &ToolCall,
        version: &Arc<Version>,
        ttl: Duration,
        lifetime: Lifetime,
    ) -> Fate {
        let shared = &self.shared;
        let now = Instant::now();
        let watched = version.footprint.read(&shared.scopes, call);
        let epochs = epochs(&watched, shared.scopes.at(now));
        let word = version.word(Role::Read);
        let Ok(identity) = shared.keys.identify(word, call, Role::Read) else {
            return self.pass(call, version, BypassReason::Arguments);
        };
        let gate = Gate::of_read(lifetime, shared, version, call, &identity);
        drop(watched);
        let mut verifies = false;
        let mut ended = None;
        if let Ok(epochs) = epochs {
            let key = shared.key(&identity, &epochs);
            match shared.look(key, &gate, &version.record, call, now) {
                Look::Hit(hit) => return Fate::Hit(hit.output),
                Look::Ended(entry) => ended = Some((key, entry)),
                Look::NotServed(NotServed::TooOld) => {
                    ended = shared.store.peek(key).map(|entry| (key, entry));
                }
                Look::NotServed(NotServed::Verify) => verifies = true,
                Look::Nothing => {}
            }
        }
        let read = Read {
            shared: shared.clone(),
            version: version.clone(),
            identity,
            // kept for the burst window at least, which the gate decides about
            ttl: gate
                .joins_within(shared)
                .map_or(ttl, |burst| ttl.max(burst)),
            gate,
            verifies,
        };
        if let Some((key, entry)) = &ended
            && let Some(output) = read.while_revalidating(*key, entry, &self.inner, call, now)
        {
            return Fate::Hit(output);
        }
        Fate::Read(read)
    }

    /// Answers the repeat of the last write to what it touches without sending it.
    fn idempotent_write(
        &self,
        call: &ToolCall,
        version: &Arc<Version>,
        ttl: Duration,
        lifetime: Lifetime,
    ) -> Fate {
        let shared = &self.shared;
        let now = Instant::now();
        let word = version.word(Role::Write);
        let Ok(identity) = shared.keys.identify(word, call, Role::Write) else {
            return Fate::Write(version.clone(), None);
        };
        let gate = Gate::of_write(lifetime, shared, call);
        let watched = version.footprint.rewrite(&shared.scopes, call);
        if let Ok(epochs) = epochs(&watched, shared.scopes.at(now)) {
            let key = shared.key(&identity, &epochs);
            let found = shared.look(key, &gate, &version.record, call, now);
            if let Look::Hit(hit) = found {
                return Fate::Hit(hit.output);
            }
        }
        let keep = Keep {
            identity,
            ttl,
            gate,
            usual: call.plan().limits.estimated_duration,
        };
        Fate::Write(version.clone(), Some(Box::new(keep)))
    }

    #[inline(never)]
    fn pass(&self, call: &ToolCall, version: &Version, reason: BypassReason) -> Fate {
        self.shared.bypass(&version.record, call, reason);
        Fate::Pass
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
        self.call_ref(call)
    }
}
