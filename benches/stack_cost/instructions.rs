//! What a call costs in instructions, counted under `valgrind`: the same on a busy machine.

use callward_replay::report::Grid;

use crate::processes;
use crate::rows::{self, Part};

/// Calls that are counted; twice as many, less this many, leaves what one takes.
const COUNTED: u64 = 512;

/// Does one row this many times, and prints nothing: for counters outside of the process.
pub(crate) fn repeat(row: &str, calls: usize) -> Result<(), String> {
    let rows = rows::all(row);
    let found = rows.iter().find(|other| other.name == row);
    let found = found.ok_or_else(|| format!("there is no row {row:?}"))?;
    found.subject.repeat(calls);
    Ok(())
}

/// Counts each row whose name has this part.
pub(crate) fn table(part: &str) -> Result<(), String> {
    let mut grid = Grid::new(&["instructions a call", ""]);
    for row in rows::all(part) {
        let many = matches!(row.part, Part::HitsAmong(_) | Part::WritesAmong(_));
        // a world of many tools takes minutes to make under valgrind
        if many || !row.name.contains(part) {
            continue;
        }
        let (few, more) = (count(&row.name, COUNTED)?, count(&row.name, 2 * COUNTED)?);
        let cells = [row.name, (more.saturating_sub(few) / COUNTED).to_string()];
        grid.rows.push(cells.to_vec());
    }
    println!("{grid}");
    Ok(())
}

/// Counts the instructions inside of what is clocked, with this many calls after the first ones.
fn count(row: &str, calls: u64) -> Result<u64, String> {
    let words = ["--row", row, "--calls", &calls.to_string()];
    processes::instructions(Some("*stack_cost*measure*clocked*"), &words)
}
