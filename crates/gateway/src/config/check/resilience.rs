//! How failures are met.

use std::time::Duration;

use tollgate::breaker::BreakerConfig;
use tollgate::core::InvalidConfig;
use tollgate::retry::{Backoff, RetryConfig};

use super::super::resilience::{Breaker, Retry};
use super::Faults;

/// The longest a breaker may stay open.
const MAX_OPEN: Duration = Duration::from_secs(24 * 60 * 60);

impl Faults<'_, '_> {
    /// Reports what a layer says of its settings at the key that each setting is written as; `keys`
    /// pairs the two where they differ. A fault at a key that has one already is not told twice.
    fn layer(
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
            "expected 1 or more: the first attempt counts (1 means no repeats)",
        );
        self.expect(
            (0.0..=1.0).contains(&written.budget),
            &["retry", "budget"],
            "expected a share from 0.0 to 1.0: repeats per call",
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

    pub(super) fn breaker(&mut self, written: &Breaker) -> BreakerConfig {
        self.expect(
            written.failures >= 1,
            &["breaker", "failures"],
            "expected 1 or more failures in a row",
        );
        self.expect(
            !written.open_for.is_zero() && written.open_for <= MAX_OPEN,
            &["breaker", "open_for"],
            "expected more than zero, and at most a day",
        );
        let standard = BreakerConfig::default();
        let open_time = written.open_for;
        standard
            .with_failures(written.failures)
            .with_open_time(open_time)
            .with_max_open_time(standard.max_open_time.max(open_time))
    }
}

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
