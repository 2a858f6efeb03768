//! The rule, under arbitrary pools, strategies, health and calls: a destructive call never reaches
//! a server below its weight, the error names each server and the reason, a read goes to the best.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bed::{Bed, by, counting, not_sent, read, refusing, server, test_set, weight};
use callward_core::{ErrorKind, ToolCall};
use callward_router::{
    Candidates, ExclusionReason, Member, Router, RouterConfig, Strategy, StrategyName,
};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;
use serde_json::json;
use tower::ServiceExt;

/// One server, and all that may speak against it.
#[derive(Debug, Clone)]
struct Server {
    weight: u32,
    state: State,
    drained: bool,
    refuses: bool,
    avoided: bool,
    words: Vec<&'static str>,
    factor: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Fit,
    Unfit(ExclusionReason),
    /// Fit or not, as often as one looks.
    Flapping,
}

/// What a call is, besides destructive.
#[derive(Debug, Clone)]
struct Request {
    pin: Option<usize>,
    elsewhere_only: bool,
    cost: Option<f64>,
    budget: Option<f64>,
    tags: Vec<&'static str>,
    session: u8,
}

fn words() -> impl Generator<Value = Vec<&'static str>> {
    prop::sample::subsequence(vec!["caching", "high-compute", "database"], 0..=3)
}

fn states() -> impl Generator<Value = State> {
    prop_oneof![
        4 => Just(State::Fit),
        1 => Just(State::Flapping),
        4 => prop::sample::select(vec![
            ExclusionReason::HeldOpen,
            ExclusionReason::BreakerOpen,
            ExclusionReason::Unreachable,
            ExclusionReason::NotOffered,
        ]).prop_map(State::Unfit),
    ]
}

fn number() -> impl Generator<Value = Option<f64>> {
    prop::option::of(prop::sample::select(vec![
        0.0,
        1.0,
        2.0,
        150.0,
        -1.0,
        f64::NAN,
    ]))
}

prop_compose! {
    fn a_server()(
        weight in prop_oneof![0u32..=100, Just(0), Just(49), Just(50)],
        state in states(),
        drained in prop::bool::weighted(0.2),
        refuses in prop::bool::weighted(0.3),
        avoided: bool,
        words in words(),
        factor in prop_oneof![4 => Just(1.0), 1 => Just(3.0), 1 => Just(f64::NAN)],
    ) -> Server {
        Server { weight, state, drained, refuses, avoided, words, factor }
    }
}

fn servers() -> impl Generator<Value = Vec<Server>> {
    prop::collection::vec(a_server(), 0..9)
}

prop_compose! {
    fn request()(
        pin in prop::option::weighted(0.3, 0usize..10),
        elsewhere_only in prop::bool::weighted(0.2),
        cost in number(),
        budget in number(),
        tags in words(),
        session in 0u8..4,
    ) -> Request {
        let cost = cost.filter(|cost| *cost >= 0.0);
        Request { pin, elsewhere_only, cost, budget, tags, session }
    }
}

/// Every strategy there is, and one that means ill: it says the lightest server it knows, or one
/// that is not there.
pub(crate) fn strategies() -> impl Generator<Value = Arc<dyn Strategy>> {
    prop_oneof![
        4 => prop::sample::select(StrategyName::ALL).prop_map(StrategyName::strategy),
        1 => any::<bool>().prop_map(|beyond| Arc::new(Ill { beyond }) as Arc<dyn Strategy>),
    ]
}

#[derive(Debug)]
struct Ill {
    beyond: bool,
}

impl Strategy for Ill {
    fn name(&self) -> &'static str {
        "ill"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let beyond = self.beyond.then_some(usize::MAX);
        beyond.or_else(|| Some(candidates.len()))
    }
}

fn id(n: usize) -> String {
    format!("s{n}")
}

fn member(n: usize, spec: &Server) -> Member<MockService> {
    let member = if spec.refuses {
        refusing(&id(n), not_sent(ErrorKind::BreakerOpen))
    } else {
        counting(&id(n))
    };
    let (state, looks) = (spec.state, AtomicUsize::new(0));
    member
        .with_weight(weight(spec.weight))
        .with_categories(spec.words.iter().copied())
        .with_capabilities(spec.words.iter().copied())
        .with_cost_factor(spec.factor)
        .with_gate(move |_| match state {
            State::Fit => Ok(()),
            State::Unfit(unfit) => Err(unfit),
            State::Flapping if looks.fetch_add(1, Ordering::Relaxed) % 3 == 0 => Ok(()),
            State::Flapping => Err(ExclusionReason::Unreachable),
        })
}

fn bed(servers: &[Server]) -> Bed {
    let members = servers.iter().enumerate().map(|(n, spec)| member(n, spec));
    let bed = Bed::new(StrategyName::default(), members.collect());
    for (n, _) in servers.iter().enumerate().filter(|(_, spec)| spec.drained) {
        drop(bed.pool.drain(&server(&id(n))).unwrap());
    }
    bed
}

fn wipe(request: &Request, servers: &[Server]) -> ToolCall {
    let wipe = tool("wipe").destructive().hint(|hints| {
        hints.cost_hint = request.cost;
        hints.tags = Some(request.tags.iter().map(ToString::to_string).collect());
    });
    let mut call = call(&wipe.build(), json!({}));
    if let Some(pin) = request.pin {
        call = call.pinned_to(server(&id(pin)));
    }
    if let Some(budget) = request.budget {
        call = call.with_cost_budget(budget);
    }
    // one in four has no session
    if request.session > 0 {
        call = call.with_caller(by(request.session, "read").caller().clone());
    }
    call.attempt_mut().elsewhere_only = request.elsewhere_only;
    for (n, _) in servers.iter().enumerate().filter(|(_, spec)| spec.avoided) {
        call.attempt_mut().avoid.push(server(&id(n)));
    }
    call
}

impl Request {
    /// Returns `true` if a call like this may go to a server; nothing where that may change any
    /// moment.
    fn may_go(&self, n: usize, to: &Server, router_budget: Option<f64>) -> Option<bool> {
        let budgets = [self.budget, router_budget].into_iter().flatten();
        let budget = budgets.map(|budget| budget.max(0.0)).reduce(f64::min);
        let affordable = match (self.cost, budget) {
            (Some(cost), Some(budget)) => cost * to.factor <= budget,
            _ => true,
        };
        let possible = to.weight >= 50
            && !to.drained
            && affordable
            && self.pin.is_none_or(|pin| pin == n)
            && !(self.elsewhere_only && to.avoided);
        match to.state {
            State::Flapping if possible => None,
            state => Some(possible && state == State::Fit),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_destructive_call_never_reaches_a_server_below_its_weight(
        servers in servers(),
        requests in prop::collection::vec(request(), 1..6),
        strategy in strategies(),
        budget in prop::option::weighted(0.3, prop::sample::select(vec![0.0, 2.0, 1000.0])),
    ) {
        let bed = bed(&servers);
        let mut config = RouterConfig::default();
        config.cost_budget = budget;
        let router = Router::with_config(bed.pool.clone(), &config).unwrap();
        let router = router.with_custom_strategy(strategy);
        for request in &requests {
            let wipe = wipe(request, &servers);
            // a session finds its server with reads, and any server may have those
            let read = read().with_caller(wipe.caller().clone());
            let _ = router.clone().oneshot(read).now_or_never();
            let reads: Vec<_> = (0..servers.len()).map(|n| bed.started(&id(n))).collect();
            let may = |(n, to)| request.may_go(n, to, budget);
            let may: Vec<_> = servers.iter().enumerate().map(may).collect();
            // what is only looked at must not be laxer than what is sent
            for endpoint in router.candidates(&wipe) {
                let n = endpoint.server().as_str()[1..].parse::<usize>().unwrap();
                prop_assert!(may[n] != Some(false), "{}", n);
            }
            for admitted in router.route_by_annotation(wipe.tool()) {
                let set = bed.pool.get(&test_set()).unwrap();
                prop_assert!(set.endpoint(&admitted).unwrap().weight().get() >= 50);
            }
            let result = router.clone().oneshot(wipe).now_or_never();
            let Some(result) = result else {
                return Err(TestCaseError::fail("no server keeps anybody waiting"));
            };
            for (n, may) in may.iter().enumerate() {
                let is_sent = bed.started(&id(n)) > reads[n];
                prop_assert!(!is_sent || *may != Some(false), "{}", n);
            }
            let none = may.iter().all(|may| *may == Some(false));
            let mut all = may.iter().zip(&servers);
            let someone = all.any(|(may, to)| *may == Some(true) && !to.refuses);
            match result {
                Ok(_) => prop_assert!(!none),
                Err(error) if request.pin.is_some_and(|pin| pin >= servers.len()) => {
                    let other = if request.elsewhere_only {
                        ErrorKind::NoEligibleServer
                    } else {
                        ErrorKind::InvalidCall
                    };
                    prop_assert_eq!(error.kind, other);
                }
                Err(error) => {
                    prop_assert!(!someone, "{}", error);
                    if none {
                        prop_assert_eq!(error.kind, ErrorKind::NoEligibleServer);
                        let names_all = !request.elsewhere_only && request.pin.is_none();
                        for n in (0..servers.len()).filter(|_| names_all) {
                            let named = error.message.contains(&format!("{} ", id(n)));
                            prop_assert!(named, "{}", error);
                        }
                    }
                }
            }
        }
        for n in 0..servers.len() {
            prop_assert_eq!(bed.in_flight(&id(n)), 0);
        }
    }
}

proptest! {
    #[test]
    fn a_read_goes_to_the_best_there_is_and_no_call_to_one_server_twice(
        mut servers in servers(),
        strategy in strategies(),
    ) {
        let bed = bed(&servers);
        let router = bed.router.clone().with_custom_strategy(strategy.clone());
        let _ = router.oneshot(by(1, "send")).now_or_never();
        prop_assert!((0..servers.len()).all(|n| bed.started(&id(n)) <= 1));

        for server in &mut servers {
            server.refuses = false;
            if server.state != State::Fit {
                // reads may go on to servers with an open breaker
                server.state = State::Unfit(ExclusionReason::Unreachable);
            }
        }
        let fit = |s: &&Server| s.state == State::Fit && !s.drained && s.weight > 0;
        if !servers.iter().any(|server| fit(&server)) {
            return Ok(());
        }
        let bed = self::bed(&servers);
        let router = bed.router.clone().with_custom_strategy(strategy);
        let read = tool("read").read_only().hint(|hints| hints.cost_hint = Some(1000.0));
        let result = router.oneshot(call(&read.build(), json!({}))).now_or_never();
        prop_assert!(result.unwrap().is_ok());
        let preferred = |server: &Server| server.words.contains(&"high-compute");
        let any_preferred = servers.iter().filter(fit).any(preferred);
        for (n, server) in servers.iter().enumerate() {
            if bed.started(&id(n)) == 1 {
                prop_assert!(fit(&server));
                prop_assert_eq!(preferred(server), any_preferred);
            }
        }
    }
}

#[test]
fn open_breakers_leave_reads_a_minimum_share_of_a_set() {
    for (percent, broken, reason, expected) in [
        (30, 5, "open", 5),
        (30, 8, "open", 3),
        (50, 8, "open", 5),
        (0, 8, "open", 2),
        (30, 10, "open", 3),
        // a connection that is lost, or an operator, is not a mistake of a breaker
        (50, 8, "unreachable", 2),
        (50, 8, "held", 2),
    ] {
        let words = (0..10).map(|n| match n < broken {
            true => format!("{}!{reason}", id(n)),
            false => id(n),
        });
        let bed = Bed::of(&words.collect::<Vec<_>>().join(" "));
        let mut config = RouterConfig::default();
        (config.strategy, config.min_available) = (StrategyName::RoundRobin, percent);
        let router = Router::with_config(bed.pool.clone(), &config).unwrap();
        let reached: BTreeSet<_> = (0..20).filter_map(|_| router.decide(&read())).collect();
        assert_eq!(reached.len(), expected, "{percent} {broken} {reason}");
    }
}
