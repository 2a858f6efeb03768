//! The machine against cases.

use callward_testkit::{call, tool};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl Outcome {
    fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            fault: Fault::default(),
            took: None,
        }
    }
}

/// A connection of this tool was lost after it was sent.
const fn lost(tool: u128) -> Fault {
    Fault {
        tool: Some(tool),
        is_retry: false,
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

    /// A call that takes this long.
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
    fn lose(&mut self, tool: u128) -> Option<Change> {
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
            trip: Trip::Consecutive(3),
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
fn quick_failures_of_overlapping_calls_are_one_event() {
    let mut bench = Bench::new(BreakerConfig::default());
    let other = bench.admit().unwrap();
    assert_eq!(bench.call(Verdict::Failure), None);
    assert_eq!(bench.settle(other, Verdict::Nothing), None);
    for _ in 0..10 {
        assert_eq!(bench.call(Verdict::Failure), None);
    }
    bench.now += EVENT;
    assert_eq!(bench.call(Verdict::Failure), None);
    bench.now += EVENT;
    assert!(bench.call(Verdict::Failure).is_some());
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
    bench.state.force(Some(true));
    bench.wait(100_000);
    assert_eq!(bench.admit(), Err(None));
    assert_eq!(bench.state.reset(), None);
    assert_eq!(bench.settle(before, Verdict::Success), None);
    assert_eq!(bench.state.state(), BreakerState::ForcedOpen);
    bench.state.force(Some(false));
    for _ in 0..10 {
        assert_eq!(bench.call(Verdict::Failure), None);
    }
    bench.state.force(None);
    assert_eq!(bench.state.state(), BreakerState::Closed);
    bench.call(Verdict::Failure);
    bench.state.force(None);
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
    let counts = WindowStatus {
        calls: 10,
        failed: 6,
        slow: 0,
    };
    let change = bench.call(Verdict::Failure);
    assert_eq!(tripped(change), Some(Trip::FailureRate(counts)));
    // closed again, it starts with an empty window
    bench.wait(30);
    bench.call(Verdict::Success);
    assert_eq!(bench.state.counts(bench.now), Some(WindowStatus::default()));
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
    assert_eq!(tripped(change), Some(Trip::Consecutive(3)));
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
    let counts = WindowStatus {
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

#[test]
fn one_tool_never_opens_it_however_often_it_loses_its_connection() {
    for failures in [1, 3, 5] {
        let mut bench = Bench::new(BreakerConfig::server().with_failures(failures));
        for _ in 0..100 {
            assert_eq!(bench.lose(1), None);
        }
        assert_eq!(bench.state.failures(), 1);
        assert_eq!(bench.state.state(), BreakerState::Closed);
    }
}

#[test]
fn each_tool_counts_once_in_a_row_and_what_cannot_connect_each_time() {
    let mut bench = Bench::new(BreakerConfig::server());
    for _ in 0..2 {
        for tool in [1, 2, 1, 3, 1, 4, 1, 2] {
            assert_eq!(bench.lose(tool), None);
        }
        // any answer shows that the way is open
        assert_eq!(bench.call(Verdict::Success), None);
    }
    for tool in [1, 1, 2] {
        assert_eq!(bench.lose(tool), None);
    }
    assert_eq!(bench.call(Verdict::Failure), None);
    assert_eq!(bench.call(Verdict::Failure), None);
    let change = bench.call(Verdict::Failure);
    assert_eq!(tripped(change), Some(Trip::Consecutive(5)));
}

#[test]
fn a_lost_probe_of_one_tool_decides_nothing_and_one_of_another_does() {
    let mut bench = Bench::new(BreakerConfig::server());
    bench.trip();
    bench.wait(10);
    for _ in 0..20 {
        assert_eq!(bench.lose(1), None);
        assert_eq!(bench.state.state(), BreakerState::HalfOpen);
    }
    // the one place it had came back each time, and no second one
    let probe = bench.admit().unwrap();
    assert!(bench.admit().is_err());
    assert_eq!(bench.settle(probe, Verdict::Nothing), None);
    let mut answered = bench.state.clone();
    let ticket = answered
        .admit(Risk::Safe, &bench.config, bench.now)
        .unwrap();
    let outcome = Outcome::of(Verdict::Success);
    let change = answered.settle(ticket, outcome, &bench.config, bench.now);
    assert_eq!(change, Some(Change::Closed));
    assert_eq!(tripped(bench.lose(2)), Some(Trip::ProbeFailed));
    assert_eq!(bench.wait_secs(), Some(20));
    bench.wait(20);
    // each half-open time begins without suspects, and who cannot connect decides at once
    assert_eq!(bench.lose(1), None);
    assert_eq!(
        tripped(bench.call(Verdict::Failure)),
        Some(Trip::ProbeFailed)
    );
}

#[test]
fn a_lost_connection_of_one_tool_is_no_part_of_a_share() {
    let config = BreakerConfig::server()
        .with_failures(0)
        .with_failure_rate(50)
        .with_min_calls(4);
    let mut bench = Bench::new(config);
    for _ in 0..20 {
        assert_eq!(bench.lose(1), None);
        assert_eq!(bench.call(Verdict::Success), None);
        bench.wait(10);
    }
    for _ in 0..5 {
        bench.call(Verdict::Success);
    }
    while bench.state.state() == BreakerState::Closed {
        bench.call(Verdict::Failure);
    }
}

#[test]
fn an_extra_call_closes_it_and_never_counts_against_it() {
    let mut bench = Bench::new(BreakerConfig::default());
    bench.trip();
    let extra = bench.state.admit_extra().unwrap();
    assert_eq!(bench.settle(extra, Verdict::Failure), None);
    assert_eq!(bench.settle(extra, Verdict::Nothing), None);
    assert_eq!(bench.settle(extra, Verdict::Success), Some(Change::Closed));
    assert_eq!(
        bench.settle(extra, Verdict::Success),
        None,
        "another generation"
    );
}

#[test]
fn a_lost_connection_shows_in_the_state_and_refuses_nothing() {
    let mut bench = Bench::new(BreakerConfig::default());
    bench.state.set_connected(false);
    assert_eq!(bench.state.state(), BreakerState::Disconnected);
    assert!(bench.admit().is_ok());
    bench.state.force(Some(false));
    assert_eq!(bench.state.state(), BreakerState::ForcedClosed);
}

#[test]
fn only_what_must_not_run_twice_is_a_risk() {
    let of = |tool| Risk::of(call(&tool, json!({})).plan());
    assert_eq!(of(tool("get").read_only().build()), Risk::Safe);
    assert_eq!(of(tool("set").idempotent().build()), Risk::Safe);
    assert_eq!(of(tool("add").build()), Risk::Write);
    assert_eq!(of(tool("drop").destructive().build()), Risk::Write);
}

#[test]
fn each_reason_states_its_figures() {
    let config = BreakerConfig::default().with_slow_calls(Duration::from_millis(1500), 80);
    let counts = WindowStatus {
        calls: 10,
        failed: 5,
        slow: 8,
    };
    let cases = [
        (
            Trip::FailureRate(counts),
            "5 of 10 calls within 60s failed, the last: refused",
        ),
        (Trip::Consecutive(1), "a failure: refused"),
        (
            Trip::Consecutive(3),
            "3 failures in a row, the last: refused",
        ),
        (Trip::ProbeFailed, "a probe failed: refused"),
        (Trip::ProbeSlow, "a probe took 1.5s or longer"),
        (
            Trip::SlowRate(counts),
            "8 of 10 calls within 60s took 1.5s or longer",
        ),
    ];
    for (trip, expected) in cases {
        assert_eq!(trip.describe(&config, "refused"), expected);
    }
    let long = Trip::Consecutive(3).describe(&config, &"ü".repeat(5000));
    assert!(long.starts_with("3 failures in a row, the last: üüü") && long.ends_with("ü…"));
    assert!(long.chars().count() < 250);
}

#[derive(Debug, Clone)]
enum Step {
    Admit(Risk),
    Reset,
    Settle(usize, Verdict, Fault, u64),
    Wait(u64),
}

fn faults() -> impl Strategy<Value = Fault> {
    let faults = (prop::option::of(0_u128..3), any::<bool>());
    faults.prop_map(|(tool, is_retry)| Fault { tool, is_retry })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let verdicts =
        prop::sample::select(&[Verdict::Failure, Verdict::Nothing, Verdict::Success][..]);
    let step = prop_oneof![
        4 => Just(Step::Admit(Risk::Safe)),
        3 => Just(Step::Admit(Risk::Write)),
        6 => (any::<usize>(), verdicts, faults(), 0_u64..10)
            .prop_map(|(which, verdict, fault, took)| Step::Settle(which, verdict, fault, took)),
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
        shares in any::<bool>(),
    ) {
        let mut config = BreakerConfig::default()
            .with_failures(failures)
            .with_probes(probes)
            .with_probe_limit(limit * SECOND);
        if shares {
            config = config
                .with_failure_rate(30)
                .with_slow_calls(5 * SECOND, 60)
                .with_window(20 * SECOND)
                .with_min_calls(4);
        }
        let mut bench = Bench::new(config);
        // calls in flight: the ticket, when it was given, and whether it is a probe's
        let mut flying: Vec<(Ticket, Instant, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Admit(risk) => {
                    let before = bench.state.clone();
                    let wait = before.time_to_pass(risk, &bench.config, bench.now);
                    let safe_wait = before.time_to_pass(Risk::Safe, &bench.config, bench.now);
                    prop_assert!(safe_wait <= wait, "no call waits less than a safe one");
                    let admitted = bench.state.admit(risk, &bench.config, bench.now);
                    prop_assert_eq!(wait == Some(Duration::ZERO), admitted.is_ok());
                    prop_assert_eq!(admitted.err().unwrap_or(Some(Duration::ZERO)), wait);
                    if let Ok(ticket) = admitted {
                        let probe = before.state() != BreakerState::Closed;
                        flying.push((ticket, bench.now, probe));
                    }
                }
                Step::Reset => {
                    bench.state.reset();
                }
                Step::Settle(which, verdict, fault, took) if !flying.is_empty() => {
                    let (ticket, ..) = flying.swap_remove(which % flying.len());
                    let outcome = Outcome {
                        fault,
                        took: Some(Duration::from_secs(took)),
                        ..Outcome::of(verdict)
                    };
                    bench.state.settle(ticket, outcome, &bench.config, bench.now);
                }
                Step::Settle(..) => {}
                Step::Wait(secs) => bench.wait(secs),
            }
            // a probe within the limit still holds its permit
            let since = |given| bench.now.duration_since(given);
            let probing = flying
                .iter()
                .filter(|(_, given, probe)| *probe && since(*given) < limit * SECOND)
                .count();
            prop_assert!(probing <= probes as usize, "{probing} probes in flight");
            // no other call is made: time alone leads to the next call, also a write
            let longest = bench.config.max_open_time.max(bench.config.probe_time());
            let grace = bench.config.open_time;
            for (risk, longest) in [(Risk::Safe, longest), (Risk::Write, longest + grace)] {
                let mut later = bench.state.clone();
                prop_assert!(later.admit(risk, &bench.config, bench.now + longest).is_ok());
            }
        }
    }
}
