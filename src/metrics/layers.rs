//! The values of all layers but the cache.

use callward_limit::{RateStatus, RateSubject};
use callward_telemetry::metrics::overflow;
use callward_telemetry::names::metric::{self, label};
use opentelemetry::KeyValue;

use super::{Visit, of_server, of_set, of_tool, offered};
use crate::stack::Stack;

/// Without a log there are no figures.
#[cfg(feature = "audit")]
pub(super) fn audit(stack: &Stack, visit: &mut Visit<'_>) {
    if let Some(log) = stack.audit() {
        let stats = log.stats();
        let values = [
            (metric::AUDIT_RECORDS, "written", stats.written),
            (metric::AUDIT_RECORDS, "dropped", stats.dropped),
            (metric::AUDIT_RECORDS, "failed", stats.failed),
            (metric::AUDIT_RECORDS, "suppressed", stats.suppressed),
            (metric::AUDIT_REFUSED_CALLS, "", stats.refused_calls),
            (metric::AUDIT_FAILING, "", stats.is_failing.into()),
        ];
        visit(&[], &values);
    }
}

pub(super) fn breakers(stack: &Stack, visit: &mut Visit<'_>) {
    for breaker in stack.breakers() {
        let scope = KeyValue::new(label::SCOPE, breaker.subject.as_str());
        let of = [of_server(&breaker.server), scope].into_iter();
        let of: Vec<_> = of.chain(breaker.subject.tool().map(of_tool)).collect();
        let values = [
            (metric::BREAKER_STATE, breaker.state.as_str(), 1),
            (metric::BREAKER_TRANSITIONS, "open", breaker.opened),
            (metric::BREAKER_TRANSITIONS, "closed", breaker.closed),
            (metric::BREAKER_REFUSALS, "", breaker.refused),
        ];
        visit(&of, &values);
    }
}

/// The outcome of failures: retries and their budgets, hedges, the loop guard.
pub(super) fn failures(stack: &Stack, visit: &mut Visit<'_>) {
    let (retry, hedge) = (stack.retry_stats(), stack.hedge_stats());
    let guard = stack.loop_guard_stats();
    let values = [
        (metric::RETRY_REPEATS, "", retry.retries),
        (metric::HEDGES_SENT, "", hedge.sent),
        (metric::HEDGES_WON, "", hedge.won),
        (metric::HEDGES_UNSENT, "no_budget", hedge.no_budget),
        (metric::HEDGES_UNSENT, "no_server", hedge.no_server),
        (metric::LOOP_GUARD_ANSWERS, "", guard.answered),
        (metric::LOOP_GUARD_CALLS_HELD, "", guard.held as u64),
    ];
    visit(&[], &values);
    for (outcome, count) in retry.outcomes.iter() {
        visit(&[], &[(metric::RETRY_OUTCOMES, outcome.as_str(), count)]);
    }
    for budget in stack.retry_budgets() {
        let values = [
            (metric::RETRY_BUDGET_TOKENS, "", budget.tokens.into()),
            (metric::RETRY_BUDGET_REFUSALS, "", budget.refused.into()),
        ];
        visit(&[of_set(&budget.set)], &values);
    }
}

/// A tool may have several rates. The scopes that are always there come without a rate, too.
pub(super) fn rates(stack: &Stack, visit: &mut Visit<'_>) {
    let (status, catalogue) = (stack.limits(), stack.catalogue());
    let scope = |word| KeyValue::new(label::SCOPE, word);
    for (limit, refused) in stack.0.principals.refusals() {
        let values = [(metric::RATE_LIMIT_REFUSALS, limit, refused)];
        visit(&[scope("principal")], &values);
    }
    let mut report = |of: &[KeyValue], rate: Option<&RateStatus>| {
        let count = |rate: &RateStatus| (rate.waiting as u64, rate.waited, rate.refused);
        let (waiting, waited, refused) = rate.map(count).unwrap_or_default();
        let values = [
            (metric::RATE_LIMIT_CALLS_WAITING, "", waiting),
            (metric::RATE_LIMIT_DELAYS, "", waited),
            (metric::RATE_LIMIT_REFUSALS, "", refused),
        ];
        visit(of, &values);
    };
    report(&[scope("principal")], None);
    report(&[overflow(), scope("tool")], None);
    for rate in &status.rates {
        if let RateSubject::Tool { set, tool } = &rate.subject
            && let Some([tool, set]) = offered(&catalogue, set, tool)
        {
            report(&[tool, set, scope("tool")], Some(rate));
        }
    }
    for server in &status.servers {
        if let Some(rate) = &server.rate {
            report(&[of_server(&server.server), scope("server")], Some(rate));
        }
    }
}

/// Servers, their places in the router, their permits and their tools.
pub(super) fn servers(stack: &Stack, visit: &mut Visit<'_>) {
    for server in stack.servers() {
        let values = [
            (metric::SERVER_UP, "", server.up.into()),
            (metric::ROUTER_STATE, server.state(), 1),
            (metric::DISCOVERY_LISTINGS, "listed", server.listings.listed),
            (metric::DISCOVERY_LISTINGS, "failed", server.listings.failed),
        ];
        visit(&[of_server(&server.id), of_set(&server.set)], &values);
    }
    routes(stack, visit);
    permits(stack, visit);
    for entry in stack.catalogue().entries() {
        let of = [of_set(entry.tool().set())];
        visit(&of, &[(metric::DISCOVERY_TOOLS, "", 1)]);
    }
}

fn routes(stack: &Stack, visit: &mut Visit<'_>) {
    for set in stack.routes() {
        for server in &set.servers {
            let values = [
                (metric::ROUTER_CALLS_IN_FLIGHT, "", server.in_flight as u64),
                (metric::ROUTER_WEIGHT, "", server.weight.into()),
                (metric::ROUTER_CALLS, "answer", server.totals.answers),
                (metric::ROUTER_CALLS, "fault", server.totals.faults),
                (metric::ROUTER_CALLS, "refusal", server.totals.refusals),
                (metric::ROUTER_CALLS, "cancelled", server.totals.cancelled),
            ];
            visit(&[of_server(&server.server), of_set(&set.set)], &values);
        }
    }
}

fn permits(stack: &Stack, visit: &mut Visit<'_>) {
    for server in stack.limits().servers {
        let permits = &server.concurrency.server;
        let all = || std::iter::once(permits).chain(server.concurrency.tools.values());
        let expired = all().map(|permits| permits.expired).sum();
        let shed = all().map(|permits| permits.refused).sum();
        let values = [
            (metric::SERVER_CALLS_IN_FLIGHT, "", permits.in_flight as u64),
            (metric::SERVER_CALLS_LIMIT, "", permits.limit as u64),
            (metric::SERVER_CALLS_WAITING, "", permits.waiting as u64),
            (metric::SERVER_CALLS_REFUSED, "expired", expired),
            (metric::SERVER_CALLS_REFUSED, "shed", shed),
        ];
        visit(&[of_server(&server.server)], &values);
    }
}
