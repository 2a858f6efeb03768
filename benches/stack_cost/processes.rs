//! Measures in several processes, one after the other.
//!
//! Which pages of memory a process gets is chance, and so is which of them meet in one place of the
//! processor's caches: over a thousand distinct calls, which just fit into those, the same program takes
//! half as long again in one process as in another. Rounds of one process all have the same luck.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::rows::Row;

/// Does so many rounds, and prints the runs of each row as a line of JSON: for the process that asks.
pub(crate) const ROUNDS: &str = "--rounds-here";

/// Processes to share the rounds between.
const PROCESSES: usize = 8;

/// Measures rows here, and prints their runs.
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
    let processes = PROCESSES.min(rounds);
    for number in 0..processes {
        eprintln!("process {} of {processes}", number + 1);
        // the first ones do what cannot be shared evenly
        let here = rounds / processes + usize::from(number < rounds % processes);
        for line in child(here, part)?.lines() {
            take(rows, line).ok_or_else(|| format!("a measuring process answered {line:?}"))?;
        }
    }
    Ok(())
}

fn child(rounds: usize, part: &str) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|fault| fault.to_string())?;
    let done = Command::new(program)
        .args(["--bench", ROUNDS, &rounds.to_string(), part])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|fault| format!("a measuring process: {fault}"))?;
    if !done.status.success() {
        return Err(format!("a measuring process ended with {}", done.status));
    }
    String::from_utf8(done.stdout).map_err(|fault| fault.to_string())
}

/// Adds the runs of one line to those of its row.
fn take(rows: &mut [Row], line: &str) -> Option<()> {
    let told: Value = serde_json::from_str(line).ok()?;
    let row = rows.iter_mut().find(|row| told["name"] == *row.name)?;
    let runs: [Vec<f64>; 2] = serde_json::from_value(told["runs"].clone()).ok()?;
    for (known, more) in row.subject.runs.iter_mut().zip(runs) {
        known.extend(more);
    }
    Some(())
}
