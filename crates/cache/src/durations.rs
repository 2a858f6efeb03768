//! The durations of the latest calls of one tool.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;

/// The calls that are remembered.
const WINDOW: usize = 256;

/// The durations of the latest calls of one tool.
#[derive(Debug, Default)]
pub(crate) struct Durations(Mutex<VecDeque<Duration>>);

impl Durations {
    pub(crate) fn observe(&self, took: Duration) {
        let mut latest = self.0.lock();
        if latest.len() == WINDOW {
            latest.pop_front();
        }
        latest.push_back(took);
    }

    /// Returns the time that 99 of 100 of the latest calls do not exceed; `None` without calls.
    pub(crate) fn p99(&self) -> Option<Duration> {
        let mut latest: Vec<Duration> = self.0.lock().iter().copied().collect();
        let rank = (latest.len() * 99).div_ceil(100).checked_sub(1)?;
        Some(*latest.select_nth_unstable(rank).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p99_is_of_the_latest_256_calls() {
        let of = |times: &[u64]| {
            let durations = Durations::default();
            for millis in times {
                durations.observe(Duration::from_millis(*millis));
            }
            durations.p99()
        };
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), millis(7));
        let mostly_fast = |slow| [vec![10; 200 - slow], vec![8_000; slow]].concat();
        assert_eq!(of(&mostly_fast(2)), millis(10));
        assert_eq!(of(&mostly_fast(3)), millis(8_000));
        let slow_then_fast = [vec![8_000; 500], vec![10; 254]].concat();
        assert_eq!(of(&slow_then_fast), millis(10));
    }
}
