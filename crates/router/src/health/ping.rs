//! When a server is asked whether it is there, and what its answers make of it.

use std::time::Duration;

use super::PingConfig;

/// Counts the pings of one server. Pure: whoever sends them tells it what came of each.
///
/// ```
/// use tollgate_router::{PingConfig, Pings};
///
/// let mut pings = Pings::new(PingConfig::default().with_fall(2).with_rise(1));
/// assert_eq!(pings.note(false), None);
/// assert_eq!(pings.note(false), Some(false), "it is gone");
/// assert_eq!(pings.note(true), Some(true), "it is back");
/// ```
#[derive(Debug, Clone)]
pub struct Pings {
    config: PingConfig,
    is_up: bool,
    /// How many in a row spoke against `is_up`.
    against: u32,
}

impl Pings {
    /// Begins with a server that is there.
    #[must_use]
    pub const fn new(config: PingConfig) -> Self {
        Self {
            config,
            is_up: true,
            against: 0,
        }
    }

    /// Returns the settings.
    #[must_use]
    pub const fn config(&self) -> &PingConfig {
        &self.config
    }

    /// Says whether the server is there, as far as pings tell.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Takes whether a ping was answered; returns whether the server is there now, if that changed.
    pub const fn note(&mut self, answered: bool) -> Option<bool> {
        if answered == self.is_up {
            self.against = 0;
            return None;
        }
        self.against = self.against.saturating_add(1);
        let enough = if self.is_up {
            self.config.fall
        } else {
            self.config.rise
        };
        if self.against < enough {
            return None;
        }
        self.is_up = answered;
        self.against = 0;
        Some(answered)
    }

    /// Forgets what was counted: the server is there, as another witness says.
    pub const fn reset(&mut self) {
        self.is_up = true;
        self.against = 0;
    }

    /// Returns how long to wait before the first ping. `random` is from 0 to 1.
    ///
    /// Anywhere within one interval: servers of one stack start together, and would else be asked
    /// together for as long as their clocks agree.
    #[must_use]
    pub fn first_pause(&self, random: f64) -> Duration {
        self.config.interval.mul_f64(unit(random))
    }

    /// Returns how long to wait before the next ping. `random` is from 0 to 1.
    #[must_use]
    pub fn pause(&self, random: f64) -> Duration {
        let jitter = f64::from(self.config.jitter) / 100.0;
        let factor = 1.0 + jitter * (2.0 * unit(random) - 1.0);
        self.config.interval.mul_f64(factor)
    }
}

/// A random number as it should be, whoever made it.
fn unit(random: f64) -> f64 {
    if random.is_nan() {
        return 0.5;
    }
    random.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_falls_and_rises_after_so_many_in_a_row() {
        let mut pings = Pings::new(PingConfig::default());
        let mut told = |answers: &[bool]| -> Vec<Option<bool>> {
            answers.iter().map(|answer| pings.note(*answer)).collect()
        };
        assert_eq!(told(&[false, false, true]), [None, None, None]);
        assert_eq!(told(&[false, false, false]), [None, None, Some(false)]);
        assert_eq!(told(&[false, true, false]), [None, None, None]);
        assert_eq!(told(&[true, true, true]), [None, Some(true), None]);
    }

    #[test]
    fn pauses_stay_within_the_jitter() {
        let pings = Pings::new(PingConfig::default());
        let millis = |pause: Duration| pause.as_millis();
        assert_eq!(millis(pings.pause(0.0)), 8_000);
        assert_eq!(millis(pings.pause(0.5)), 10_000);
        assert_eq!(millis(pings.pause(1.0)), 12_000);
        assert_eq!(millis(pings.first_pause(0.25)), 2_500);
        for odd in [f64::NAN, f64::INFINITY, -3.0] {
            assert!(millis(pings.pause(odd)) <= 12_000);
        }
    }

    proptest! {
        #[test]
        fn it_never_changes_before_its_count(
            answers in prop::collection::vec(any::<bool>(), 0..200),
            fall in 1u32..6,
            rise in 1u32..6,
        ) {
            let mut pings = Pings::new(PingConfig::default().with_fall(fall).with_rise(rise));
            let (mut is_up, mut run) = (true, 0);
            for answer in answers {
                run = if answer == is_up { 0 } else { run + 1 };
                let due = run == if is_up { fall } else { rise };
                let told = pings.note(answer);
                prop_assert_eq!(told, due.then_some(answer));
                if due {
                    (is_up, run) = (answer, 0);
                }
                prop_assert_eq!(pings.is_up(), is_up);
            }
        }
    }
}
