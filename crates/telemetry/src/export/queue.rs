//! Spans that wait to be sent: a bounded queue, and what became of every span.
//!
//! The SDK's own batch processor drops without a number that anybody could read, so this one stands
//! in its place.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use tokio::sync::Notify;

/// What became of the spans that ended. Each is in exactly one of the three, or still waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanCounts {
    /// The collector took them.
    pub exported: u64,
    /// There was no place in the queue, or no time left at the end.
    pub dropped: u64,
    /// They were sent, and the collector did not take them or did not answer.
    pub failed: u64,
}

impl SpanCounts {
    /// Returns how many spans nobody will see.
    #[must_use]
    pub const fn lost(self) -> u64 {
        self.dropped + self.failed
    }
}

/// What those who make spans and the worker share.
pub(super) struct Queue {
    spans: SyncSender<SpanData>,
    /// Places taken, those included that are about to be filled.
    waiting: AtomicUsize,
    batch: usize,
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    closed: AtomicBool,
    /// Told when a batch is full, and when the queue is closed.
    pub(super) worker: Notify,
}

impl Queue {
    /// Makes a queue of so many places, and the end to take spans from.
    pub(super) fn new(places: usize, batch: usize) -> (Arc<Self>, Waiting) {
        let (spans, taken) = sync_channel(places);
        let queue = Arc::new(Self {
            spans,
            waiting: AtomicUsize::new(0),
            batch,
            exported: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            worker: Notify::new(),
        });
        let waiting = Waiting {
            queue: queue.clone(),
            spans: taken,
        };
        (queue, waiting)
    }

    /// Adds a span, or counts it as dropped. Never waits.
    pub(super) fn push(&self, span: SpanData) {
        if self.is_closed() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.spans.try_send(span).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else if before + 1 == self.batch {
            self.worker.notify_one();
        }
    }

    /// Takes no more spans; what still waits is sent.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.worker.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns what became of the spans so far.
    pub(super) fn counts(&self) -> SpanCounts {
        SpanCounts {
            exported: self.exported.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Counts a batch that was sent: so many of it were not taken.
    pub(super) fn sent(&self, spans: u64, failed: u64) {
        let failed = failed.min(spans);
        self.exported.fetch_add(spans - failed, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("waiting", &self.waiting)
            .field("counts", &self.counts())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// The end of the queue that the worker has. What it leaves behind is dropped, and counted.
#[derive(Debug)]
pub(super) struct Waiting {
    queue: Arc<Queue>,
    spans: Receiver<SpanData>,
}

impl Waiting {
    /// Takes at most one batch.
    pub(super) fn take(&self) -> Vec<SpanData> {
        let batch: Vec<_> = self.spans.try_iter().take(self.queue.batch).collect();
        self.queue.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        batch
    }

    /// Returns whether nothing waits, nor is about to.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.waiting.load(Ordering::Relaxed) == 0
    }

    /// Returns whether a whole batch waits.
    pub(super) fn is_batch(&self) -> bool {
        self.queue.waiting.load(Ordering::Relaxed) >= self.queue.batch
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.close();
        let left = self.spans.try_iter().count() as u64;
        self.queue.dropped.fetch_add(left, Ordering::Relaxed);
    }
}

/// Puts ended spans into the queue.
#[derive(Debug)]
pub(super) struct Enqueue(pub(super) Arc<Queue>);

impl SpanProcessor for Enqueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            self.0.push(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.worker.notify_one();
        Ok(())
    }

    /// Only says that no more comes; the exporter itself waits for the rest.
    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        self.0.close();
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use opentelemetry::InstrumentationScope;
    use opentelemetry::trace::{
        SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
    };
    use opentelemetry_sdk::trace::{SpanEvents, SpanLinks};

    use super::*;

    pub(in super::super) fn span(number: u64) -> SpanData {
        SpanData {
            span_context: SpanContext::new(
                TraceId::from(1_u128),
                SpanId::from(number + 1),
                TraceFlags::SAMPLED,
                false,
                TraceState::NONE,
            ),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: "span".into(),
            start_time: std::time::UNIX_EPOCH,
            end_time: std::time::UNIX_EPOCH,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::default(),
        }
    }

    #[test]
    fn what_finds_no_place_is_counted_to_the_last_one() {
        let (queue, waiting) = Queue::new(5, 2);
        (0..12).for_each(|number| queue.push(span(number)));
        assert_eq!(queue.counts().dropped, 7);
        assert!(waiting.is_batch());
        let taken: Vec<_> = std::iter::repeat_with(|| waiting.take().len())
            .take(4)
            .collect();
        assert_eq!(taken, [2, 2, 1, 0]);
        queue.push(span(12));
        drop(waiting);
        queue.push(span(13));
        assert_eq!(queue.counts().dropped, 9);
    }

    #[test]
    fn a_span_nobody_sampled_is_none() {
        let (queue, waiting) = Queue::new(5, 2);
        let enqueue = Enqueue(queue);
        let mut unsampled = span(1);
        unsampled.span_context = SpanContext::new(
            TraceId::from(1_u128),
            SpanId::from(1),
            TraceFlags::NOT_SAMPLED,
            false,
            TraceState::NONE,
        );
        enqueue.on_end(unsampled);
        enqueue.on_end(span(2));
        assert_eq!(waiting.take().len(), 1);
    }

    #[test]
    fn threads_that_push_at_once_lose_nothing_uncounted() {
        let (queue, waiting) = Queue::new(64, 8);
        let taken = std::thread::scope(|scope| {
            for _ in 0..4 {
                let queue = &queue;
                scope.spawn(move || (0..1_000).for_each(|number| queue.push(span(number))));
            }
            let mut taken = 0;
            while queue.counts().dropped + taken < 4_000 {
                taken += waiting.take().len() as u64;
            }
            taken
        });
        assert_eq!(taken + queue.counts().dropped, 4_000);
        assert!(waiting.take().is_empty());
    }
}
