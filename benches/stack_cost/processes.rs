//! Rows that are measured in several processes, one after the other.
//!
//! The memory pages of a process are random, and so are their conflicts in the processor's caches:
//! the same program may take half as long again in another process.

use std::process::{Command, Stdio};

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
    ask_processes(rounds, &[part], |answer| take(rows, &answer))
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

/// The option of a measuring process: its number of rounds. It prints lines of JSON.
const ROUNDS: &str = "--rounds-here";

/// The number of processes.
const PROCESSES: usize = 16;

/// Runs this program for a number of rounds, in several processes with the arguments `words`.
/// `take` receives each printed line, and returns `None` if it is invalid.
///
/// # Errors
///
/// The failure of a process, or its invalid line.
fn ask_processes(
    rounds: usize,
    words: &[&str],
    mut take: impl FnMut(Value) -> Option<()>,
) -> Result<(), String> {
    let processes = PROCESSES.min(rounds);
    for number in 0..processes {
        eprintln!("process {} of {processes} {}", number + 1, words.join(" "));
        // the first processes do the remainder
        let here = rounds / processes + usize::from(number < rounds % processes);
        for line in output_of(&here.to_string(), words)?.lines() {
            let read = serde_json::from_str(line).ok();
            read.and_then(&mut take)
                .ok_or_else(|| format!("a measuring process answered {line:?}"))?;
        }
    }
    Ok(())
}

fn output_of(rounds: &str, words: &[&str]) -> Result<String, String> {
    let done = Command::new(this_program()?)
        .args(["--bench", ROUNDS, rounds])
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|fault| format!("a measuring process: {fault}"))?;
    if !done.status.success() {
        return Err(format!("a measuring process ended with {}", done.status));
    }
    String::from_utf8(done.stdout).map_err(|fault| fault.to_string())
}

/// Counts the instructions of this program with the arguments `words` under `valgrind`, independent
/// of other load. With `inside`, only those of matching functions.
///
/// # Errors
///
/// The output of `valgrind` without a count.
pub(crate) fn instructions(inside: Option<&str>, words: &[&str]) -> Result<u64, String> {
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(inside.map(|pattern| format!("--toggle-collect={pattern}")))
        .arg(this_program()?)
        .arg("--bench")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|fault| format!("valgrind: {fault}"))?;
    let output = String::from_utf8_lossy(&done.stderr);
    let collected = output
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    collected
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("valgrind counted nothing:\n{output}"))
}

fn this_program() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|fault| fault.to_string())
}
