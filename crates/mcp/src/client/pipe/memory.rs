//! How much memory the processes of a server hold.

/// More processes of one server than this are not looked at.
#[cfg(target_os = "linux")]
const MOST: usize = 256;

/// Returns the resident memory of a process and of all that it started, in bytes; `None` where the
/// system does not tell.
#[cfg(target_os = "linux")]
pub(in crate::client) fn of_tree(root: u32) -> Option<u64> {
    let mut total = None;
    let mut waiting = vec![root];
    for _ in 0..MOST {
        let Some(process) = waiting.pop() else {
            break;
        };
        if let Some(bytes) = resident(process) {
            *total.get_or_insert(0) += bytes;
        }
        waiting.extend(children(process));
    }
    total
}

#[cfg(not(target_os = "linux"))]
pub(in crate::client) const fn of_tree(_: u32) -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(target_os = "linux")]
fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        // it has ended, or the system does not report it
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(
            text.split_whitespace()
                .filter_map(|id| id.parse::<u32>().ok()),
        );
    }
    found
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_memory_and_one_that_is_gone_none() {
        assert!(of_tree(std::process::id()).is_some_and(|bytes| bytes > 64 * 1024));
        assert_eq!(of_tree(u32::MAX), None);
    }
}
