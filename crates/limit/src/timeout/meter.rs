//! What is known of an attempt's time: when it began, when it last got on, and for how long a
//! person was waited for. Pure: every change takes the time.

use std::time::Duration;

use tokio::time::Instant;

/// The time of one attempt.
///
/// *Active* time is what counts: all time since the server first kept us waiting, but for that in
/// which a person was waited for.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Meter {
    /// When the server first kept us waiting.
    started: Option<Instant>,
    /// How many questions are open, and since when there has been one.
    questions: u32,
    asked: Option<Instant>,
    /// How long persons were waited for, since the start, before the questions now open.
    answered: Duration,
    /// The active time at the last report, and when that was.
    reported: Option<(Duration, Instant)>,
}

impl Meter {
    /// Begins to count, if it has not yet.
    pub(crate) fn start(&mut self, now: Instant) {
        if self.started.is_none() {
            self.started = Some(now);
        }
    }

    /// Notes a progress report.
    pub(crate) fn report(&mut self, now: Instant) {
        self.reported = Some((self.active(now), now));
    }

    /// Notes that one more question waits for a person, or one fewer; says whether that was the
    /// last one. An answer to no question changes nothing.
    pub(crate) fn ask(&mut self, waits: bool, now: Instant) -> bool {
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
        self.answered = self.person(now);
        self.asked = None;
        true
    }

    /// Says whether a person is waited for.
    pub(crate) const fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns how long persons were waited for since the start.
    pub(crate) fn person(&self, now: Instant) -> Duration {
        let open = self
            .asked
            .zip(self.started)
            .map(|(asked, started)| now.saturating_duration_since(asked.max(started)));
        self.answered.saturating_add(open.unwrap_or_default())
    }

    /// Returns the active time.
    pub(crate) fn active(&self, now: Instant) -> Duration {
        self.started
            .map(|started| now.saturating_duration_since(started))
            .unwrap_or_default()
            .saturating_sub(self.person(now))
    }

    /// Returns the active time since the server last reported anything, or since the start.
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
    fn a_persons_time_does_not_count() {
        let start = Instant::now();
        let at = |secs: u32| start + SECOND * secs;
        let mut meter = Meter::default();
        meter.start(at(0));
        assert!(!meter.ask(true, at(10)));
        assert!(!meter.ask(true, at(20)), "a question within a question");
        assert!(!meter.ask(false, at(30)));
        assert!(meter.is_asking());
        assert_eq!(meter.active(at(35)), 10 * SECOND);
        assert!(meter.ask(false, at(40)));
        assert!(!meter.ask(false, at(45)), "an answer to nothing");
        assert_eq!(meter.active(at(50)), 20 * SECOND);
        assert_eq!(meter.person(at(50)), 30 * SECOND);
        meter.report(at(50));
        assert_eq!(meter.quiet(at(53)), 3 * SECOND);
    }

    #[test]
    fn what_was_asked_before_the_start_counts_from_the_start() {
        let start = Instant::now();
        let at = |secs: u32| start + SECOND * secs;
        let mut meter = Meter::default();
        meter.ask(true, at(0));
        meter.start(at(5));
        assert_eq!(meter.person(at(7)), 2 * SECOND);
        assert_eq!(meter.active(at(7)), Duration::ZERO);
        meter.ask(false, at(9));
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
        fn active_and_persons_time_are_all_of_it(
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
                        meter.ask(true, now);
                        open += 1;
                    }
                    Step::Ask(false) => {
                        let last = meter.ask(false, now);
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
                prop_assert_eq!(meter.is_asking(), open > 0);
            }
        }
    }
}
