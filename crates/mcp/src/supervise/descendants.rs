//! All processes below this one, as the kernel lists them.

use std::collections::HashMap;

use rustix::process::{Pid, Signal};

/// Sends a signal to every process below this one.
pub(super) fn signal(signal: Signal) {
    for process in of(rustix::process::getpid(), &parents()) {
        // it has ended meanwhile, or belongs to another user: either way nothing is left to do
        let _ = rustix::process::kill_process(process, signal);
    }
}

/// Returns the children of each process.
fn parents() -> HashMap<i32, Vec<i32>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return children;
    };
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // one that cannot be read has just ended
        let stat = std::fs::read(process.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(id);
        }
    }
    children
}

/// Reads the parent from `/proc/PID/stat`: `PID (NAME) STATE PARENT ...`, where the name may hold
/// anything.
fn parent(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns all processes below `root`, parents before their children.
fn of(root: Pid, children: &HashMap<i32, Vec<i32>>) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut next = vec![root.as_raw_nonzero().get()];
    while let Some(process) = next.pop() {
        for child in children.get(&process).into_iter().flatten() {
            // the list was read in pieces: a reused process id could make it circular
            let known = |pid: &Pid| pid.as_raw_nonzero().get() == *child;
            if let Some(pid) = Pid::from_raw(*child)
                && pid != root
                && !found.iter().any(known)
            {
                found.push(pid);
                next.push(*child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_whatever_the_process_is_called() {
        for (stat, expected) in [
            (&b"12 (sh) S 7 12 12 0 -1"[..], Some(7)),
            (b"12 (a) b) R 3) (x) S 8 1", Some(8)),
            (b"12 (\xff \n) S 9 1", Some(9)),
            (b"12 (sh)", None),
            (b"12 (sh) S x", None),
            (b"", None),
        ] {
            assert_eq!(parent(stat), expected, "{stat:?}");
        }
    }

    #[test]
    fn all_below_a_process_are_found_once_and_no_others() {
        let pid = |id| Pid::from_raw(id).unwrap();
        let children = HashMap::from([
            (1, vec![2, 10]),
            (2, vec![3, 4]),
            (4, vec![5]),
            // as a list may show that was read while processes came and went
            (5, vec![2, 4]),
            (10, vec![11]),
        ]);
        let mut found = of(pid(2), &children);
        found.sort_by_key(|pid| pid.as_raw_nonzero());
        assert_eq!(found, [3, 4, 5].map(pid));
        assert_eq!(of(pid(11), &children), []);
    }
}
