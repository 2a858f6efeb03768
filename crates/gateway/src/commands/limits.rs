//! `callward limits`: what the limits of a running gateway let through, hold back and refuse.

use std::process::ExitCode;

use crate::api;
use crate::args::Limits;
use crate::error::Outcome;
use crate::output::{Cell, Screen, Table};
use crate::state_dir::StateDir;
use crate::view::LimitsReport;

pub(crate) async fn run(args: Limits, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let (remote, _) = api::gateway(&args.gateway, state).await?;
    let report = remote.limits().await?;
    if args.json {
        screen.json(&report);
    } else {
        show(&report, screen);
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a table for each kind of limit, with a blank line between.
fn show(report: &LimitsReport, screen: &Screen) {
    let tables = [
        ("rates", rates(report)),
        ("places", places(report)),
        ("retry budgets", budgets(report)),
        ("hedges", hedges(report)),
        ("loop guard", loop_guard(report)),
    ];
    for (index, (heading, table)) in tables.into_iter().enumerate() {
        if index > 0 {
            screen.out("");
        }
        screen.heading(heading);
        match table {
            Some(table) => screen.table(&table),
            None => screen.out("none yet"),
        }
    }
}

fn rates(report: &LimitsReport) -> Option<Table> {
    let mut table = Table::new(&["who", "calls a minute", "waiting", "waited", "refused"]);
    for rate in &report.rates {
        let who = match (rate.scope.as_str(), &rate.set) {
            ("tool", Some(set)) => format!("tool {set}.{}", rate.of),
            (scope, _) => format!("{scope} {}", rate.of),
        };
        table.row(vec![
            Cell::plain(who),
            Cell::plain(rate.calls_per_minute),
            Cell::plain(rate.waiting),
            Cell::plain(rate.waited),
            refusals(rate.refused),
        ]);
    }
    (!report.rates.is_empty()).then_some(table)
}

fn places(report: &LimitsReport) -> Option<Table> {
    let mut table = Table::new(&[
        "server",
        "tool",
        "in flight",
        "limit",
        "waiting",
        "shed",
        "expired",
    ]);
    for places in &report.places {
        table.row(vec![
            Cell::plain(&places.server),
            Cell::plain(places.tool.as_deref().unwrap_or("-")),
            Cell::plain(places.in_flight),
            Cell::plain(places.limit),
            Cell::plain(format_args!("{} of {}", places.waiting, places.max_waiting)),
            refusals(places.shed),
            refusals(places.expired),
        ]);
    }
    (!report.places.is_empty()).then_some(table)
}

fn budgets(report: &LimitsReport) -> Option<Table> {
    let mut table = Table::new(&["set", "retries left", "refused"]);
    for budget in &report.budgets {
        table.row(vec![
            Cell::plain(&budget.set),
            Cell::warn(budget.tokens, budget.tokens == 0),
            refusals(budget.refused.into()),
        ]);
    }
    (!report.budgets.is_empty()).then_some(table)
}

fn hedges(report: &LimitsReport) -> Option<Table> {
    let hedges = &report.hedges;
    let counts = [hedges.sent, hedges.won, hedges.not_paid, hedges.no_server];
    let mut table = Table::new(&["sent", "won", "not paid", "no other server"]);
    table.row(counts.iter().map(Cell::plain).collect());
    counts.iter().any(|count| *count > 0).then_some(table)
}

fn loop_guard(report: &LimitsReport) -> Option<Table> {
    let guard = &report.loop_guard;
    let mut table = Table::new(&["calls answered", "failing calls held"]);
    table.row(vec![refusals(guard.answered), Cell::plain(guard.held)]);
    (guard.answered > 0 || guard.held > 0).then_some(table)
}

/// A number that is no news while it is 0.
fn refusals(count: u64) -> Cell {
    Cell::warn(count, count > 0)
}
