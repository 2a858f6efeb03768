//! The thread that sends.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::client::Seen;
use super::queue::{Queue, SpanCounts, Waiting};

/// What sends batches, and counts them.
pub(super) struct Sender<E> {
    pub(super) queue: Arc<Queue>,
    pub(super) exporter: E,
    pub(super) seen: Arc<Seen>,
    /// How long one batch may take, its repeats included.
    pub(super) timeout: Duration,
    pub(super) abandon: Arc<Notify>,
}

/// Sends what waits, until the queue is closed and empty, or the sender is told to leave the rest.
pub(super) async fn run<E: SpanExporter>(sender: Sender<E>, waiting: Waiting, interval: Duration) {
    let mut complaints = Complaints::default();
    loop {
        tokio::select! {
            () = sender.queue.worker.notified() => {}
            () = sleep(interval) => {}
        }
        // looked at before the queue is emptied: what comes later is counted by its end
        let is_last = sender.queue.is_closed();
        loop {
            let batch = waiting.take();
            let go_on = batch.is_empty() || sender.send(batch).await;
            sender.complain(&mut complaints);
            if !go_on || (is_last && waiting.is_empty()) {
                return;
            }
            if !is_last && !waiting.is_batch() {
                break;
            }
        }
    }
}

impl<E: SpanExporter> Sender<E> {
    /// Sends one batch, and counts it. `false` if the rest is to be left.
    async fn send(&self, batch: Vec<SpanData>) -> bool {
        let spans = batch.len() as u64;
        let sending = timeout(self.timeout, self.exporter.export(batch));
        let (sent, go_on) = tokio::select! {
            biased;
            () = self.abandon.notified() => (false, false),
            sent = sending => (matches!(sent, Ok(Ok(()))), true),
        };
        let rejected = self.seen.take_rejected();
        self.queue.sent(spans, if sent { rejected } else { spans });
        go_on
    }

    fn complain(&self, complaints: &mut Complaints) {
        match complaints.after(self.queue.counts(), Instant::now()) {
            Some(Complaint::Lost { dropped, failed }) => {
                let fault = self.seen.take_fault();
                let slow = "the collector is slower than the spans come";
                tracing::warn!(
                    dropped,
                    failed,
                    reason = fault.as_deref().unwrap_or(slow),
                    "spans are lost; calls go on as before"
                );
            }
            Some(Complaint::Over) => tracing::info!("spans are exported again"),
            None => {}
        }
    }
}

/// What to say about spans that are lost, and when: at most once a minute.
#[derive(Debug, Default)]
struct Complaints {
    told: SpanCounts,
    /// When something was last said; none while all is well.
    last: Option<Instant>,
    lost_before: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Complaint {
    /// So many since it was last said.
    Lost { dropped: u64, failed: u64 },
    /// None is lost any more.
    Over,
}

/// So long nothing more is said.
const QUIET: Duration = Duration::from_secs(60);

impl Complaints {
    /// Looks at the counts after something was sent.
    fn after(&mut self, counts: SpanCounts, now: Instant) -> Option<Complaint> {
        let is_quiet = self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < QUIET);
        let is_losing = counts.lost() > self.lost_before;
        self.lost_before = counts.lost();
        if is_quiet {
            return None;
        }
        if counts.lost() > self.told.lost() {
            let complaint = Complaint::Lost {
                dropped: counts.dropped - self.told.dropped,
                failed: counts.failed - self.told.failed,
            };
            self.told = counts;
            self.last = Some(now);
            return Some(complaint);
        }
        if is_losing {
            return None;
        }
        self.last.take().map(|_| Complaint::Over)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
    use parking_lot::Mutex;

    use super::super::queue::tests::span;
    use super::*;

    /// A collector that answers as it is told to.
    #[derive(Debug, Clone, Default)]
    struct Scripted {
        batches: Arc<Mutex<Vec<usize>>>,
        answer: Answer,
    }

    #[derive(Debug, Clone, Copy, Default)]
    enum Answer {
        #[default]
        Takes,
        Refuses,
        Hangs,
    }

    impl SpanExporter for Scripted {
        fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
            self.batches.lock().push(batch.len());
            let answer = self.answer;
            async move {
                match answer {
                    Answer::Takes => Ok(()),
                    Answer::Refuses => Err(OTelSdkError::InternalFailure("no".into())),
                    Answer::Hangs => std::future::pending().await,
                }
            }
        }
    }

    struct Rig {
        queue: Arc<Queue>,
        collector: Scripted,
        abandon: Arc<Notify>,
        task: Option<tokio::task::JoinHandle<()>>,
    }

    fn start(answer: Answer) -> Rig {
        let (queue, waiting) = Queue::new(8, 4);
        let collector = Scripted {
            answer,
            ..Scripted::default()
        };
        let abandon = Arc::new(Notify::new());
        let sender = Sender {
            queue: queue.clone(),
            exporter: collector.clone(),
            seen: Arc::default(),
            timeout: Duration::from_secs(10),
            abandon: abandon.clone(),
        };
        let task = Some(tokio::spawn(run(sender, waiting, Duration::from_secs(5))));
        Rig {
            queue,
            collector,
            abandon,
            task,
        }
    }

    impl Rig {
        fn push(&self, spans: u64) {
            (0..spans).for_each(|number| self.queue.push(span(number)));
        }

        fn batches(&self) -> Vec<usize> {
            self.collector.batches.lock().clone()
        }
    }

    /// Lets the worker do what it can without time passing.
    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    const fn counts(exported: u64, dropped: u64, failed: u64) -> SpanCounts {
        SpanCounts {
            exported,
            dropped,
            failed,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_batch_goes_at_once_and_the_rest_after_the_interval() {
        let rig = start(Answer::Takes);
        settle().await;
        rig.push(3);
        settle().await;
        assert!(rig.batches().is_empty());
        rig.push(2);
        settle().await;
        assert_eq!(rig.batches(), [4]);
        sleep(Duration::from_secs(6)).await;
        assert_eq!(rig.batches(), [4, 1]);
        assert_eq!(rig.queue.counts(), counts(5, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_sends_what_waits() {
        let mut rig = start(Answer::Takes);
        rig.push(7);
        rig.queue.close();
        rig.task.take().unwrap().await.unwrap();
        assert_eq!(rig.queue.counts(), counts(7, 0, 0));
        rig.queue.push(span(9));
        assert_eq!(rig.queue.counts(), counts(7, 1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_batch_failed_and_the_next_is_tried() {
        let mut rig = start(Answer::Refuses);
        rig.push(8);
        rig.queue.close();
        rig.task.take().unwrap().await.unwrap();
        assert_eq!(rig.batches(), [4, 4]);
        assert_eq!(rig.queue.counts(), counts(0, 0, 8));
    }

    #[tokio::test(start_paused = true)]
    async fn a_collector_that_hangs_costs_its_timeout_and_what_has_no_place() {
        let mut rig = start(Answer::Hangs);
        rig.push(4);
        settle().await;
        // four on their way, eight wait
        rig.push(11);
        assert_eq!(rig.queue.counts(), counts(0, 3, 0));
        sleep(Duration::from_secs(11)).await;
        assert_eq!(rig.queue.counts(), counts(0, 3, 4));
        rig.abandon.notify_one();
        rig.task.take().unwrap().await.unwrap();
        assert_eq!(rig.queue.counts(), counts(0, 7, 8));
    }

    #[test]
    fn it_is_said_once_a_minute_and_again_when_it_is_over() {
        let mut complaints = Complaints::default();
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        assert_eq!(complaints.after(counts(5, 0, 0), at(0)), None);
        let lost = Complaint::Lost {
            dropped: 2,
            failed: 1,
        };
        assert_eq!(complaints.after(counts(5, 2, 1), at(1)), Some(lost));
        assert_eq!(complaints.after(counts(5, 9, 3), at(30)), None);
        let rest = Complaint::Lost {
            dropped: 7,
            failed: 2,
        };
        assert_eq!(complaints.after(counts(5, 9, 3), at(62)), Some(rest));
        assert_eq!(complaints.after(counts(8, 9, 3), at(100)), None);
        assert_eq!(
            complaints.after(counts(9, 9, 3), at(123)),
            Some(Complaint::Over)
        );
        assert_eq!(complaints.after(counts(9, 9, 3), at(200)), None);
    }
}
