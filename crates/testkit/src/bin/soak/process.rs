//! What a process holds, as Linux tells it.

use std::fs;

use tokio::process::Command;

use crate::programs::{NOTES, RELAY};

/// What a process holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) kilobytes: u64,
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
    pub(crate) children: u64,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let digits = line.and_then(|line| line.split_whitespace().next());
            digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count) as u64;
        Self {
            kilobytes: number("VmRSS:"),
            descriptors,
            threads: number("Threads:"),
            children: descendants(pid).len() as u64,
        }
    }
}

/// Returns the processes below one.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(above) = found.get(at).copied() {
        let below = parents.iter().filter(|(_, parent)| *parent == above);
        found.extend(below.map(|(pid, _)| *pid));
        at += 1;
    }
    found.remove(0);
    found
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name in brackets may have blanks
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// Returns `true` if a process is a server of ours.
pub(crate) fn is_ours(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
        let first = line.split(|byte| *byte == 0).nth(1);
        first == Some(NOTES.as_bytes()) || first == Some(RELAY.as_bytes())
    })
}

/// Sends a signal; returns `true` if it was sent.
pub(crate) async fn kill(pid: u32, signal: &str) -> bool {
    let pid = pid.to_string();
    let killed = Command::new("kill").args([signal, &pid]).status().await;
    killed.is_ok_and(|status| status.success())
}
