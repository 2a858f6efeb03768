//! Bounds how often one line is logged: any client can cause it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The least time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);

/// Admits one line per interval, and counts the others.
#[derive(Debug)]
pub(crate) struct Sparse(Mutex<Last>);

#[derive(Debug)]
struct Last {
    logged: Option<Instant>,
    unlogged: u64,
}

impl Sparse {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Last {
            logged: None,
            unlogged: 0,
        }))
    }

    /// Returns how many lines were left out since the last one, if the next one may be logged.
    pub(crate) fn admit(&self) -> Option<u64> {
        let now = Instant::now();
        let mut last = self.0.lock();
        if last.logged.is_some_and(|logged| now < logged + INTERVAL) {
            last.unlogged += 1;
            return None;
        }
        last.logged = Some(now);
        Some(std::mem::take(&mut last.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_is_logged_in_ten_seconds_with_the_count_of_the_others() {
        let lines = Sparse::new();
        assert_eq!(lines.admit(), Some(0));
        for _ in 0..1000 {
            assert_eq!(lines.admit(), None);
        }
        tokio::time::advance(INTERVAL).await;
        assert_eq!(lines.admit(), Some(1000));
        tokio::time::advance(INTERVAL / 2).await;
        assert_eq!(lines.admit(), None);
    }
}
