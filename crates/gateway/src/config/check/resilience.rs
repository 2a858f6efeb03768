//! How failures are met.

use std::time::Duration;

use callward::DiscoveryConfig;
use callward::breaker::BreakerConfig;
use callward::core::InvalidConfig;
use callward::loopguard::LoopGuardConfig;
use callward::retry::hedge::HedgeConfig;
use callward::retry::{Backoff, RetryConfig};

use super::super::resilience::{Breaker, Discovery, Hedge, LoopGuard, Retry, ServerBreaker};
use super::Faults;

/// The longest a breaker may stay open.
const MAX_OPEN: Duration = Duration::from_secs(24 * 60 * 60);

impl Faults<'_, '_> {
    /// Reports what a layer says of its settings at the key that each setting is written as; `keys`
    /// pairs the two where they differ. A fault at a key that has one already is not told twice.
    pub(super) fn layer(
        &mut self,
        section: &[&str],
        checked: Result<(), InvalidConfig>,
        keys: &[(&str, &str)],
    ) {
        let Err(fault) = checked else { return };
        let field = fault.field();
        let key = keys.iter().find(|(ours, _)| *ours == field);
        let key = key.map_or(field, |(_, written)| written);
        let path = [section, &[key]].concat();
        if !self.has_fault_at(&path) {
            self.at(&path, fault.reason());
        }
    }

    pub(super) fn retry(&mut self, written: &Retry) -> RetryConfig {
        self.expect(
            written.max_attempts >= 1,
            &["retry", "max_attempts"],
            "expected 1 or more: the first attempt counts (1 means no retries)",
        );
        self.expect(
            (0.0..=1.0).contains(&written.budget),
            &["retry", "budget"],
            "expected a share from 0.0 to 1.0: retries per call",
        );
        let config = RetryConfig::default()
            .with_max_attempts(written.max_attempts)
            .with_backoff(Backoff::new(written.jitter, written.max_pause))
            .with_max_retry_after(written.max_retry_after)
            .with_budget_percent(percent(written.budget))
            .with_budget_reserve(written.reserve);
        let keys = [
            ("backoff.ceiling", "max_pause"),
            ("budget_percent", "budget"),
            ("budget_reserve", "reserve"),
        ];
        self.layer(&["retry"], config.validate(), &keys);
        config
    }

    /// Returns none where no read gets a second attempt; what is written is checked all the same.
    pub(super) fn hedge(&mut self, written: &Hedge) -> Option<HedgeConfig> {
        let section = ["hedge"];
        let plain = HedgeConfig::default();
        // one setting at a time, so that the first fault hides no other
        for alone in [
            plain.with_percentile(written.percentile),
            plain.with_min_observations(written.min_observations),
        ] {
            self.layer(&section, alone.validate(), &[]);
        }
        self.expect(
            written.min_delay <= MAX_OPEN,
            &["hedge", "min_delay"],
            "expected at most a day",
        );
        let config = plain
            .with_percentile(written.percentile)
            .with_min_observations(written.min_observations)
            .with_min_delay(written.min_delay);
        written.enabled.then_some(config)
    }

    /// Returns none where no call is answered in its server's place; what is written is checked all
    /// the same.
    pub(super) fn loop_guard(&mut self, written: &LoopGuard) -> Option<LoopGuardConfig> {
        let section = ["loop_guard"];
        let plain = LoopGuardConfig::default();
        for alone in [
            plain.with_failures(written.failures),
            plain.with_wait(written.wait),
            plain.with_window(written.window),
            plain.with_capacity(written.capacity),
        ] {
            self.layer(&section, alone.validate(), &[]);
        }
        let config = plain
            .with_failures(written.failures)
            .with_wait(written.wait)
            .with_window(written.window)
            .with_capacity(written.capacity)
            .with_without_session(written.without_session);
        written.enabled.then_some(config)
    }

    pub(super) fn breaker(&mut self, written: &Breaker) -> BreakerConfig {
        let section = ["breaker"];
        let takes_shares = written.failure_rate.is_some() || written.slow_after.is_some();
        self.expect(
            written.failures >= 1 || takes_shares,
            &["breaker", "failures"],
            "expected 1 or more failures in a row, or 0 together with `failure_rate` or `slow_after`",
        );
        let mut config = BreakerConfig::default()
            .with_failures(written.failures)
            .with_window(written.window)
            .with_min_calls(written.min_calls)
            .with_probes(written.probes);
        for (key, share) in [
            ("failure_rate", written.failure_rate),
            ("slow_rate", written.slow_rate),
        ] {
            self.expect(
                share.is_none_or(|share| share > 0.0 && share <= 1.0),
                &["breaker", key],
                "expected a share above 0.0 and up to 1.0: of the calls of the window",
            );
        }
        if let Some(share) = written.failure_rate {
            config = config.with_failure_rate(percent(share));
        }
        match (written.slow_after, written.slow_rate) {
            (Some(after), share) => {
                config = config.with_slow_calls(after, percent(share.unwrap_or(SLOW_RATE)));
            }
            (None, Some(_)) => self.at(
                &["breaker", "slow_rate"],
                "expected only together with `slow_after`: from when on a call is slow",
            ),
            (None, None) => {}
        }
        let times = (written.open_for, written.max_open_for);
        let config = self.open_times(&section, config, times);
        self.layer(&section, config.validate(), &BREAKER_KEYS);
        config
    }

    pub(super) fn server_breaker(&mut self, written: &ServerBreaker) -> BreakerConfig {
        let section = ["breaker", "server"];
        let config = BreakerConfig::server().with_failures(written.failures);
        self.at_least_one(&section, written.failures);
        let times = (written.open_for, written.max_open_for);
        self.open_times(&section, config, times)
    }

    pub(super) fn discovery(&mut self, written: &Discovery) -> DiscoveryConfig {
        let section = ["discovery"];
        self.expect(
            written.timeout >= DiscoveryConfig::LEAST_TIMEOUT && written.timeout <= MAX_OPEN,
            &["discovery", "timeout"],
            "expected 5 s or more, and at most a day",
        );
        let mut config = DiscoveryConfig::default().with_timeout(written.timeout);
        self.at_least_one(&section, written.failures);
        let breaker = config.breaker.with_failures(written.failures);
        config.breaker = self.open_times(&section, breaker, (written.open_for, None));
        config
    }

    fn at_least_one(&mut self, section: &[&str], failures: u32) {
        self.expect(
            failures >= 1,
            &[section, &["failures"]].concat(),
            "expected 1 or more failures in a row",
        );
    }

    /// Sets for how long a breaker opens: the first time, and at most. Where only the first is given
    /// and is longer than the usual most, it is the most too.
    fn open_times(
        &mut self,
        section: &[&str],
        config: BreakerConfig,
        (first, most): (Duration, Option<Duration>),
    ) -> BreakerConfig {
        self.expect(
            !first.is_zero() && first <= MAX_OPEN,
            &[section, &["open_for"]].concat(),
            "expected more than zero, and at most a day",
        );
        self.expect(
            most.is_none_or(|most| most >= first && most <= MAX_OPEN),
            &[section, &["max_open_for"]].concat(),
            "expected `open_for` or more, and at most a day",
        );
        let most = most.unwrap_or_else(|| config.max_open_time.max(first));
        config.with_open_time(first).with_max_open_time(most)
    }
}

/// Which share of calls must be slow, where only `slow_after` is given.
const SLOW_RATE: f64 = 0.5;

/// Settings of a breaker that are written by other names.
const BREAKER_KEYS: [(&str, &str); 4] = [
    ("slow_calls.rate", "slow_rate"),
    ("slow_calls.after", "slow_after"),
    ("open_time", "open_for"),
    ("max_open_time", "max_open_for"),
];

/// The share as the layer counts it. Less than one in a hundred is one, so that what was asked for
/// happens; what is no share is told elsewhere.
fn percent(share: f64) -> u32 {
    (0..=100)
        .find(|percent| f64::from(*percent) >= share * 100.0)
        .unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_becomes_the_next_whole_part() {
        for (share, want) in [(0.0, 0), (0.2, 20), (0.005, 1), (1.0, 100)] {
            assert_eq!(percent(share), want, "{share}");
        }
    }
}
