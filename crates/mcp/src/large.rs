//! Keeps the work on large messages off the threads that serve calls.

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// A message of more bytes is large.
const LARGE: usize = 128 * 1024;

/// Reads a message of this many bytes: on another thread if it is large, so that calls do not wait
/// for it, and then one at a time of those with the same semaphore, which is never closed. More
/// threads would compete with those that serve calls.
pub(crate) async fn read<T: Send + 'static>(
    one: &Semaphore,
    bytes: usize,
    read: impl FnOnce() -> T + Send + 'static,
) -> T {
    match bytes > LARGE {
        // boxed: the future of a small message need not have space for it
        true => Box::pin(beside(one, read)).await,
        false => read(),
    }
}

async fn beside<T: Send + 'static>(
    one: &Semaphore,
    read: impl FnOnce() -> T + Send + 'static,
) -> T {
    let _one = one.acquire().await;
    match spawn_blocking(read)
        .await
        .map_err(JoinError::try_into_panic)
    {
        Ok(read) => read,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // the runtime is shutting down, and drops this task as well
        Err(Err(_)) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn a_large_message_is_read_on_another_thread() {
        let here = thread::current().id();
        for (bytes, is_here) in [(0, true), (LARGE, true), (LARGE + 1, false)] {
            let id = read(&Semaphore::new(1), bytes, || thread::current().id()).await;
            assert_eq!(id == here, is_here, "{bytes}");
        }
    }

    #[tokio::test]
    async fn one_large_message_is_read_at_a_time() {
        static ONE: Semaphore = Semaphore::const_new(1);
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let run = || {
            let others = RUNNING.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            others
        };
        let others = join_all((0..64).map(|_| read(&ONE, LARGE + 1, run))).await;
        assert_eq!(others, [0; 64]);
    }
}
