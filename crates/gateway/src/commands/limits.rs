//! `callward limits`: what the limits of a running gateway let through, hold back and refuse.

use serde_json::Value;

use super::ask::{Question, ask, cell, count, items, refusals, table, text};
use crate::args::Limits;
use crate::error::Outcome;
use crate::output::{Cell, Screen, Table};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Limits, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let show = (!args.json).then_some(show as fn(&_, &_));
    ask(Question::Get("limits"), &args.gateway, state, show, screen).await
}

/// Shows a table for each kind of limit, with a blank line between.
fn show(report: &Value, screen: &Screen) {
    let hedges = &report["hedges"];
    let hedges = ["sent", "won", "not_paid", "no_server"].map(|key| &hedges[key]);
    let guard = ["answered", "held"].map(|key| &report["loop_guard"][key]);
    let one_row = |headings: &[&'static str], counts: &[&Value]| {
        let mut table = Table::new(headings);
        table.row(counts.iter().map(|count| cell(count)).collect());
        counts.iter().any(|value| count(value) > 0).then_some(table)
    };
    let tables = [
        ("rates", rates(items(&report["rates"]))),
        ("places", permits(items(&report["places"]))),
        ("retry budgets", budgets(items(&report["budgets"]))),
        (
            "hedges",
            one_row(&["sent", "won", "not paid", "no other server"], &hedges),
        ),
        (
            "loop guard",
            one_row(&["calls answered", "failing calls held"], &guard),
        ),
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

fn rates(rates: &[Value]) -> Option<Table> {
    let headings = ["who", "calls a minute", "waiting", "waited", "refused"];
    let table = table(&headings, rates, |rate| {
        let (scope, of) = (text(&rate["scope"]), text(&rate["of"]));
        let who = match rate["set"].as_str() {
            Some(set) => format!("{scope} {set}.{of}"),
            None => format!("{scope} {of}"),
        };
        vec![
            Cell::plain(who),
            cell(&rate["calls_per_minute"]),
            cell(&rate["waiting"]),
            cell(&rate["waited"]),
            refusals(&rate["refused"]),
        ]
    });
    (!rates.is_empty()).then_some(table)
}

fn permits(permits: &[Value]) -> Option<Table> {
    let headings = [
        "server",
        "tool",
        "in flight",
        "limit",
        "waiting",
        "shed",
        "expired",
    ];
    let table = table(&headings, permits, |one| {
        vec![
            cell(&one["server"]),
            cell(&one["tool"]),
            cell(&one["in_flight"]),
            cell(&one["limit"]),
            Cell::plain(format_args!("{} of {}", one["waiting"], one["max_waiting"])),
            refusals(&one["shed"]),
            refusals(&one["expired"]),
        ]
    });
    (!permits.is_empty()).then_some(table)
}

fn budgets(budgets: &[Value]) -> Option<Table> {
    let table = table(&["set", "retries left", "refused"], budgets, |budget| {
        vec![
            cell(&budget["set"]),
            Cell::warn(&budget["tokens"], count(&budget["tokens"]) == 0),
            refusals(&budget["refused"]),
        ]
    });
    (!budgets.is_empty()).then_some(table)
}
