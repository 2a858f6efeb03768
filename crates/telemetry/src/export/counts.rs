//! Counts the outcome of every span around the SDK's processor and exporter, which report none.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};
use parking_lot::Mutex;

/// The outcomes of ended spans. Each span is in exactly one of the three, or still waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanCounts {
    /// The collector accepted the request they were in.
    pub exported: u64,
    /// The queue was full, or the exporter ended before they were sent.
    pub dropped: u64,
    /// They were sent, and the collector refused them or did not answer.
    pub failed: u64,
}

impl SpanCounts {
    /// Returns how many spans the collector does not have.
    #[must_use]
    pub const fn lost(self) -> u64 {
        self.dropped + self.failed
    }
}

/// Admits as many spans to the SDK's queue as may wait, those in flight included, and counts them.
#[derive(Debug)]
pub(super) struct SpanQueue {
    capacity: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: u64,
    counts: SpanCounts,
    is_closed: bool,
    /// How many were lost when a batch last ended.
    lost_before: u64,
    is_losing: bool,
}

impl SpanQueue {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity as u64,
            state: Mutex::default(),
        }
    }

    pub(super) fn counts(&self) -> SpanCounts {
        self.state.lock().counts
    }

    /// Returns `true` if a span may wait, and else counts it as dropped.
    fn admit(&self) -> bool {
        let mut state = self.state.lock();
        let admits = !state.is_closed && state.waiting < self.capacity;
        match admits {
            true => state.waiting += 1,
            false => state.counts.dropped += 1,
        }
        admits
    }

    /// Counts a batch that was sent, and logs the first loss and the first batch without one.
    fn sent(&self, spans: usize, result: &OTelSdkResult) {
        let (is_losing, counts) = {
            let mut state = self.state.lock();
            (state.sent(spans as u64, result.is_ok()), state.counts)
        };
        let slow = || "the collector is slower than spans end".to_owned();
        match is_losing {
            Some(true) => tracing::warn!(
                dropped = counts.dropped,
                failed = counts.failed,
                reason = result.as_ref().err().map_or_else(slow, ToString::to_string),
                "spans are lost; calls go on as before"
            ),
            Some(false) => tracing::info!("spans are exported again"),
            None => {}
        }
    }

    /// Counts what still waits as dropped, and all that follows.
    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.counts.dropped += std::mem::take(&mut state.waiting);
    }
}

impl State {
    /// Counts a batch. Returns whether spans are lost, if that has changed.
    fn sent(&mut self, spans: u64, is_ok: bool) -> Option<bool> {
        if self.is_closed {
            // these were counted as dropped
            return None;
        }
        self.waiting = self.waiting.saturating_sub(spans);
        match is_ok {
            true => self.counts.exported += spans,
            false => self.counts.failed += spans,
        }
        let lost_before = std::mem::replace(&mut self.lost_before, self.counts.lost());
        let is_losing = self.counts.lost() > lost_before;
        let was_losing = std::mem::replace(&mut self.is_losing, is_losing);
        (was_losing != is_losing).then_some(is_losing)
    }
}

/// A processor or an exporter of the SDK whose spans are counted.
#[derive(Debug)]
pub(super) struct Counted<T> {
    inner: T,
    queue: Arc<SpanQueue>,
}

impl<T> Counted<T> {
    pub(super) fn new(inner: T, queue: &Arc<SpanQueue>) -> Self {
        Self {
            inner,
            queue: queue.clone(),
        }
    }
}

impl<P: SpanProcessor> SpanProcessor for Counted<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.queue.admit() {
            self.inner.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        let result = self.inner.shutdown_with_timeout(timeout);
        self.queue.close();
        result
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.inner.export(batch).await;
        self.queue.sent(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const fn counts(exported: u64, dropped: u64, failed: u64) -> SpanCounts {
        SpanCounts {
            exported,
            dropped,
            failed,
        }
    }

    #[test]
    fn concurrent_spans_beyond_the_capacity_are_dropped_and_counted() {
        let queue = SpanQueue::new(5);
        let admitted = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let own = (0..1_000).filter(|_| queue.admit()).count();
                    admitted.fetch_add(own, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(admitted.into_inner(), 5);
        assert_eq!(queue.counts(), counts(0, 3_995, 0));
        queue.sent(3, &Ok(()));
        assert!(queue.admit());
        assert_eq!(queue.counts(), counts(3, 3_995, 0));
    }

    #[test]
    fn a_loss_is_reported_once_and_so_is_recovery() {
        let mut state = State {
            waiting: 100,
            ..State::default()
        };
        assert_eq!(state.sent(1, true), None);
        assert_eq!(state.sent(1, false), Some(true));
        assert_eq!(state.sent(1, false), None);
        state.counts.dropped += 1;
        assert_eq!(state.sent(1, true), None);
        assert_eq!(state.sent(1, true), Some(false));
        assert_eq!(state.sent(1, true), None);
        assert_eq!(state.counts, counts(4, 1, 2));
    }
}
