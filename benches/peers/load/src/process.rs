//! What a process and all its children take, from `/proc`.

use std::collections::HashMap;
use std::fs;

use serde::Serialize;

/// Of a process and its children, as long as they live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Time on a processor since its start, in seconds, by the kernel's ticks of 10 ms.
    pub cpu_seconds: f64,
    /// Memory that is held, in MiB. Pages that processes share count once for each.
    pub rss_mib: f64,
}

/// Linux says so to every program, on every machine: `sysconf(_SC_CLK_TCK)`.
const TICKS: f64 = 100.0;

impl Usage {
    /// Of this process and its children; `None` if the process or `/proc` does not exist.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let stats = stats();
        stats.get(&pid)?;
        let mut found = vec![pid];
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            let children = stats.iter().filter(|(_, stat)| stat.parent == parent);
            found.extend(children.map(|(pid, _)| *pid));
            next += 1;
        }
        let mut usage = Self::default();
        for pid in found {
            usage.cpu_seconds += stats
                .get(&pid)
                .map_or(0.0, |stat| stat.ticks as f64 / TICKS);
            usage.rss_mib += rss_kib(pid).unwrap_or(0.0) / 1024.0;
        }
        Some(usage)
    }
}

#[derive(Debug, PartialEq)]
struct Stat {
    parent: u32,
    ticks: u64,
}

fn stats() -> HashMap<u32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse(&line)?))
        })
        .collect()
}

/// A line of `/proc/PID/stat`. The name, in parentheses, may hold anything.
fn parse(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        ticks: number(11)? + number(12)?,
    })
}

fn rss_kib(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_shifts_nothing() {
        let line = "12 (a ) b) S 7 1 1 0 -1 4194560 100 0 0 0 31 11 0 0 20 0 1 0 1 1 1 1";
        assert_eq!(
            parse(line),
            Some(Stat {
                parent: 7,
                ticks: 42
            })
        );
        assert_eq!(parse("12 (a"), None);
    }

    #[test]
    fn this_process_takes_something() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.rss_mib > 0.5, "{usage:?}");
        assert_eq!(Usage::of(u32::MAX), None);
    }
}
