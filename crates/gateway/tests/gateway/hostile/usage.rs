//! What a process has taken of the system.

use std::fs;

/// Bytes and numbers of one process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// Bytes in memory.
    pub(super) resident: u64,
    /// The most there ever were.
    pub(super) peak: u64,
    /// Open files, sockets and pipes.
    pub(super) descriptors: usize,
    /// The process itself, and all that descend from it.
    pub(super) processes: usize,
}

impl Usage {
    pub(super) fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next());
            kib.unwrap().parse::<u64>().unwrap() * 1024
        };
        Self {
            resident: bytes("VmRSS:"),
            peak: bytes("VmHWM:"),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            processes: family(pid),
        }
    }
}

fn family(pid: u32) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let children: Vec<u32> = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            let pids = text.split_whitespace().map(|pid| pid.parse().unwrap());
            pids.collect::<Vec<_>>()
        })
        .collect();
    1 + children.into_iter().map(family).sum::<usize>()
}
