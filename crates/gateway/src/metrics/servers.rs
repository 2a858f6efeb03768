//! What the router knows of servers, as metrics.
//!
//! `set` and `server` are named by the config, and the other labels are words of bounded sets: there
//! are as many series as servers, times a few.

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use tollgate::Stack;
use tollgate::router::ServerStats;

use super::resilience::{Named, Observer, counter, gauge};
use crate::view::state_word;

/// Adds what is read off the router when somebody asks.
pub(super) fn observe(meter: &Meter, stack: &Stack) {
    let in_flight = (
        "tollgate_router_calls_in_flight",
        "Calls that were given to a server and have not ended, those that wait there too",
    );
    gauge(meter, stack, in_flight, |stack, observer| {
        each(stack, |of, stats| {
            let calls = u64::try_from(stats.in_flight).unwrap_or(u64::MAX);
            observer.observe(calls, &of);
        });
    });
    let weight = (
        "tollgate_router_weight",
        "What a server weighs, from 0 to 100",
    );
    gauge(meter, stack, weight, |stack, observer| {
        each(stack, |of, stats| {
            observer.observe(stats.weight.into(), &of);
        });
    });
    weight_in_force(meter, stack);
    let state = ("tollgate_router_state", "1 for how a server is");
    gauge(meter, stack, state, |stack, observer| {
        each(stack, |[set, server], stats| {
            let state = KeyValue::new("state", state_word(stats));
            observer.observe(1, &[set, server, state]);
        });
    });
    let calls = (
        "tollgate_router_calls",
        "Calls that were given to a server and ended, by what became of them",
    );
    counter(meter, stack, calls, calls_by_outcome);
    let ejections = (
        "tollgate_router_ejections",
        "How often a server was left out because its calls failed",
    );
    counter(meter, stack, ejections, |stack, observer| {
        each(stack, |of, stats| {
            observer.observe(stats.ejections, &of);
        });
    });
}

fn weight_in_force(meter: &Meter, stack: &Stack) {
    let (name, description): Named = (
        "tollgate_router_weight_in_force",
        "How much of a server's weight counts now",
    );
    let stack = stack.clone();
    meter
        .f64_observable_gauge(name)
        .with_description(description)
        .with_callback(move |observer| {
            each(&stack, |of, stats| {
                observer.observe(stats.weight_in_force, &of);
            });
        })
        .build();
}

fn calls_by_outcome(stack: &Stack, observer: Observer<'_>) {
    each(stack, |[set, server], stats| {
        let totals = &stats.totals;
        for (outcome, count) in [
            ("answer", totals.answers),
            ("fault", totals.faults),
            ("refusal", totals.refusals),
            ("cancelled", totals.cancelled),
        ] {
            let outcome = KeyValue::new("outcome", outcome);
            observer.observe(count, &[set.clone(), server.clone(), outcome]);
        }
    });
}

/// Tells of each server, with the labels that name it.
fn each(stack: &Stack, mut tell: impl FnMut([KeyValue; 2], &ServerStats)) {
    for set in stack.routes() {
        for stats in &set.servers {
            let of = [
                KeyValue::new("set", set.set.to_string()),
                KeyValue::new("server", stats.server.to_string()),
            ];
            tell(of, stats);
        }
    }
}
