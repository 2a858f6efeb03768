//! The machine against cases and against chance.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A machine with its settings and its own clock.
struct Bench {
    state: State,
    config: BreakerConfig,
    now: Instant,
}

impl Bench {
    fn new(config: BreakerConfig) -> Self {
        Self {
            state: State::new(),
            config,
            now: Instant::now(),
        }
    }

    fn wait(&mut self, secs: u64) {
        self.now += SECOND * u32::try_from(secs).unwrap();
    }

    fn admit(&mut self) -> Result<Ticket, Option<Duration>> {
        self.state.admit(&self.config, self.now)
    }

    fn settle(&mut self, ticket: Ticket, verdict: Verdict) -> Option<Change> {
        self.state.settle(ticket, verdict, &self.config, self.now)
    }

    fn call(&mut self, verdict: Verdict) -> Option<Change> {
        let ticket = self.admit().unwrap();
        self.settle(ticket, verdict)
    }

    fn trip(&mut self) {
        while self.call(Verdict::Failure).is_none() {}
    }

    fn wait_secs(&self) -> Option<u64> {
        Some(self.state.time_to_probe(&self.config, self.now)?.as_secs())
    }
}

#[test]
fn only_failures_in_a_row_open_it() {
    let mut bench = Bench::new(BreakerConfig::default());
    for _ in 0..10 {
        assert_eq!(bench.call(Verdict::Failure), None);
        assert_eq!(bench.call(Verdict::Failure), None);
        assert_eq!(bench.call(Verdict::Nothing), None);
        assert_eq!(bench.state.failures(), 2);
        assert_eq!(bench.call(Verdict::Success), None);
    }
    bench.call(Verdict::Failure);
    bench.call(Verdict::Failure);
    let opened = bench.call(Verdict::Failure);
    let open_for = 30 * SECOND;
    assert_eq!(
        opened,
        Some(Change::Opened {
            failures: 3,
            open_for
        })
    );
    assert_eq!(bench.admit(), Err(Some(open_for)));
}

#[test]
fn open_time_grows_with_each_failed_probe_and_starts_over_once_closed() {
    let mut bench = Bench::new(BreakerConfig::default());
    bench.trip();
    for secs in [30, 60, 120, 240, 300, 300] {
        assert_eq!(bench.wait_secs(), Some(secs));
        bench.wait(secs - 1);
        assert_eq!(bench.admit(), Err(Some(SECOND)));
        bench.wait(1);
        bench.call(Verdict::Failure);
    }
    bench.wait(300);
    assert_eq!(bench.call(Verdict::Success), Some(Change::Closed));
    bench.trip();
    assert_eq!(bench.wait_secs(), Some(30));
}

#[test]
fn refusals_do_not_make_it_wait_longer() {
    let mut bench = Bench::new(BreakerConfig::default());
    bench.trip();
    for left in (1..=30).rev() {
        assert_eq!(bench.admit(), Err(Some(left * SECOND)));
        bench.wait(1);
    }
    assert!(bench.admit().is_ok());
}

#[test]
fn an_outcome_from_before_the_trip_counts_for_nothing() {
    let mut bench = Bench::new(BreakerConfig::default());
    let [well, sick] = [bench.admit().unwrap(), bench.admit().unwrap()];
    bench.trip();
    assert_eq!(bench.settle(well, Verdict::Success), None);
    assert_eq!(bench.state.state(), BreakerState::Open);
    bench.wait(30);
    let probe = bench.admit().unwrap();
    assert_eq!(bench.settle(sick, Verdict::Failure), None);
    assert_eq!(bench.state.state(), BreakerState::HalfOpen);
    assert_eq!(bench.settle(probe, Verdict::Success), Some(Change::Closed));
}

#[test]
fn a_dropped_probe_gives_its_place_back() {
    let mut bench = Bench::new(BreakerConfig::default());
    bench.trip();
    bench.wait(30);
    let probe = bench.admit().unwrap();
    assert!(bench.admit().is_err());
    assert_eq!(bench.settle(probe, Verdict::Nothing), None);
    assert_eq!(bench.state.state(), BreakerState::HalfOpen);
    assert!(bench.admit().is_ok());
}

#[test]
fn a_probe_that_never_ends_is_written_off() {
    let mut bench = Bench::new(BreakerConfig::default());
    bench.trip();
    bench.wait(30);
    let lost = bench.admit().unwrap();
    bench.wait(29);
    assert_eq!(bench.admit(), Err(Some(SECOND)));
    bench.wait(1);
    let next = bench.admit().unwrap();
    assert_eq!(bench.settle(lost, Verdict::Failure), None);
    assert_eq!(bench.settle(lost, Verdict::Nothing), None);
    assert!(
        bench.admit().is_err(),
        "the lost probe has no place to give"
    );
    assert_eq!(bench.settle(next, Verdict::Success), Some(Change::Closed));
}

#[test]
fn a_forced_state_holds_until_released() {
    let mut bench = Bench::new(BreakerConfig::default());
    let before = bench.admit().unwrap();
    bench.state.force_open();
    bench.wait(100_000);
    assert_eq!(bench.admit(), Err(None));
    assert_eq!(bench.state.reset(), None);
    assert_eq!(bench.settle(before, Verdict::Success), None);
    assert_eq!(bench.state.state(), BreakerState::ForcedOpen);
    bench.state.force_closed();
    for _ in 0..10 {
        assert_eq!(bench.call(Verdict::Failure), None);
    }
    bench.state.release();
    assert_eq!(bench.state.state(), BreakerState::Closed);
    bench.call(Verdict::Failure);
    bench.state.release();
    assert_eq!(bench.state.failures(), 1, "nothing was forced");
}

#[derive(Debug, Clone)]
enum Step {
    Admit,
    Reset,
    Settle(usize, Verdict),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let verdicts =
        prop::sample::select(&[Verdict::Failure, Verdict::Nothing, Verdict::Success][..]);
    let step = prop_oneof![
        6 => Just(Step::Admit),
        6 => (any::<usize>(), verdicts).prop_map(|(which, verdict)| Step::Settle(which, verdict)),
        3 => (0_u64..40).prop_map(Step::Wait),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    #[test]
    fn probes_never_exceed_their_places_and_time_always_heals(
        steps in steps(),
        failures in 1_u32..4,
        probes in 1_u32..4,
        limit in 1_u32..=30,
    ) {
        let mut bench = Bench::new(
            BreakerConfig::default()
                .with_failures(failures)
                .with_probes(probes)
                .with_probe_limit(limit * SECOND),
        );
        // calls in flight: the ticket, when it was given, and whether it is a probe's
        let mut flying: Vec<(Ticket, Instant, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Admit => {
                    let before = bench.state.clone();
                    let available = before.is_available(&bench.config, bench.now);
                    let admitted = bench.admit();
                    prop_assert_eq!(available, admitted.is_ok());
                    if let Ok(ticket) = admitted {
                        let probe = before.state() != BreakerState::Closed;
                        flying.push((ticket, bench.now, probe));
                    }
                }
                Step::Reset => {
                    bench.state.reset();
                }
                Step::Settle(which, verdict) if !flying.is_empty() => {
                    let (ticket, ..) = flying.swap_remove(which % flying.len());
                    bench.settle(ticket, verdict);
                }
                Step::Settle(..) => {}
                Step::Wait(secs) => bench.wait(secs),
            }
            // whoever is within the limit still holds a place
            let since = |given| bench.now.duration_since(given);
            let probing = flying
                .iter()
                .filter(|(_, given, probe)| *probe && since(*given) < limit * SECOND)
                .count();
            prop_assert!(probing <= probes as usize, "{probing} probes in flight");
            // no one else moves: time alone leads to the next call
            let mut later = bench.state.clone();
            let longest = bench.config.max_open_time.max(bench.config.probe_time());
            prop_assert!(later.admit(&bench.config, bench.now + longest).is_ok());
        }
    }
}
