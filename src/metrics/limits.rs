//! The counts of the limits of rate and concurrency.

use callward_limit::{PermitStatus, RateStatus, RateSubject};
use callward_telemetry::metrics::Series;
use callward_telemetry::names::metric::{self, Metric, label};
use opentelemetry::KeyValue;

use super::{Offered, Watched, of_server, to_gauge};
use crate::limits::ServerLimitStatus;
use crate::stack::Stack;

pub(super) fn observe(watched: &Watched<'_>) {
    watched.counter(metric::RATE_LIMIT_REFUSALS, |stack, series| {
        each_rate(stack, |rate, of| {
            series.add(rate.map_or(0, |rate| rate.refused), of);
        });
    });
    watched.counter(metric::RATE_LIMIT_DELAYS, |stack, series| {
        each_rate(stack, |rate, of| {
            series.add(rate.map_or(0, |rate| rate.waited), of);
        });
    });
    watched.gauge(metric::RATE_LIMIT_CALLS_WAITING, |stack, series| {
        each_rate(stack, |rate, of| {
            series.add(rate.map_or(0.0, |rate| to_gauge(rate.waiting)), of);
        });
    });
    places(watched, metric::SERVER_CALLS_IN_FLIGHT, |places| {
        places.in_flight
    });
    places(watched, metric::SERVER_CALLS_LIMIT, |places| places.limit);
    places(watched, metric::SERVER_CALLS_WAITING, |places| {
        places.waiting
    });
    watched.counter(metric::SERVER_CALLS_REFUSED, |stack, series| {
        for one in stack.limits().servers {
            refused(&one, series);
        }
    });
}

/// Reports each rate, with its attributes: a tool may have several, and what is known of callers
/// comes together. The scopes that are always there are reported without a rate, too.
fn each_rate(stack: &Stack, mut tell: impl FnMut(Option<&RateStatus>, Vec<KeyValue>)) {
    let status = stack.limits();
    let offered = Offered::by(stack);
    let scope = |word| KeyValue::new(label::SCOPE, word);
    tell(None, vec![scope("principal")]);
    tell(None, vec![super::overflow(), scope("tool")]);
    for rate in &status.rates {
        let of = match &rate.subject {
            RateSubject::Tool { set, tool } => match offered.named(set, tool) {
                Some([tool, set]) => vec![tool, set, scope("tool")],
                None => continue,
            },
            _ => vec![scope("principal")],
        };
        tell(Some(rate), of);
    }
    for server in &status.servers {
        if let Some(rate) = &server.rate {
            tell(Some(rate), vec![of_server(&server.server), scope("server")]);
        }
    }
}

fn places(
    watched: &Watched<'_>,
    metric: Metric,
    read: impl Fn(&PermitStatus) -> usize + Send + Sync + 'static,
) {
    watched.gauge(metric, move |stack, series| {
        for one in stack.limits().servers {
            let number = to_gauge(read(&one.concurrency.server));
            series.add(number, [of_server(&one.server)]);
        }
    });
}

/// Reports why calls got no place at a server or at one of its tools, and how many did not.
fn refused(server: &ServerLimitStatus, series: &mut Series<u64>) {
    let places = &server.concurrency;
    let all = || std::iter::once(&places.server).chain(places.tools.values());
    for (reason, count) in [
        ("expired", all().map(|places| places.expired).sum()),
        ("shed", all().map(|places| places.refused).sum()),
    ] {
        let reason = KeyValue::new(label::REASON, reason);
        series.add(count, [of_server(&server.server), reason]);
    }
}
