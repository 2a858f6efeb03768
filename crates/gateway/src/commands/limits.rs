//! `callward limits`: what the limits of a running gateway let through, hold back and refuse.

use serde_json::Value;

use super::ask::{ask, cell, count, items, refusals, text};
use crate::args::Gateway;
use crate::error::Outcome;
use crate::output::{self, Cell, Column, Table};
use crate::state_dir::StateDir;

pub(crate) async fn run(args: Gateway, state: Option<&StateDir>) -> Outcome {
    ask(&["limits"], None, &args, state, show).await
}

/// Each kind of limit: its heading, its member of the answer, and its columns.
const KINDS: [(&str, &str, &[Column<Value>]); 5] = [
    (
        "rates",
        "rates",
        &[
            ("who", |rate| Cell::plain(who(rate))),
            ("calls a minute", |rate| cell(&rate["calls_per_minute"])),
            ("waiting", |rate| cell(&rate["waiting"])),
            ("waited", |rate| cell(&rate["waited"])),
            ("refused", |rate| refusals(&rate["refused"])),
        ],
    ),
    (
        "places",
        "places",
        &[
            ("server", |one| cell(&one["server"])),
            ("tool", |one| cell(&one["tool"])),
            ("in flight", |one| cell(&one["in_flight"])),
            ("limit", |one| cell(&one["limit"])),
            ("waiting", |one| {
                Cell::plain(format_args!("{} of {}", one["waiting"], one["max_waiting"]))
            }),
            ("shed", |one| refusals(&one["shed"])),
            ("expired", |one| refusals(&one["expired"])),
        ],
    ),
    (
        "retry budgets",
        "budgets",
        &[
            ("set", |budget| cell(&budget["set"])),
            ("retries left", |budget| {
                Cell::warn(&budget["tokens"], count(&budget["tokens"]) == 0)
            }),
            ("refused", |budget| refusals(&budget["refused"])),
        ],
    ),
    (
        "hedges",
        "hedges",
        &[
            ("sent", |hedges| cell(&hedges["sent"])),
            ("won", |hedges| cell(&hedges["won"])),
            ("not paid", |hedges| cell(&hedges["not_paid"])),
            ("no other server", |hedges| cell(&hedges["no_server"])),
        ],
    ),
    (
        "loop guard",
        "loop_guard",
        &[
            ("calls answered", |guard| cell(&guard["answered"])),
            ("failing calls held", |guard| cell(&guard["held"])),
        ],
    ),
];

/// Shows a table for each kind of limit, with a blank line between.
fn show(report: &Value) {
    for (index, (heading, key, columns)) in KINDS.into_iter().enumerate() {
        if index > 0 {
            output::line("");
        }
        output::heading(heading);
        let found = &report[key];
        // counters that stand alone are shown once one has counted
        let is_new =
            |counts: &serde_json::Map<_, _>| counts.values().all(|value| count(value) == 0);
        if found.as_object().is_some_and(is_new) || items(found).is_empty() {
            output::line("none yet");
        } else {
            output::table(&Table::of(columns, items(found)));
        }
    }
}

fn who(rate: &Value) -> String {
    let (scope, of) = (text(&rate["scope"]), text(&rate["of"]));
    match rate["set"].as_str() {
        Some(set) => format!("{scope} {set}.{of}"),
        None => format!("{scope} {of}"),
    }
}
