//! When a call counts as slow: a percentile of the recent calls of its tool.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use callward_core::{ReplicaSetId, Tool, ToolName};
use parking_lot::Mutex;

use super::HedgeConfig;

/// The latencies of recent calls, by tool.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Mutex<HashMap<(ReplicaSetId, ToolName), Window>>);

/// The last calls of one tool.
#[derive(Debug, Default)]
struct Window {
    /// In microseconds, the oldest first.
    latencies: VecDeque<u32>,
    /// The percentile, once there are enough.
    slow: Option<Duration>,
}

/// How many calls of a tool must be known before one is hedged: the fewest with a 95th percentile
/// below the slowest.
const MIN_OBSERVATIONS: usize = 20;
/// How many calls of a tool are kept.
const WINDOW: usize = 1000;
/// How many tools are kept. At 4 KiB each, they take at most 4 MiB.
const MAX_TOOLS: usize = 1024;

impl Latencies {
    /// Returns the latency above which a call of the tool is slow. `None` until enough is known.
    pub(crate) fn slow(&self, tool: &Tool) -> Option<Duration> {
        self.0.lock().get(&key(tool))?.slow
    }

    /// Adds the latency of one call.
    pub(crate) fn observe(&self, tool: &Tool, latency: Duration, config: &HedgeConfig) {
        let (mut tools, key) = (self.0.lock(), key(tool));
        if tools.len() >= MAX_TOOLS && !tools.contains_key(&key) {
            // a server that lists ever new tools displaces its own, not those in use
            let fewest = tools.iter().min_by_key(|(_, seen)| seen.latencies.len());
            let fewest = fewest.map(|(key, _)| key.clone());
            fewest.and_then(|key| tools.remove(&key));
        }
        let window = tools.entry(key).or_default();
        if window.latencies.len() >= WINDOW {
            window.latencies.pop_front();
        }
        let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        window.latencies.push_back(micros);
        let count = window.latencies.len();
        if count >= MIN_OBSERVATIONS {
            // nearest rank
            let rank = (count * config.percentile as usize).div_ceil(100);
            let mut sorted: Vec<_> = window.latencies.iter().copied().collect();
            let (_, slow, _) = sorted.select_nth_unstable(rank.saturating_sub(1));
            window.slow = Some(Duration::from_micros(u64::from(*slow)));
        }
    }
}

fn key(tool: &Tool) -> (ReplicaSetId, ToolName) {
    (tool.set().clone(), tool.name().clone())
}

#[cfg(test)]
mod tests {
    use callward_testkit::tool;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn new_tools_do_not_displace_a_used_one() {
        let (latencies, config) = (Latencies::default(), HedgeConfig::default());
        let used = tool("used").build();
        for _ in 0..20 {
            latencies.observe(&used, Duration::from_secs(1), &config);
        }
        for n in 0..MAX_TOOLS + 10 {
            let new = tool(&format!("new_{n}")).build();
            latencies.observe(&new, Duration::from_secs(1), &config);
        }
        assert_eq!(latencies.0.lock().len(), MAX_TOOLS);
        assert_eq!(latencies.slow(&used), Some(Duration::from_secs(1)));
        let elsewhere = tool("used").set("elsewhere").build();
        assert_eq!(latencies.slow(&elsewhere), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn slow_is_the_percentile_of_the_last_calls(
            micros in prop::collection::vec(0_u32..600_000_000, 1..1500),
            percentile in 50_u32..=99,
        ) {
            let config = HedgeConfig { percentile };
            let (latencies, tool) = (Latencies::default(), tool("read").build());
            for micros in &micros {
                latencies.observe(&tool, Duration::from_micros(u64::from(*micros)), &config);
            }
            let mut last: Vec<_> = micros.iter().rev().take(WINDOW).copied().collect();
            last.sort_unstable();
            let rank = (last.len() * percentile as usize).div_ceil(100);
            let expected = (last.len() >= 20)
                .then(|| Duration::from_micros(u64::from(last[rank - 1])));
            prop_assert_eq!(latencies.slow(&tool), expected);
        }
    }
}
