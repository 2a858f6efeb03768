//! When a server is asked whether it is there, and what its answers make of it.

use std::time::Duration;

use super::{PingConfig, Presence};

/// Counts the pings of one server. Pure: whoever sends them tells it what came of each.
///
/// ```
/// use callward_router::{PingConfig, Pings, Presence};
///
/// let mut pings = Pings::new(PingConfig::default().with_fall(2).with_rise(1));
/// assert_eq!(pings.note(false), None);
/// assert_eq!(pings.note(false), Some(Presence::Down));
/// assert_eq!(pings.note(true), Some(Presence::Up));
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

    /// Takes whether a ping was answered; returns whether the server is there now, if that changed.
    pub const fn note(&mut self, answered: bool) -> Option<Presence> {
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
        Some(if answered {
            Presence::Up
        } else {
            Presence::Down
        })
    }

    /// Returns how long to wait before the first ping: anywhere within one interval, at random.
    ///
    /// Servers of one stack start together, and would else be asked together for as long as their
    /// clocks agree.
    #[must_use]
    pub fn first_pause(&self) -> Duration {
        self.config.interval.mul_f64(fastrand::f64())
    }

    /// Returns how long to wait before the next ping: the interval, give or take the jitter.
    #[must_use]
    pub fn pause(&self) -> Duration {
        self.pause_at(fastrand::f64())
    }

    /// `random` is from 0 to 1.
    fn pause_at(&self, random: f64) -> Duration {
        let jitter = f64::from(self.config.jitter) / 100.0;
        // the jitter is no more than all of it, so this is not below 0
        self.config
            .interval
            .mul_f64(1.0 + jitter * (2.0 * random - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_falls_and_rises_after_so_many_in_a_row() {
        let mut pings = Pings::new(PingConfig::default());
        let mut told = |answers: &[bool]| -> Vec<Option<Presence>> {
            answers.iter().map(|answer| pings.note(*answer)).collect()
        };
        assert_eq!(told(&[false, false, true]), [None, None, None]);
        assert_eq!(
            told(&[false, false, false]),
            [None, None, Some(Presence::Down)]
        );
        assert_eq!(told(&[false, true, false]), [None, None, None]);
        assert_eq!(told(&[true, true, true]), [None, Some(Presence::Up), None]);
    }

    #[test]
    fn pauses_stay_within_the_jitter() {
        let pings = Pings::new(PingConfig::default());
        let millis = |pause: Duration| pause.as_millis();
        assert_eq!(millis(pings.pause_at(0.0)), 8_000);
        assert_eq!(millis(pings.pause_at(0.5)), 10_000);
        assert_eq!(millis(pings.pause_at(1.0)), 12_000);
        let wild = Pings::new(PingConfig::default().with_jitter(100));
        assert_eq!(millis(wild.pause_at(0.0)), 0);
        for _ in 0..100 {
            assert!(pings.first_pause() <= Duration::from_secs(10));
            assert!((8_000..=12_000).contains(&millis(pings.pause())));
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
                let now = if answer { Presence::Up } else { Presence::Down };
                prop_assert_eq!(told, due.then_some(now));
                if due {
                    (is_up, run) = (answer, 0);
                }
            }
        }
    }
}
