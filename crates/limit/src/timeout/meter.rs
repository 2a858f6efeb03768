//! The time of one attempt: active, quiet, and waiting for a person. Pure.

use std::time::Duration;

use callward_core::PersonClock;
use tokio::time::Instant;

/// The time of one attempt.
///
/// *Active* time counts toward the bounds: all time since the start, without that in which a person
/// decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    pub(crate) started: Instant,
    pub(crate) person: PersonClock,
    /// The active time at the last progress report, and its moment.
    reported: Option<(Duration, Instant)>,
}

impl Meter {
    pub(crate) fn new(started: Instant) -> Self {
        Self {
            started,
            person: PersonClock::default(),
            reported: None,
        }
    }

    /// Takes note of a progress report.
    pub(crate) fn report(&mut self, now: Instant) {
        self.reported = Some((self.active(now), now));
    }

    /// Returns the active time.
    pub(crate) fn active(&self, now: Instant) -> Duration {
        let all = now.saturating_duration_since(self.started);
        all.saturating_sub(self.person.time(now.into_std()))
    }

    /// Returns the active time since the last progress report, or since the start.
    pub(crate) fn quiet(&self, now: Instant) -> Duration {
        let reported = self.reported.map(|(active, _)| active);
        self.active(now)
            .saturating_sub(reported.unwrap_or_default())
    }

    /// Returns how long ago the last report was.
    pub(crate) fn last_report(&self, now: Instant) -> Option<Duration> {
        self.reported
            .map(|(_, at)| now.saturating_duration_since(at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Debug, Clone)]
    enum Step {
        Ask(bool),
        Report,
        Wait(u64),
    }

    proptest! {
        #[test]
        fn active_and_person_time_add_up_to_all_time(
            steps in prop::collection::vec(
                prop_oneof![
                    any::<bool>().prop_map(Step::Ask),
                    Just(Step::Report),
                    (0_u64..100).prop_map(Step::Wait),
                ],
                0..100,
            ),
        ) {
            let start = Instant::now();
            let (mut meter, mut now, mut active) = (Meter::new(start), start, Duration::ZERO);
            let (mut open, mut quiet) = (0_u32, Duration::ZERO);
            for step in steps {
                match step {
                    Step::Ask(true) => {
                        meter.person.wait(true, now.into_std());
                        open += 1;
                    }
                    Step::Ask(false) => {
                        let last = meter.person.wait(false, now.into_std());
                        prop_assert_eq!(last, open == 1);
                        open = open.saturating_sub(1);
                    }
                    Step::Report => {
                        meter.report(now);
                        quiet = Duration::ZERO;
                    }
                    Step::Wait(secs) => {
                        now += SECOND * u32::try_from(secs).unwrap();
                        if open == 0 {
                            active += Duration::from_secs(secs);
                            quiet += Duration::from_secs(secs);
                        }
                    }
                }
                prop_assert_eq!(meter.active(now), active);
                prop_assert_eq!(meter.quiet(now), quiet);
                prop_assert_eq!(meter.active(now) + meter.person.time(now.into_std()), now - start);
                prop_assert_eq!(meter.person.is_open(), open > 0);
            }
        }
    }
}
