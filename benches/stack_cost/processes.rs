//! Rows that are measured in several processes, one after the other.

use callward_testkit::processes;
use serde_json::{Value, json};

use crate::rows::Row;

/// Measures rows here, and prints the runs of each as a line of JSON: for the process that asks.
pub(crate) fn answer(mut rows: Vec<Row>, rounds: usize) {
    measure(&mut rows, rounds);
    for row in &rows {
        println!("{}", json!({"name": row.name, "runs": row.subject.runs}));
    }
}

/// Measures rows here: first until each is as it stays, and then in turns.
pub(crate) fn measure(rows: &mut [Row], rounds: usize) {
    rows.iter().for_each(Row::settle);
    for _ in 0..rounds {
        rows.iter_mut().for_each(Row::round);
    }
}

/// Has rows measured by other processes, and takes their runs over.
pub(crate) fn ask(rows: &mut [Row], rounds: usize, part: &str) -> Result<(), String> {
    processes::ask(rounds, &[part], |answer| take(rows, &answer))
}

/// Adds the runs of one line to those of its row.
fn take(rows: &mut [Row], answer: &Value) -> Option<()> {
    let row = rows.iter_mut().find(|row| answer["name"] == *row.name)?;
    let runs: [Vec<f64>; 2] = serde_json::from_value(answer["runs"].clone()).ok()?;
    for (known, more) in row.subject.runs.iter_mut().zip(runs) {
        known.extend(more);
    }
    Some(())
}
