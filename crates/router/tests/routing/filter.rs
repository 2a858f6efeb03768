//! The annotation filter, under arbitrary weights, health, history, categories and strategies.

use crate::bed::{Bed, counting, not_sent, refusing, server, well};
use callward_core::ErrorKind;
use callward_router::StrategyName;
use callward_testkit::{call, tool};
use futures_util::FutureExt;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;
use serde_json::json;

#[derive(Debug, Clone)]
struct Server {
    weight: u32,
    healthy: bool,
    refuses: bool,
    avoided: bool,
    preferred: bool,
}

fn servers() -> impl Generator<Value = Vec<Server>> {
    let server = (
        prop_oneof![0u32..=100, Just(49), Just(50)],
        any::<[bool; 4]>(),
    )
        .prop_map(|(weight, [healthy, refuses, avoided, preferred])| Server {
            weight,
            healthy,
            refuses,
            avoided,
            preferred,
        });
    prop::collection::vec(server, 0..12)
}

fn strategies() -> impl Generator<Value = StrategyName> {
    prop_oneof![
        Just(StrategyName::PeakEwma),
        Just(StrategyName::RoundRobin),
        Just(StrategyName::Weighted),
        Just(StrategyName::LeastConnections),
    ]
}

fn bed(servers: &[Server], strategy: StrategyName) -> Bed {
    let members = servers.iter().enumerate().map(|(n, spec)| {
        let id = format!("s{n}");
        let member = if spec.refuses {
            refusing(&id, not_sent(ErrorKind::BreakerOpen))
        } else {
            counting(&id)
        };
        let healthy = spec.healthy;
        let categories = if spec.preferred {
            &["high-compute"][..]
        } else {
            &[]
        };
        member
            .with_weight(crate::bed::weight(spec.weight))
            .with_categories(categories.iter().copied())
            .with_gate(move |_| well(healthy))
    });
    Bed::new(strategy, members.collect())
}

proptest! {
    #[test]
    fn a_destructive_call_never_reaches_a_server_below_its_weight(
        servers in servers(),
        strategy in strategies(),
        calls in 1usize..6,
    ) {
        let bed = bed(&servers, strategy);
        let delete = tool("delete")
            .destructive()
            .hint(|hints| hints.cost_hint = Some(1000.0))
            .build();
        for _ in 0..calls {
            let mut request = call(&delete, json!({}));
            for (n, spec) in servers.iter().enumerate() {
                if spec.avoided {
                    request.attempt_mut().avoid.push(server(&format!("s{n}")));
                }
            }
            let result = bed.send(request).now_or_never();
            let Some(result) = result else {
                return Err(TestCaseError::fail("no server keeps anybody waiting"));
            };
            let eligible: Vec<_> = servers.iter().filter(|s| s.weight >= 50).collect();
            let kind = result.err().map(|error| error.kind());
            if !eligible.iter().any(|s| s.healthy) {
                prop_assert_eq!(kind, Some(ErrorKind::NoEligibleServer));
            } else if eligible.iter().any(|s| s.healthy && !s.refuses) {
                prop_assert_eq!(kind, None, "a fit server was there");
            }
        }
        for (n, spec) in servers.iter().enumerate() {
            if spec.weight < 50 || !spec.healthy {
                prop_assert_eq!(bed.started(&format!("s{n}")), 0);
            }
            prop_assert_eq!(bed.in_flight(&format!("s{n}")), 0);
        }
    }

    #[test]
    fn no_server_gets_one_call_twice(servers in servers(), strategy in strategies()) {
        let bed = bed(&servers, strategy);
        let _ = bed.send(call(&tool("send").build(), json!({}))).now_or_never();
        for n in 0..servers.len() {
            let started = bed.started(&format!("s{n}"));
            prop_assert!(started <= 1);
        }
    }

    #[test]
    fn a_read_goes_to_the_best_there_is(servers in servers(), strategy in strategies()) {
        prop_assume!(servers.iter().any(|s| s.healthy && s.weight > 0));
        let servers: Vec<_> = servers
            .into_iter()
            .map(|s| Server { refuses: false, ..s })
            .collect();
        let bed = bed(&servers, strategy);
        let read = tool("read")
            .read_only()
            .hint(|hints| hints.cost_hint = Some(1000.0))
            .build();
        let _ = bed.send(call(&read, json!({}))).now_or_never();
        let fit = |s: &&Server| s.healthy && s.weight > 0;
        let preferred = servers.iter().filter(fit).any(|s| s.preferred);
        for (n, spec) in servers.iter().enumerate() {
            if bed.started(&format!("s{n}")) == 1 {
                prop_assert!(fit(&spec));
                prop_assert_eq!(spec.preferred, preferred);
            }
        }
    }
}

/// Reads keep going to a minimum share of a set, however many breakers are open.
#[tokio::test(start_paused = true)]
async fn open_breakers_leave_reads_a_minimum_share_of_a_set() {
    use callward_router::{ExclusionReason, Router, RouterConfig};
    let reached = |percent, open: usize, reason: ExclusionReason| async move {
        let members = (0..10).map(|n| {
            counting(&format!("s{n}")).with_gate(move |_| match n < open {
                true => Err(reason),
                false => Ok(()),
            })
        });
        let bed = Bed::new(StrategyName::RoundRobin, members.collect());
        let config = RouterConfig::default()
            .with_strategy(StrategyName::RoundRobin)
            .with_min_available(percent);
        let router = Router::with_config(bed.pool.clone(), &config).unwrap();
        for _ in 0..20 {
            let read = call(&tool("read").read_only().build(), json!({}));
            let _ = tower::ServiceExt::oneshot(router.clone(), read).await;
        }
        let all = (0..10).map(|n| bed.started(&format!("s{n}")));
        all.filter(|started| *started > 0).count()
    };
    let open = ExclusionReason::BreakerOpen;
    for (percent, broken, expected) in [(30, 5, 5), (30, 8, 3), (50, 8, 5), (0, 8, 2), (30, 10, 3)]
    {
        assert_eq!(
            reached(percent, broken, open).await,
            expected,
            "{percent} {broken}"
        );
    }
    // a connection that is lost, or an operator, is not a mistake of a breaker
    assert_eq!(reached(50, 8, ExclusionReason::Unreachable).await, 2);
    assert_eq!(reached(50, 8, ExclusionReason::HeldOpen).await, 2);
}
