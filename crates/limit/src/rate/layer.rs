//! The layer, with the limits that all of its services share, and the service.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{
    BoxFuture, Delivery, ErrorKind, InvalidConfig, ReplicaSetId, ToolCall, ToolError, ToolOutput,
    ToolService,
};
use dashmap::DashMap;
use futures_util::future::Either;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::bucket::{Bucket, after};
use super::{RateLimitConfig, RateStatus, RateSubject};
use crate::latest_start::latest_start;

/// Puts a [`RateLimit`] around a service. Its clones, and all services it makes, share its limits.
#[derive(Debug, Clone)]
pub struct RateLimitLayer(Arc<Inner>);

/// What a limit is for, and the bits of its rate: refinements may give one tool several rates, and
/// a changed rate starts from zero.
type Key = (RateSubject, u64);

/// How many limits of tools are kept. With more, those with full buckets are
/// dropped, or if there are none, all that no call waits for.
const MAX_KEYS: usize = 10_000;

/// How large a burst may be: as many calls as the rate allows in this time, at least 1.
const BURST: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Inner {
    config: RateLimitConfig,
    in_all: Option<Arc<Bucket>>,
    /// The limits of tools, made on first use.
    keyed: DashMap<Key, Arc<Bucket>>,
}

/// The limits that one call passes, the first of them next.
pub(crate) struct OfCall(Vec<(RateSubject, Arc<Bucket>)>);

impl RateLimitLayer {
    /// Makes the layer and its limits, with full buckets.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(config: RateLimitConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        let bucket = |per_minute| Bucket::new(per_minute, BURST);
        Ok(Self(Arc::new(Inner {
            in_all: config.in_all.and_then(bucket).map(Arc::new),
            keyed: DashMap::new(),
            config,
        })))
    }

    /// Returns the state of each limit in use, ordered by [`RateSubject`].
    #[must_use]
    pub fn snapshot(&self) -> Vec<RateStatus> {
        let keyed = self.0.keyed.iter().map(|entry| {
            let (subject, _) = entry.key();
            entry.value().status(subject.clone())
        });
        let in_all = self.0.in_all.iter();
        let in_all = in_all.map(|bucket| bucket.status(RateSubject::InAll));
        let mut all: Vec<_> = keyed.chain(in_all).collect();
        all.sort_by(|a, b| a.subject.cmp(&b.subject));
        all
    }

    /// Drops the limits of tools whose replica set is not kept, except those that calls wait for.
    pub fn retain_sets(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.0.keyed.retain(|(subject, _), bucket| {
            let kept = match subject {
                RateSubject::Tool { set, .. } => keep(set),
                _ => true,
            };
            kept || Arc::strong_count(bucket) > 1
        });
    }

    /// Returns the limits that a call passes.
    pub(crate) fn of(&self, call: &ToolCall) -> OfCall {
        let config = &self.0.config;
        let mut limits = Vec::new();
        let of_tool = call.plan().limits.calls_per_minute;
        if let Some(rate) = of_tool.filter(|_| config.tools) {
            let subject = RateSubject::Tool {
                set: call.tool().set().clone(),
                tool: call.tool().name().clone(),
            };
            limits.extend(self.keyed(subject, rate));
        }
        let in_all = self.0.in_all.clone();
        limits.extend(in_all.map(|bucket| (RateSubject::InAll, bucket)));
        OfCall(limits)
    }

    fn keyed(&self, subject: RateSubject, per_minute: f64) -> Option<(RateSubject, Arc<Bucket>)> {
        let key = (subject, per_minute.to_bits());
        if let Some(entry) = self.0.keyed.get(&key) {
            return Some((key.0, entry.value().clone()));
        }
        let fresh = Arc::new(Bucket::new(per_minute, BURST)?);
        if self.0.keyed.len() >= MAX_KEYS {
            self.evict();
        }
        let bucket = self.0.keyed.entry(key.clone()).or_insert(fresh).clone();
        Some((key.0, bucket))
    }

    /// Drops the full buckets, or if there are none, all that no call waits for.
    fn evict(&self) {
        let keyed = &self.0.keyed;
        let before = keyed.len();
        keyed.retain(|_, bucket| Arc::strong_count(bucket) > 1 || !bucket.is_full());
        if keyed.len() == before {
            keyed.retain(|_, bucket| Arc::strong_count(bucket) > 1);
        }
    }

    /// Returns until when a call may wait.
    pub(crate) fn until(&self, call: &ToolCall) -> Instant {
        let longest = after(self.0.config.max_wait);
        latest_start(call).map_or(longest, |latest| longest.min(latest))
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit {
            inner,
            limits: self.clone(),
        }
    }
}

/// Limits the calls per minute; the others wait in a queue, or are refused.
#[derive(Debug, Clone)]
pub struct RateLimit<S> {
    inner: S,
    limits: RateLimitLayer,
}

impl<S: ToolService> Service<ToolCall> for RateLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<S::Future, BoxFuture<'static, Result<ToolOutput, ToolError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let mut limits = self.limits.of(&call);
        if limits.try_acquire() {
            return Either::Left(self.inner.call(call));
        }
        // the ready service waits with the call, and a clone stays
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let until = self.limits.until(&call);
        Either::Right(Box::pin(async move {
            limits.acquire(&call, until).await?;
            inner.call(call).await
        }))
    }
}

impl OfCall {
    /// Takes the tokens that are there. Returns `true` if they are all that the call needs.
    pub(crate) fn try_acquire(&mut self) -> bool {
        while let Some((_, bucket)) = self.0.first() {
            if !bucket.try_acquire() {
                return false;
            }
            self.0.remove(0);
        }
        true
    }

    /// Takes the remaining tokens, and waits for them if need be.
    pub(crate) async fn acquire(self, call: &ToolCall, until: Instant) -> Result<(), ToolError> {
        let began = Instant::now();
        for (subject, bucket) in self.0 {
            let arrived = Instant::now();
            let result = bucket.acquire(until).await;
            let waited = arrived.elapsed();
            let limit = || format!("{} calls a minute for {subject}", bucket.per_minute());
            let verdict = match result {
                Ok(()) => Verdict::Waited,
                Err(_) => Verdict::Refused,
            };
            if verdict == Verdict::Refused || !waited.is_zero() {
                call.decided(|| Decision::new(Stage::Limit, verdict, limit()).waited(waited));
            }
            result.map_err(|wait| refusal(&limit(), wait))?;
        }
        if let Some(record) = &call.record {
            record.with(|facts| facts.limit_time += began.elapsed());
        }
        Ok(())
    }
}

fn refusal(limit: &str, wait: Duration) -> ToolError {
    let message = format!(
        "the limit of {limit} is reached, and this call's turn would come in {wait:?}, longer than \
         it may wait; nothing was sent, call again then"
    );
    ToolError::new(ErrorKind::RateLimited, Delivery::NotSent, message).with_retry_after(wait)
}
