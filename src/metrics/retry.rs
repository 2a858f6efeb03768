//! The outcome of failures: retries and their budgets, hedges, the loop guard.

use callward_telemetry::names::metric::{self, label};
use opentelemetry::KeyValue;

use super::{Watched, of_set, to_gauge};

pub(super) fn observe(watched: &Watched<'_>) {
    retries(watched);
    budgets(watched);
    hedges(watched);
    loop_guard(watched);
}

fn retries(watched: &Watched<'_>) {
    watched.counter(metric::RETRY_REPEATS, |stack, series| {
        series.add(stack.retry_stats().retries, []);
    });
    watched.counter(metric::RETRY_OUTCOMES, |stack, series| {
        for (outcome, count) in stack.retry_stats().outcomes.iter() {
            series.add(count, [KeyValue::new(label::OUTCOME, outcome.as_str())]);
        }
    });
}

fn budgets(watched: &Watched<'_>) {
    watched.gauge(metric::RETRY_BUDGET_TOKENS, |stack, series| {
        for budget in stack.retry_budgets() {
            series.add(budget.tokens.into(), [of_set(&budget.set)]);
        }
    });
    watched.counter(metric::RETRY_BUDGET_REFUSALS, |stack, series| {
        for budget in stack.retry_budgets() {
            series.add(budget.refused.into(), [of_set(&budget.set)]);
        }
    });
}

fn hedges(watched: &Watched<'_>) {
    watched.counter(metric::HEDGES_SENT, |stack, series| {
        series.add(stack.hedge_stats().sent, []);
    });
    watched.counter(metric::HEDGES_WON, |stack, series| {
        series.add(stack.hedge_stats().won, []);
    });
    watched.counter(metric::HEDGES_UNSENT, |stack, series| {
        let stats = stack.hedge_stats();
        series.add(stats.no_budget, [KeyValue::new(label::REASON, "no_budget")]);
        series.add(stats.no_server, [KeyValue::new(label::REASON, "no_server")]);
    });
}

fn loop_guard(watched: &Watched<'_>) {
    watched.counter(metric::LOOP_GUARD_ANSWERS, |stack, series| {
        series.add(stack.loop_guard_stats().answered, []);
    });
    watched.gauge(metric::LOOP_GUARD_CALLS_HELD, |stack, series| {
        series.add(to_gauge(stack.loop_guard_stats().held), []);
    });
}
