//! The states of breakers, how often they changed, and the calls they refused.

use callward_breaker::BreakerStatus;
use callward_telemetry::names::metric::{self, label};
use opentelemetry::KeyValue;

use super::{Watched, of_server, of_tool};

pub(super) fn observe(watched: &Watched<'_>) {
    watched.gauge(metric::BREAKER_STATE, |stack, series| {
        for breaker in stack.breakers() {
            let state = KeyValue::new(label::STATE, breaker.state.as_str());
            series.add(1.0, of(&breaker).into_iter().chain([state]));
        }
    });
    watched.counter(metric::BREAKER_TRANSITIONS, |stack, series| {
        for breaker in stack.breakers() {
            for (state, count) in [("open", breaker.opened), ("closed", breaker.closed)] {
                let state = KeyValue::new(label::STATE, state);
                series.add(count, of(&breaker).into_iter().chain([state]));
            }
        }
    });
    watched.counter(metric::BREAKER_REFUSALS, |stack, series| {
        for breaker in stack.breakers() {
            series.add(breaker.refused, of(&breaker));
        }
    });
}

fn of(breaker: &BreakerStatus) -> Vec<KeyValue> {
    let scope = KeyValue::new(label::SCOPE, breaker.subject.as_str());
    let tool = breaker.tool().map(of_tool);
    let of = [of_server(&breaker.server), scope].into_iter();
    of.chain(tool).collect()
}
