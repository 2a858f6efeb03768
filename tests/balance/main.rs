//! Simulated servers: what the default strategy promises.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test may panic, and its numbers are small"
)]

use callward::router::StrategyName;

use crate::drive::run;
use crate::policies::Policy;
use crate::world::Scenario;

mod drive;
mod figures;
mod policies;
mod world;

const SEEDS: [u64; 3] = [1, 2, 3];

fn by_default() -> Policy {
    Policy::Strategy(StrategyName::default())
}

#[test]
fn with_one_slow_server_of_ten_the_default_is_close_to_an_oracle() {
    for seed in SEEDS {
        let p99 = |policy| run(Scenario::OneSlow, policy, seed).p99_ms;
        let oracle = p99(Policy::Oracle).expect("the oracle fails no call");
        let default = p99(by_default()).expect("few calls fail");
        assert!(default <= 1.3 * oracle, "{default} ms, not {oracle} ms");
        for other in Policy::ALL {
            if [Policy::Oracle, by_default()].contains(&other) {
                continue;
            }
            // none: more than one of a hundred failed
            let found = p99(other).unwrap_or(f64::INFINITY);
            assert!(default < found, "{other:?}: {found} ms, not {default} ms");
        }
    }
}

#[test]
fn with_healthy_servers_the_default_is_close_to_an_oracle() {
    for scenario in [Scenario::LogNormal, Scenario::Bimodal, Scenario::TwoTools] {
        let p99 = |policy| run(scenario, policy, SEEDS[0]).p99_ms.expect("no failures");
        let (default, oracle) = (p99(by_default()), p99(Policy::Oracle));
        assert!(
            default <= 1.1 * oracle,
            "{scenario:?}: {default} ms, not {oracle} ms"
        );
    }
}

/// Of 28 calls a second that would be its share, a server that fails fast gets five in the first
/// second, until that is known. From then on, a call in two seconds finds out whether it still
/// does.
#[test]
fn failing_fast_attracts_no_traffic() {
    for seed in SEEDS {
        let found = run(Scenario::OneFails, by_default(), seed);
        let (first, later) = found.struck_by_second.split_at(1);
        assert!(first[0] <= 0.2, "{first:?}");
        assert!(mean(later) <= 0.02, "{later:?}");
        assert!(later.iter().any(|share| *share > 0.0), "it is never tried");
    }
}

/// It is four times as slow as the others at first, and nothing is known of it.
#[test]
fn a_server_that_joins_takes_no_more_than_its_share() {
    for seed in SEEDS {
        let found = run(Scenario::OneJoins, by_default(), seed);
        let (cold, warm) = found.struck_by_second.split_at(5);
        for share in cold {
            assert!(*share <= 1.0, "{cold:?}");
        }
        assert!((0.5..=1.1).contains(&mean(warm)), "{warm:?}");
    }
}

/// Or the two tests above would say nothing.
#[test]
fn a_strategy_that_counts_calls_in_flight_alone_is_told_apart() {
    let least = Policy::Strategy(StrategyName::LeastConnections);
    let found = run(Scenario::OneFails, least, SEEDS[0]);
    assert!(found.struck > 3.0, "{}", found.struck);
    let turns = Policy::Strategy(StrategyName::RoundRobin);
    let found = run(Scenario::OneJoins, turns, SEEDS[0]);
    let cold = &found.struck_by_second[..5];
    assert!(cold.iter().any(|share| *share > 0.95), "{cold:?}");
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}
