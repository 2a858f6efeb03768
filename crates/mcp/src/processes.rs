//! The processes below one of ours, as the kernel lists them. Linux only.

#[cfg(target_os = "linux")]
pub(crate) use linux::Processes;

/// Returns the resident memory of each of these processes and of all that it started, in bytes;
/// nothing where the system does not tell.
pub(crate) fn memory_of(roots: &[Option<u32>]) -> Vec<Option<u64>> {
    #[cfg(target_os = "linux")]
    if roots.iter().any(Option::is_some) {
        let all = Processes::list();
        return roots.iter().map(|root| all.memory((*root)?)).collect();
    }
    vec![None; roots.len()]
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;

    use rustix::process::Pid;

    /// The children of each process.
    pub(crate) struct Processes(HashMap<i32, Vec<i32>>);

    impl Processes {
        pub(crate) fn list() -> Self {
            let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
            for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
                let name = process.file_name();
                let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                    continue;
                };
                // one that cannot be read has just ended
                let parent = status(id, "PPid:").and_then(|parent| parent.parse().ok());
                if let Some(parent) = parent {
                    children.entry(parent).or_default().push(id);
                }
            }
            Self(children)
        }

        /// Returns all processes below `root`, parents before their children.
        pub(crate) fn below(&self, root: Pid) -> Vec<Pid> {
            let mut found = vec![root];
            let mut at = 0;
            while let Some(process) = found.get(at).copied() {
                let children = self.0.get(&process.as_raw_nonzero().get());
                for child in children.into_iter().flatten() {
                    // read in pieces, and with a process id used again, it could be circular
                    let child = Pid::from_raw(*child);
                    found.extend(child.filter(|child| !found.contains(child)));
                }
                at += 1;
            }
            found.split_off(1)
        }

        pub(super) fn memory(&self, root: u32) -> Option<u64> {
            let root = Pid::from_raw(root.try_into().ok()?)?;
            let all = std::iter::once(root).chain(self.below(root));
            all.filter_map(resident).reduce(u64::saturating_add)
        }
    }

    /// Reads a line of `/proc/PID/status`.
    fn status(process: i32, name: &str) -> Option<String> {
        // a program chooses its name, which may have any bytes but no line break
        let status = std::fs::read(format!("/proc/{process}/status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().to_owned())
    }

    fn resident(process: Pid) -> Option<u64> {
        let kilobytes = status(process.as_raw_nonzero().get(), "VmRSS:")?;
        let kilobytes: u64 = kilobytes.strip_suffix(" kB")?.parse().ok()?;
        kilobytes.checked_mul(1024)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_parent_is_read_whatever_the_process_is_called() {
            let name = c"(a) b\nPPid: 1";
            std::thread::spawn(move || {
                rustix::thread::set_name(name).unwrap();
                let own = rustix::thread::gettid().as_raw_nonzero().get();
                let parent = rustix::process::getppid().unwrap();
                let read = status(own, "PPid:").unwrap();
                assert_eq!(read, parent.as_raw_nonzero().to_string());
                assert_eq!(status(own, "None:"), None);
            })
            .join()
            .unwrap();
        }

        #[test]
        fn all_below_a_process_are_found_once_and_no_others() {
            let pid = |id| Pid::from_raw(id).unwrap();
            let processes = Processes(HashMap::from([
                (1, vec![2, 10]),
                (2, vec![3, 4]),
                (4, vec![5]),
                // as a list may show that was read while processes came and went
                (5, vec![2, 4]),
                (10, vec![11]),
            ]));
            assert_eq!(processes.below(pid(2)), [3, 4, 5].map(pid));
            assert_eq!(processes.below(pid(11)), []);
        }
    }
}
