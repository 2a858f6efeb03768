//! The machine against cases.

use super::*;
use crate::mark::Mark;

mod chance;
mod lost;

const SECOND: Duration = Duration::from_secs(1);

impl Outcome {
    fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            fault: Fault::default(),
            took: None,
            others: 0,
            overlapped: false,
        }
    }
}

/// A connection of this tool was lost after it was sent.
fn lost(tool: u64) -> Fault {
    Fault {
        tool: Some(Mark(tool)),
        is_shared: true,
        session: None,
    }
}

/// A machine with its settings and its own clock.
struct Bench {
    state: State,
    config: BreakerConfig,
    now: Instant,
}

impl Bench {
    fn new(config: BreakerConfig) -> Self {
        Self {
            state: State::new(&config, Instant::now()),
            config,
            now: Instant::now(),
        }
    }

    fn wait(&mut self, secs: u64) {
        self.now += SECOND * u32::try_from(secs).unwrap();
    }

    fn admit(&mut self) -> Result<Ticket, Option<Duration>> {
        self.state.admit(Risk::Safe, &self.config, self.now)
    }

    fn write(&mut self) -> Result<Ticket, Option<Duration>> {
        self.state.admit(Risk::Write, &self.config, self.now)
    }

    fn settle(&mut self, ticket: Ticket, verdict: Verdict) -> Option<Change> {
        let outcome = Outcome::of(verdict);
        self.state.settle(ticket, outcome, &self.config, self.now)
    }

    /// A call that takes so long.
    fn call_for(&mut self, verdict: Verdict, secs: u64) -> Option<Change> {
        let ticket = self.admit().unwrap();
        self.wait(secs);
        let outcome = Outcome {
            took: Some(Duration::from_secs(secs)),
            ..Outcome::of(verdict)
        };
        self.state.settle(ticket, outcome, &self.config, self.now)
    }

    /// A call of this tool, whose connection is lost after it was sent.
    fn lose(&mut self, tool: u64) -> Option<Change> {
        let ticket = self.admit().unwrap();
        let outcome = Outcome {
            fault: lost(tool),
            ..Outcome::of(Verdict::Failure)
        };
        self.state.settle(ticket, outcome, &self.config, self.now)
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
            trip: Trip::InARow(3),
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

/// What opened it, if this did.
fn tripped(change: Option<Change>) -> Option<Trip> {
    match change? {
        Change::Opened { trip, .. } => Some(trip),
        Change::Closed => None,
    }
}

#[test]
fn a_share_of_failures_opens_it_once_there_are_enough_calls() {
    let config = BreakerConfig::default()
        .with_failures(0)
        .with_failure_rate(50)
        .with_min_calls(10);
    let mut bench = Bench::new(config);
    for n in 0..9 {
        let verdict = [Verdict::Failure, Verdict::Success][n % 2];
        assert_eq!(bench.call(verdict), None, "{n} calls are too few");
    }
    let counts = Counts {
        calls: 10,
        failed: 6,
        slow: 0,
    };
    let change = bench.call(Verdict::Failure);
    assert_eq!(tripped(change), Some(Trip::FailureRate(counts)));
    // closed again, it starts with an empty window
    bench.wait(30);
    bench.call(Verdict::Success);
    assert_eq!(bench.state.counts(bench.now), Some(Counts::default()));
}

#[test]
fn failures_far_apart_are_no_share() {
    let config = BreakerConfig::default()
        .with_failures(0)
        .with_failure_rate(50)
        .with_min_calls(3);
    let mut bench = Bench::new(config);
    for _ in 0..100 {
        assert_eq!(bench.call(Verdict::Failure), None);
        bench.wait(31);
    }
}

#[test]
fn five_failures_among_a_thousand_are_no_share_either() {
    let mut bench = Bench::new(BreakerConfig::default().with_failure_rate(50));
    for n in 0..1000 {
        let verdict = if n % 200 == 0 {
            Verdict::Failure
        } else {
            Verdict::Success
        };
        assert_eq!(bench.call(verdict), None);
    }
    assert_eq!(bench.state.counts(bench.now).unwrap().failed, 5);
}

#[test]
fn failures_in_a_row_open_it_beside_a_share() {
    let mut bench = Bench::new(BreakerConfig::default().with_failure_rate(50));
    bench.call(Verdict::Failure);
    bench.call(Verdict::Failure);
    let change = bench.call(Verdict::Failure);
    assert_eq!(tripped(change), Some(Trip::InARow(3)));
}

#[test]
fn a_share_of_slow_calls_opens_it_and_a_slow_probe_does_not_close_it() {
    let config = BreakerConfig::default()
        .with_slow_calls(2 * SECOND, 75)
        .with_min_calls(4);
    let mut bench = Bench::new(config);
    for secs in [1, 2, 3] {
        assert_eq!(bench.call_for(Verdict::Success, secs), None);
    }
    let counts = Counts {
        calls: 4,
        failed: 0,
        slow: 3,
    };
    let change = bench.call_for(Verdict::Success, 4);
    assert_eq!(tripped(change), Some(Trip::SlowRate(counts)));
    bench.wait(30);
    let change = bench.call_for(Verdict::Success, 2);
    assert_eq!(tripped(change), Some(Trip::ProbeSlow));
    bench.wait(60);
    assert_eq!(bench.call_for(Verdict::Success, 1), Some(Change::Closed));
}

#[test]
fn a_good_call_never_opens_it() {
    let config = BreakerConfig::default()
        .with_failures(0)
        .with_failure_rate(1)
        .with_min_calls(2);
    let mut bench = Bench::new(config);
    assert_eq!(bench.call(Verdict::Failure), None);
    assert_eq!(bench.call(Verdict::Success), None);
    assert!(tripped(bench.call(Verdict::Failure)).is_some());
}

#[test]
fn a_write_is_no_probe_where_a_safe_call_may_come() {
    let mut bench = Bench::new(BreakerConfig::default());
    bench.trip();
    bench.wait(30);
    assert_eq!(bench.write(), Err(Some(30 * SECOND)));
    bench.wait(10);
    assert_eq!(bench.write(), Err(Some(20 * SECOND)));
    // a probe that is given back leaves its place to safe calls, too
    let probe = bench.admit().unwrap();
    bench.settle(probe, Verdict::Nothing);
    assert_eq!(bench.write(), Err(Some(20 * SECOND)));
    let probe = bench.admit().unwrap();
    assert_eq!(bench.settle(probe, Verdict::Success), Some(Change::Closed));
    assert!(bench.write().is_ok());
}

#[test]
fn a_write_is_the_probe_where_no_safe_call_comes() {
    let mut bench = Bench::new(BreakerConfig::default());
    bench.trip();
    bench.wait(60);
    let probe = bench.write().unwrap();
    assert!(bench.write().is_err(), "one place");
    assert_eq!(bench.settle(probe, Verdict::Success), Some(Change::Closed));
}

#[test]
fn a_write_is_the_probe_where_there_never_was_a_safe_call() {
    let mut bench = Bench::new(BreakerConfig::default());
    for _ in 0..3 {
        let ticket = bench.write().unwrap();
        bench.settle(ticket, Verdict::Failure);
    }
    bench.wait(29);
    assert_eq!(bench.write(), Err(Some(SECOND)));
    bench.wait(1);
    let probe = bench.write().unwrap();
    assert_eq!(bench.settle(probe, Verdict::Success), Some(Change::Closed));
}
