//! The time of one attempt: active, quiet, and waiting for a person. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// The time of one attempt.
///
/// *Active* time counts toward the bounds: all time since the first poll, without that in which a
/// person decides.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Meter {
    started: Option<Instant>,
    /// How many questions to a person are open, and since when.
    questions: u32,
    asked: Option<Instant>,
    /// How long persons took for the questions that are closed.
    decided: Duration,
    /// The active time at the last progress report, and its moment.
    reported: Option<(Duration, Instant)>,
}

impl Meter {
    /// Starts to count, once.
    pub(crate) fn start(&mut self, now: Instant) {
        if self.started.is_none() {
            self.started = Some(now);
        }
    }

    /// Takes note of a progress report.
    pub(crate) fn report(&mut self, now: Instant) {
        self.reported = Some((self.active(now), now));
    }

    /// Opens or closes a question to a person. Returns `true` if it closed the last one.
    pub(crate) fn wait_for_person(&mut self, waits: bool, now: Instant) -> bool {
        if waits {
            self.questions = self.questions.saturating_add(1);
            self.asked.get_or_insert(now);
            return false;
        }
        if self.questions == 0 {
            return false;
        }
        self.questions -= 1;
        if self.questions > 0 {
            return false;
        }
        self.decided = self.person(now);
        self.asked = None;
        true
    }

    /// Returns `true` while a person decides.
    pub(crate) const fn is_paused(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns the time that persons took since the start.
    pub(crate) fn person(&self, now: Instant) -> Duration {
        let open = self
            .asked
            .zip(self.started)
            .map(|(asked, started)| now.saturating_duration_since(asked.max(started)));
        self.decided.saturating_add(open.unwrap_or_default())
    }

    /// Returns the active time.
    pub(crate) fn active(&self, now: Instant) -> Duration {
        self.started
            .map(|started| now.saturating_duration_since(started))
            .unwrap_or_default()
            .saturating_sub(self.person(now))
    }

    /// Returns the active time since the last progress report, or since the start.
    pub(crate) fn quiet(&self, now: Instant) -> Duration {
        let reported = self.reported.map(|(active, _)| active);
        self.active(now)
            .saturating_sub(reported.unwrap_or_default())
    }

    pub(crate) const fn started(&self) -> Option<Instant> {
        self.started
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

    #[test]
    fn a_question_before_the_start_counts_from_the_start() {
        let start = Instant::now();
        let at = |secs: u32| start + SECOND * secs;
        let mut meter = Meter::default();
        meter.wait_for_person(true, at(0));
        meter.start(at(5));
        assert_eq!(meter.person(at(7)), 2 * SECOND);
        assert_eq!(meter.active(at(7)), Duration::ZERO);
        meter.wait_for_person(false, at(9));
        assert_eq!(meter.active(at(10)), SECOND);
    }

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
            let (mut meter, mut now, mut active) = (Meter::default(), start, Duration::ZERO);
            meter.start(start);
            let (mut open, mut quiet) = (0_u32, Duration::ZERO);
            for step in steps {
                match step {
                    Step::Ask(true) => {
                        meter.wait_for_person(true, now);
                        open += 1;
                    }
                    Step::Ask(false) => {
                        let last = meter.wait_for_person(false, now);
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
                prop_assert_eq!(meter.active(now) + meter.person(now), now - start);
                prop_assert_eq!(meter.is_paused(), open > 0);
            }
        }
    }
}
