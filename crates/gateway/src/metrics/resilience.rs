//! What repeats, hedges, limits and the loop guard count, as metrics.
//!
//! `set` and `server` are named by the config. `tool` is one that is offered; what is known of others
//! comes together in one series without it, and so do callers, who may be any number: `tollgate
//! limits` tells of each. All other labels are words of bounded sets.

use std::collections::BTreeMap;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use tollgate::limit::{PlacesStatus, RateStatus, RateSubject};
use tollgate::{ReplicaSetId, ServerLimitStatus, Stack, ToolName};

/// Adds what is read off the layers when somebody asks.
pub(super) fn observe(meter: &Meter, stack: &Stack) {
    budgets(meter, stack);
    rates(meter, stack);
    places(meter, stack);
    hedges(meter, stack);
    loop_guard(meter, stack);
}

/// A name and what it counts.
pub(super) type Named = (&'static str, &'static str);

pub(super) type Observer<'a> = &'a dyn AsyncInstrument<u64>;

pub(super) fn counter(
    meter: &Meter,
    stack: &Stack,
    (name, description): Named,
    read: impl Fn(&Stack, Observer<'_>) + Send + Sync + 'static,
) {
    let stack = stack.clone();
    meter
        .u64_observable_counter(name)
        .with_description(description)
        .with_callback(move |observer| read(&stack, observer))
        .build();
}

pub(super) fn gauge(
    meter: &Meter,
    stack: &Stack,
    (name, description): Named,
    read: impl Fn(&Stack, Observer<'_>) + Send + Sync + 'static,
) {
    let stack = stack.clone();
    meter
        .u64_observable_gauge(name)
        .with_description(description)
        .with_callback(move |observer| read(&stack, observer))
        .build();
}

fn budgets(meter: &Meter, stack: &Stack) {
    let tokens = (
        "tollgate_retry_budget_tokens",
        "Repeats and hedges that the budget of a replica set would pay for now",
    );
    gauge(meter, stack, tokens, |stack, observer| {
        for budget in stack.retry_budgets() {
            let set = KeyValue::new("set", budget.set.to_string());
            observer.observe(budget.tokens.into(), &[set]);
        }
    });
    let refusals = (
        "tollgate_retry_budget_refusals",
        "Repeats and hedges that the budget did not pay for",
    );
    counter(meter, stack, refusals, |stack, observer| {
        for budget in stack.retry_budgets() {
            let set = KeyValue::new("set", budget.set.to_string());
            observer.observe(budget.refused.into(), &[set]);
        }
    });
}

fn rates(meter: &Meter, stack: &Stack) {
    let refusals = (
        "tollgate_rate_limit_refusals",
        "Calls refused because their turn would have come too late",
    );
    counter(meter, stack, refusals, |stack, observer| {
        by_rate(stack, observer, |rate| rate.refused);
    });
    let delays = (
        "tollgate_rate_limit_delays",
        "Calls that had to wait for their turn, and got it",
    );
    counter(meter, stack, delays, |stack, observer| {
        by_rate(stack, observer, |rate| rate.waited);
    });
    let waiting = (
        "tollgate_rate_limit_calls_waiting",
        "Calls that wait for their turn",
    );
    gauge(meter, stack, waiting, |stack, observer| {
        by_rate(stack, observer, |rate| {
            u64::try_from(rate.waiting).unwrap_or(u64::MAX)
        });
    });
}

/// What a series of rates is about: its scope, and the tool that is offered or the server.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Principals,
    Server(String),
    Tool(ReplicaSetId, ToolName),
    Tools,
}

/// Tells one number of each rate, those of one series as their sum: a tool may have several rates.
fn by_rate(stack: &Stack, observer: Observer<'_>, number: impl Fn(&RateStatus) -> u64) {
    let status = stack.limits();
    let catalogue = stack.catalogue();
    let is_offered = |set: &ReplicaSetId, tool: &ToolName| {
        let mut entries = catalogue.entries().iter();
        entries.any(|entry| entry.tool().set() == set && entry.tool().name() == tool)
    };
    let mut sums: BTreeMap<Whose, u64> = BTreeMap::new();
    for rate in &status.rates {
        let whose = match &rate.subject {
            RateSubject::Tool { set, tool } if is_offered(set, tool) => {
                Whose::Tool(set.clone(), tool.clone())
            }
            RateSubject::Tool { .. } => Whose::Tools,
            _ => Whose::Principals,
        };
        *sums.entry(whose).or_default() += number(rate);
    }
    for server in &status.servers {
        if let Some(rate) = &server.rate {
            let whose = Whose::Server(server.server.to_string());
            *sums.entry(whose).or_default() += number(rate);
        }
    }
    for (whose, sum) in sums {
        let scope = |word| KeyValue::new("scope", word);
        let by = match whose {
            Whose::Principals => vec![scope("principal")],
            Whose::Server(server) => vec![scope("server"), KeyValue::new("server", server)],
            Whose::Tool(set, tool) => vec![
                scope("tool"),
                KeyValue::new("set", set.to_string()),
                KeyValue::new("tool", tool.to_string()),
            ],
            Whose::Tools => vec![scope("tool")],
        };
        observer.observe(sum, &by);
    }
}

fn places(meter: &Meter, stack: &Stack) {
    type Read = fn(&PlacesStatus) -> usize;
    let of_server: [(Named, Read); 3] = [
        (
            (
                "tollgate_server_calls_in_flight",
                "Calls that have a place at a server",
            ),
            |places| places.in_flight,
        ),
        (
            (
                "tollgate_server_calls_limit",
                "How many calls a server gets at once, as it is now",
            ),
            |places| places.limit,
        ),
        (
            (
                "tollgate_server_calls_waiting",
                "Calls that wait for a place at a server",
            ),
            |places| places.waiting,
        ),
    ];
    for (named, read) in of_server {
        gauge(meter, stack, named, move |stack, observer| {
            for one in stack.limits().servers {
                let number = read(&one.concurrency.server);
                let server = KeyValue::new("server", one.server.to_string());
                observer.observe(u64::try_from(number).unwrap_or(u64::MAX), &[server]);
            }
        });
    }
    let refusals = (
        "tollgate_server_calls_refused",
        "Calls that got no place at a server, or at one of its tools: too many waited, or their time \
         was over",
    );
    counter(meter, stack, refusals, |stack, observer| {
        for one in stack.limits().servers {
            for (reason, count) in refused(&one) {
                let by = [
                    KeyValue::new("server", one.server.to_string()),
                    KeyValue::new("reason", reason),
                ];
                observer.observe(count, &by);
            }
        }
    });
}

/// Returns why calls got no place at a server or at one of its tools, and how many did not.
fn refused(server: &ServerLimitStatus) -> [(&'static str, u64); 2] {
    let places = &server.concurrency;
    let all = || std::iter::once(&places.server).chain(places.tools.values());
    [
        ("expired", all().map(|places| places.expired).sum()),
        ("shed", all().map(|places| places.refused).sum()),
    ]
}

fn hedges(meter: &Meter, stack: &Stack) {
    let sent = (
        "tollgate_hedges_sent",
        "Second attempts that ran beside a slow first",
    );
    counter(meter, stack, sent, |stack, observer| {
        observer.observe(stack.hedge_stats().sent, &[]);
    });
    let won = ("tollgate_hedges_won", "Second attempts that answered first");
    counter(meter, stack, won, |stack, observer| {
        observer.observe(stack.hedge_stats().won, &[]);
    });
    let unsent = (
        "tollgate_hedges_unsent",
        "Second attempts that were due and not sent, by reason",
    );
    counter(meter, stack, unsent, |stack, observer| {
        let stats = stack.hedge_stats();
        let reasons = [
            ("no_budget", stats.no_budget),
            ("no_server", stats.no_server),
        ];
        for (reason, count) in reasons {
            observer.observe(count, &[KeyValue::new("reason", reason)]);
        }
    });
}

fn loop_guard(meter: &Meter, stack: &Stack) {
    let answers = (
        "tollgate_loop_guard_answers",
        "Calls that kept failing, answered in their servers' place",
    );
    counter(meter, stack, answers, |stack, observer| {
        observer.observe(stack.loop_guard_stats().answered, &[]);
    });
    let held = (
        "tollgate_loop_guard_calls_held",
        "Failing calls that are remembered",
    );
    gauge(meter, stack, held, |stack, observer| {
        let held = stack.loop_guard_stats().held;
        observer.observe(u64::try_from(held).unwrap_or(u64::MAX), &[]);
    });
}
