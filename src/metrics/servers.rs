//! The counts of servers, of the router and of discovery.

use callward_router::ServerStats;
use callward_telemetry::names::metric::{self, label};
use opentelemetry::KeyValue;

use super::{Watched, of_server, of_set, to_gauge};
use crate::stack::Stack;

pub(super) fn observe(watched: &Watched<'_>) {
    watched.gauge(metric::SERVER_UP, |stack, series| {
        for server in stack.servers() {
            let of = [of_server(&server.id), of_set(&server.set)];
            series.add(f64::from(u8::from(server.up)), of);
        }
    });
    discovery(watched);
    routing(watched);
}

fn discovery(watched: &Watched<'_>) {
    watched.gauge(metric::DISCOVERY_TOOLS, |stack, series| {
        for entry in stack.catalogue().entries() {
            series.add(1.0, [of_set(entry.tool().set())]);
        }
    });
    watched.counter(metric::DISCOVERY_LISTINGS, |stack, series| {
        for server in stack.servers() {
            for (result, count) in [
                ("listed", server.listings.listed),
                ("failed", server.listings.failed),
            ] {
                let result = KeyValue::new(label::RESULT, result);
                let of = [of_server(&server.id), of_set(&server.set), result];
                series.add(count, of);
            }
        }
    });
}

fn routing(watched: &Watched<'_>) {
    watched.gauge(metric::ROUTER_CALLS_IN_FLIGHT, |stack, series| {
        each(stack, |of, stats| series.add(to_gauge(stats.in_flight), of));
    });
    watched.gauge(metric::ROUTER_WEIGHT, |stack, series| {
        each(stack, |of, stats| series.add(stats.weight.into(), of));
    });
    watched.gauge(metric::ROUTER_STATE, |stack, series| {
        for server in stack.servers() {
            let state = KeyValue::new(label::STATE, server.state());
            series.add(1.0, [of_server(&server.id), of_set(&server.set), state]);
        }
    });
    watched.counter(metric::ROUTER_CALLS, |stack, series| {
        each(stack, |[server, set], stats| {
            for (outcome, count) in [
                ("answer", stats.totals.answers),
                ("fault", stats.totals.faults),
                ("refusal", stats.totals.refusals),
                ("cancelled", stats.totals.cancelled),
            ] {
                let outcome = KeyValue::new(label::OUTCOME, outcome);
                series.add(count, [server.clone(), set.clone(), outcome]);
            }
        });
    });
}

/// Reports each server, with the attributes that name it.
fn each(stack: &Stack, mut tell: impl FnMut([KeyValue; 2], &ServerStats)) {
    for set in stack.routes() {
        for stats in &set.servers {
            tell([of_server(&stats.server), of_set(&set.set)], stats);
        }
    }
}
