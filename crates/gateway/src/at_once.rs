//! Polls a future again at once if it wakes itself while it is polled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use pin_project_lite::pin_project;

pin_project! {
    /// Polls a future once more, right away, if it was woken while it was polled.
    ///
    /// tokio takes such a wake-up for a task that yields: it puts the task at the end of the queue,
    /// and wakes another thread to share the work. hyper wakes a connection like that for each body
    /// that is read in the connection's own task, though nothing is left to do; and the thread that
    /// is woken costs more than the rest of a cached call.
    ///
    /// A future that wakes itself once more is left to the scheduler, so that other tasks run.
    #[derive(Debug)]
    pub(crate) struct AtOnce<F> {
        #[pin]
        future: F,
        bell: Arc<Bell>,
        waker: Waker,
    }
}

impl<F: Future> AtOnce<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        Self {
            future,
            bell,
            waker,
        }
    }
}

impl<F: Future> Future for AtOnce<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        this.bell.task.register(cx.waker());
        let state = &this.bell.state;
        for _ in 0..ROUNDS {
            // the poll will see all wake-ups until now
            state.swap(POLLED, Ordering::AcqRel);
            let mut inner = Context::from_waker(this.waker);
            let polled = this.future.as_mut().poll(&mut inner);
            // it ends, unless it was woken meanwhile
            let ended = state.compare_exchange(POLLED, 0, Ordering::AcqRel, Ordering::Acquire);
            if polled.is_ready() || ended.is_ok() {
                return polled;
            }
        }
        state.swap(0, Ordering::AcqRel);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// How often a future is polled in a row.
const ROUNDS: usize = 2;

/// A ring wakes the task, unless the future is being polled: then the poll is notified.
///
/// Each change is a read and a write in one, so that two of them know which came first: what a poll
/// does not see rung was rung after it ended, and then wakes the task.
#[derive(Debug, Default)]
struct Bell {
    state: AtomicU8,
    task: AtomicWaker,
}

const POLLED: u8 = 1;
const RUNG: u8 = 2;

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(RUNG, Ordering::AcqRel) & POLLED == 0 {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Count {
        fn get(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// Polls once a future that wakes itself in each of its first `wakes` polls; says how often it
    /// was polled, how often its task was woken, and the waker it was given last.
    fn poll_one_that_wakes_itself(wakes: usize) -> (usize, usize, Arc<Count>, Waker) {
        let mut polls = 0;
        let mut given = None;
        let mut future = Box::pin(AtOnce::new(std::future::poll_fn(|cx| {
            polls += 1;
            if polls <= wakes {
                cx.waker().wake_by_ref();
            }
            given = Some(cx.waker().clone());
            Poll::<()>::Pending
        })));
        let task = Arc::new(Count::default());
        let waker = Waker::from(task.clone());
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(future);
        (polls, task.get(), task, given.unwrap())
    }

    #[test]
    fn one_that_wakes_itself_is_polled_again_once_without_the_scheduler() {
        for (wakes, polled, woken) in [(0, 1, 0), (1, 2, 0), (usize::MAX, ROUNDS, 1)] {
            let (polls, before, task, waker) = poll_one_that_wakes_itself(wakes);
            assert_eq!((polls, before), (polled, woken), "{wakes}");
            // a wake between two polls wakes the task
            waker.wake();
            assert_eq!(task.get(), before + 1, "{wakes}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_is_lost_between_threads() {
        let (to, mut from) = tokio::sync::mpsc::channel::<u32>(1);
        let (back, mut returned) = tokio::sync::mpsc::channel::<u32>(1);
        let echo = AtOnce::new(async move {
            while let Some(number) = from.recv().await {
                back.send(number).await.unwrap();
            }
        });
        let echo = tokio::spawn(echo);
        for number in 0..10_000 {
            to.send(number).await.unwrap();
            assert_eq!(returned.recv().await, Some(number));
        }
        drop(to);
        echo.await.unwrap();
    }
}
