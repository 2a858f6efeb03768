//! The rows as a table, and as lines for machines.

use callward_replay::report::{Cell, Grid, Mark};
use serde_json::json;

use crate::measure::Subject;
use crate::rows::{ALONE, Kind, Row};

/// What ours should be cheaper by.
const GOAL: f64 = 3.0;

/// Prints the rows under each other.
pub(crate) fn table(rows: &[Row]) {
    println!("{}", machine());
    let headings = [
        "ns a call",
        "ours",
        "±",
        "theirs",
        "±",
        "times",
        "whole",
        "two threads: ours",
        "theirs",
        "times",
    ];
    let mut grid = Grid::new(&headings);
    for row in rows {
        let mut cells = vec![Cell::plain(row.name)];
        for side in [Some(&row.ours), row.theirs.as_ref()] {
            let found = side.and_then(|side| side.median(1));
            cells.push(number(found.map(|(median, _)| median - off(rows, row, 1))));
            cells.push(number(found.map(|(_, spread)| spread)));
        }
        cells.push(times(own(rows, row, 1)));
        cells.push(times(whole(row, 1)));
        for side in [Some(&row.ours), row.theirs.as_ref()] {
            let found = side.and_then(|side| side.median(2));
            cells.push(number(found.map(|(median, _)| median - off(rows, row, 2))));
        }
        cells.push(times(own(rows, row, 2)));
        grid.row(cells);
    }
    println!("{grid}");
    let tried: usize = subjects(rows).map(|subject| subject.tried).sum();
    let counted: usize = subjects(rows).map(Subject::counted).sum();
    println!("{counted} of {tried} runs of two threads were not disturbed, and count");
}

/// Prints a line for each row and side: whole calls, nothing taken off.
pub(crate) fn json(rows: &[Row]) {
    for row in rows {
        for (side, subject) in [("ours", Some(&row.ours)), ("theirs", row.theirs.as_ref())] {
            let Some(subject) = subject else { continue };
            let (one, two) = (subject.median(1), subject.median(2));
            let line = json!({
                "name": row.name,
                "side": side,
                "ns": one.map(|found| found.0),
                "ns_own": one.map(|found| found.0 - off(rows, row, 1)),
                "ns_spread": one.map(|found| found.1),
                "ns_two_threads": two.map(|found| found.0),
                "ns_own_two_threads": two.map(|found| found.0 - off(rows, row, 2)),
                "runs_two_threads": subject.counted(),
                "machine": machine(),
            });
            println!("{line}");
        }
    }
}

fn subjects(rows: &[Row]) -> impl Iterator<Item = &Subject> {
    rows.iter()
        .flat_map(|row| [Some(&row.ours), row.theirs.as_ref()].into_iter().flatten())
}

/// What is taken off a row: the service alone.
fn off(rows: &[Row], row: &Row, threads: usize) -> f64 {
    let alone = rows.iter().find(|row| row.name == ALONE);
    match (row.kind, alone) {
        (Kind::Layer, Some(alone)) => alone.ours.median(threads).map_or(0.0, |found| found.0),
        _ => 0.0,
    }
}

fn own(rows: &[Row], row: &Row, threads: usize) -> Option<f64> {
    let off = off(rows, row, threads);
    let of = |side: &Subject| side.median(threads).map(|found| found.0 - off);
    Some(of(row.theirs.as_ref()?)? / of(&row.ours)?.max(0.1))
}

fn whole(row: &Row, threads: usize) -> Option<f64> {
    Some(row.theirs.as_ref()?.median(threads)?.0 / row.ours.median(threads)?.0)
}

fn number(figure: Option<f64>) -> Cell {
    Cell::plain(figure.map_or_else(String::new, |figure| format!("{figure:.1}")))
}

fn times(figure: Option<f64>) -> Cell {
    match figure {
        Some(figure) if figure >= GOAL => Cell::marked(format!("{figure:.1}"), Mark::Good),
        Some(figure) => Cell::marked(format!("{figure:.1} !"), Mark::Doubtful),
        None => Cell::plain(""),
    }
}

fn machine() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{processors} processors, load {load}")
}
