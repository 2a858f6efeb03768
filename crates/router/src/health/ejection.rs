//! How long a server is ejected: longer each time, and less again after good time.

use std::time::Duration;

use super::HealthConfig;

/// How often a server was ejected, less what good time has taken off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ejections(u32);

impl Ejections {
    /// Counts one more after this much good time; returns how long it lasts.
    ///
    /// As Envoy does: each ejection adds one base time, each interval of good time takes one off, so a
    /// server that fails once a day is not treated like one that fails whenever it is let in.
    pub(crate) fn add(&mut self, good: Duration, config: &HealthConfig) -> Duration {
        let forgiven = good.as_nanos() / config.window.as_nanos().max(1);
        let forgiven = u32::try_from(forgiven).unwrap_or(u32::MAX);
        // no further than it has an effect, or years of failing would be held against it
        let most = config.max_eject_time.as_nanos() / config.eject_time.as_nanos().max(1);
        let most = u32::try_from(most).unwrap_or(u32::MAX).saturating_add(1);
        self.0 = self.0.saturating_sub(forgiven).saturating_add(1).min(most);
        config
            .eject_time
            .saturating_mul(self.0)
            .min(config.max_eject_time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_grows_by_the_base_time_up_to_the_longest() {
        let config = HealthConfig::default();
        let mut ejections = Ejections::default();
        let secs: Vec<u64> = (0..12)
            .map(|_| ejections.add(Duration::ZERO, &config).as_secs())
            .collect();
        assert_eq!(
            secs,
            [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300]
        );
    }

    #[test]
    fn a_window_of_good_time_takes_one_off() {
        let config = HealthConfig::default();
        let mut ejections = Ejections::default();
        for _ in 0..4 {
            ejections.add(Duration::ZERO, &config);
        }
        assert_eq!(ejections.add(20 * SECOND, &config), 90 * SECOND);
        assert_eq!(ejections.add(9 * SECOND, &config), 120 * SECOND);
        assert_eq!(ejections.add(Duration::MAX, &config), 30 * SECOND);
    }

    proptest! {
        #[test]
        fn it_is_never_below_the_base_nor_above_the_longest(
            good in prop::collection::vec(0u32..100, 1..40),
            base in 1u32..60,
            more in 0u32..600,
        ) {
            let config = HealthConfig::default()
                .with_eject_time(base * SECOND)
                .with_max_eject_time((base + more) * SECOND);
            let mut ejections = Ejections::default();
            for good in good {
                let time = ejections.add(good * SECOND, &config);
                prop_assert!(config.eject_time <= time && time <= config.max_eject_time);
            }
            // whatever was before, good time makes it the first again
            prop_assert_eq!(ejections.add(700 * config.window, &config), config.eject_time);
        }
    }
}
