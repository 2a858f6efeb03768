use super::*;
use proptest::prelude::*;

const MEMORY: Memory = Memory { nanos: 10e9 };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(secs: u64) -> u64 {
    secs * 1_000_000_000
}

fn millis(server: &PeakEwma, now: u64) -> u64 {
    (server.read(now, MEMORY).nanos / 1e6).round() as u64
}

#[test]
fn what_was_never_called_is_unknown() {
    let server = PeakEwma::default();
    assert_eq!(server.read(at(5), MEMORY), Estimate::UNKNOWN);
    assert_eq!(Estimate::UNKNOWN.towards(7.0), 7.0);
}

#[test]
fn a_slow_call_counts_at_once_and_quick_ones_slowly() {
    let server = PeakEwma::default();
    server.succeeded(at(1), ms(10), MEMORY);
    assert_eq!(millis(&server, at(1)), 10);
    server.succeeded(at(1), ms(1000), MEMORY);
    assert_eq!(millis(&server, at(1)), 1000);
    // in no time, nothing is forgotten
    server.succeeded(at(1), ms(10), MEMORY);
    assert_eq!(millis(&server, at(1)), 1000);
    // 990 / e + 10
    server.succeeded(at(11), ms(10), MEMORY);
    assert_eq!(millis(&server, at(11)), 374);
}

#[test]
fn a_slow_server_that_nobody_calls_never_looks_faster_than_the_mean() {
    let slow = PeakEwma::default();
    slow.succeeded(at(0), ms(500), MEMORY);
    let mean = 50e6;
    let mut before = f64::INFINITY;
    for secs in 0..100 {
        let expected = slow.read(at(secs), MEMORY).towards(mean);
        assert!(expected >= mean && expected <= before, "after {secs} s");
        before = expected;
    }
    assert_eq!(before, mean, "by then it is as good as unknown");
}

#[test]
fn where_calls_take_long_memory_lasts_for_ten_of_them() {
    let server = PeakEwma::default();
    server.succeeded(at(0), Duration::from_secs(20), MEMORY);
    let trust = server.read(at(200), MEMORY).trust;
    assert!((trust - (-1f64).exp()).abs() < 1e-6, "{trust}");
}

#[test]
fn a_server_that_fails_fast_looks_slow_and_slower_with_each_failure() {
    let server = PeakEwma::default();
    server.succeeded(at(1), ms(100), MEMORY);
    let mut before = 1.0;
    for _ in 0..16 {
        server.failed(at(1), Duration::from_micros(1), MEMORY);
        let found = server.read(at(1), MEMORY);
        assert_eq!(found.nanos, 100e6, "it got no faster");
        assert!(found.penalty > before * 2.9, "{found:?}");
        before = found.penalty;
    }
    server.failed(at(1), Duration::ZERO, MEMORY);
    assert_eq!(server.read(at(1), MEMORY).penalty, before, "it has a bound");
}

#[test]
fn failures_are_forgiven_by_success_and_by_time() {
    let server = PeakEwma::default();
    for _ in 0..4 {
        server.failed(at(1), ms(1), MEMORY);
    }
    let penalty = |secs| server.read(at(secs), MEMORY).penalty;
    assert!((penalty(1) - 81.0).abs() < 1e-6);
    assert!(penalty(11) < 5.1);
    assert_eq!(penalty(60), 1.0);
    server.succeeded(at(1), ms(1), MEMORY);
    assert!((penalty(1) - 9.0).abs() < 1e-6);
    for _ in 0..6 {
        server.succeeded(at(1), ms(1), MEMORY);
    }
    assert_eq!(penalty(1), 1.0);
}

#[test]
fn a_timeout_is_as_slow_as_it_was() {
    let server = PeakEwma::default();
    server.succeeded(at(1), ms(10), MEMORY);
    server.failed(at(61), ms(60_000), MEMORY);
    assert_eq!(millis(&server, at(61)), 60_000);
}

#[test]
fn a_server_that_only_ever_failed_has_no_latency_to_believe() {
    let server = PeakEwma::default();
    server.failed(at(1), Duration::from_micros(3), MEMORY);
    let found = server.read(at(1), MEMORY);
    assert_eq!(found.trust, 0.0);
    assert!((found.penalty - 3.0).abs() < 1e-9);
}

#[derive(Debug, Clone)]
struct Step {
    now: u64,
    took: u64,
    failed: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let time = || prop_oneof![0u64..100, 0u64..100_000_000_000, any::<u64>()];
    let step = (time(), time(), any::<bool>());
    let step = step.prop_map(|(now, took, failed)| Step { now, took, failed });
    prop::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn whatever_comes_in_an_estimate_is_a_number(
        steps in steps(),
        memory in any::<u64>(),
        now in any::<u64>(),
    ) {
        let server = PeakEwma::default();
        let memory = Memory::new(Duration::from_nanos(memory));
        let (mut slowest, mut fastest) = (0.0f64, f64::INFINITY);
        for step in steps {
            let took = Duration::from_nanos(step.took);
            if step.failed {
                server.failed(step.now, took, memory);
            } else {
                server.succeeded(step.now, took, memory);
                fastest = fastest.min(nanos(took));
            }
            slowest = slowest.max(nanos(took));
            for now in [step.now, now] {
                let found = server.read(now, memory);
                prop_assert!((0.0..=1.0).contains(&found.trust), "{found:?}");
                prop_assert!((1.0..=TIMES.powf(MOST_STRIKES)).contains(&found.penalty), "{found:?}");
                prop_assert!(found.towards(5.0).is_finite(), "{found:?}");
                if found.trust > 0.0 {
                    // a rounding more or less
                    prop_assert!(found.nanos <= slowest * (1.0 + 1e-9), "{found:?}");
                    prop_assert!(found.nanos >= fastest * (1.0 - 1e-9), "{found:?}");
                }
            }
        }
    }

    #[test]
    fn no_average_is_below_the_call_that_just_ended(steps in steps()) {
        let server = PeakEwma::default();
        for step in steps {
            server.succeeded(step.now, Duration::from_nanos(step.took), MEMORY);
            let found = server.read(step.now, MEMORY).nanos;
            prop_assert!(found >= nanos(Duration::from_nanos(step.took)) * (1.0 - 1e-9));
        }
    }
}

#[test]
fn calls_that_end_together_lose_no_failure() {
    let server = PeakEwma::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    server.failed(at(1), ms(1), MEMORY);
                }
            });
        }
    });
    let penalty = server.read(at(1), MEMORY).penalty;
    assert!((penalty / TIMES.powf(12.0) - 1.0).abs() < 1e-9, "{penalty}");
}
