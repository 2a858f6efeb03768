//! What the benches share that measure in several processes, one after the other.
//!
//! Which pages of memory a process gets is chance, and so is which of them meet in one place of the
//! processor's caches: over what just fits into those, the same program takes half as long again in one
//! process as in another. Rounds of one process all have the same luck.
#![expect(clippy::print_stderr, reason = "a benchmark tells how far it is")]

use std::process::{Command, Stdio};

use serde_json::Value;

/// Says to a process how many rounds it is to do: it measures, and prints lines of JSON.
pub const ROUNDS: &str = "--rounds-here";

/// Processes to share rounds between.
const PROCESSES: usize = 16;

/// Has this program do so many rounds, shared between processes that are told `words` too. `take` is
/// given each line that they print, and returns `None` if it cannot read it.
///
/// # Errors
///
/// What became of a process, or what it printed that nobody can read.
pub fn ask(
    rounds: usize,
    words: &[&str],
    mut take: impl FnMut(Value) -> Option<()>,
) -> Result<(), String> {
    let processes = PROCESSES.min(rounds);
    for number in 0..processes {
        eprintln!("process {} of {processes} {}", number + 1, words.join(" "));
        // the first ones do what cannot be shared evenly
        let here = rounds / processes + usize::from(number < rounds % processes);
        for line in told(&here.to_string(), words)?.lines() {
            let read = serde_json::from_str(line).ok();
            read.and_then(&mut take)
                .ok_or_else(|| format!("a measuring process answered {line:?}"))?;
        }
    }
    Ok(())
}

fn told(rounds: &str, words: &[&str]) -> Result<String, String> {
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

/// Counts the instructions of this program under `valgrind`, when it is told `words`: the same on a busy
/// machine. With `inside`, only those of the functions whose names fit this pattern.
///
/// # Errors
///
/// What `valgrind` said instead of a count.
pub fn instructions(inside: Option<&str>, words: &[&str]) -> Result<u64, String> {
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(inside.map(|pattern| format!("--toggle-collect={pattern}")))
        .arg(this_program()?)
        .arg("--bench")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|fault| format!("valgrind: {fault}"))?;
    let told = String::from_utf8_lossy(&done.stderr);
    let collected = told
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    collected
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("valgrind counted nothing:\n{told}"))
}

fn this_program() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|fault| fault.to_string())
}
