//! Failures that one tool may be the reason of.

use super::*;

#[test]
fn one_tool_never_opens_it_however_often_it_loses_its_connection() {
    for failures in [1, 3, 5] {
        let mut bench = Bench::new(BreakerConfig::server().with_failures(failures));
        for _ in 0..100 {
            assert_eq!(bench.lose(1), None);
        }
        assert_eq!(bench.state.failures(), 100);
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
    assert_eq!(tripped(change), Some(Trip::InARow(6)));
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
fn a_share_of_failures_leaves_out_what_one_tool_may_be_the_reason_of() {
    let config = BreakerConfig::server()
        .with_failures(0)
        .with_failure_rate(50)
        .with_min_calls(10);
    let mut bench = Bench::new(config);
    for _ in 0..100 {
        assert_eq!(bench.lose(1), None);
    }
    // the others are well, but for one
    for _ in 0..20 {
        assert_eq!(bench.call(Verdict::Success), None);
        assert_eq!(bench.lose(1), None);
    }
    assert_eq!(bench.lose(2), None);
    // until the others fail as often as they do not: of 40 calls of theirs, 20
    for _ in 0..18 {
        assert_eq!(bench.lose(2), None);
        assert_eq!(bench.lose(1), None);
    }
    let counts = Counts {
        calls: 178,
        failed: 158,
        slow: 0,
    };
    assert_eq!(tripped(bench.lose(3)), Some(Trip::FailureRate(counts)));
}
