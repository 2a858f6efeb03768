//! The running gateways of this user, for the command line to find.
//!
//! Each writes one file into the state directory, and keeps it locked: a lock ends with its
//! process, whatever ends that, and no process id is mistaken for that of another program.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::state_dir::{StateDir, create_private, write_whole};

/// The folder of the files in the state directory.
const FOLDER: &str = "gateways";

/// What is written about one running gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gateway {
    pub(crate) pid: u32,
    /// `http://HOST:PORT` or `unix:/PATH`.
    pub(crate) admin: String,
    /// The URL of the MCP endpoint.
    pub(crate) public: String,
    /// The config file, as an absolute path without links; none if it runs without one.
    pub(crate) config: Option<PathBuf>,
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, admin, .. } = self;
        write!(f, "--url {admin}  (pid {pid}, ")?;
        match &self.config {
            Some(config) => write!(f, "{})", config.display()),
            None => f.write_str("no config file)"),
        }
    }
}

/// Keeps the file of a running gateway. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Registration {
    path: PathBuf,
    /// Held for its lock.
    _file: File,
}

impl Registration {
    /// Writes the file, readable by its owner only, and removes files of processes that ended.
    ///
    /// # Errors
    ///
    /// If the state directory cannot be written.
    pub(crate) fn new(state: &StateDir, gateway: &Gateway) -> io::Result<Self> {
        let folder = state.path(FOLDER);
        create_private(&folder)?;
        let _ = gateways(state);
        // containers that share a home directory may share process ids, too
        let path = folder.join(format!("{}-{:08x}.json", gateway.pid, fastrand::u32(..)));
        // locked before it has its name: without a lock it would look stale
        let file = write_whole(&path, |file| {
            file.lock_shared()?;
            file.write_all(&serde_json::to_vec(gateway)?)
        })?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the gateways that are running, those started first at the front. Files of processes that
/// ended are removed.
pub(crate) fn gateways(state: &StateDir) -> Vec<Gateway> {
    let Ok(entries) = std::fs::read_dir(state.path(FOLDER)) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let path = entry.path();
            let is_one = path.extension().is_some_and(|end| end == "json");
            let gateway = is_one.then(|| running(&path)).flatten()?;
            Some((
                entry.metadata().and_then(|file| file.modified()).ok(),
                gateway,
            ))
        })
        .collect();
    found.sort_by_key(|(written, gateway)| (*written, gateway.pid));
    found.into_iter().map(|(_, gateway)| gateway).collect()
}

/// Reads one file; `None` if its process has ended, or if it cannot be read.
fn running(path: &Path) -> Option<Gateway> {
    let file = File::open(path).ok()?;
    match file.try_lock() {
        Ok(()) => {
            let _ = std::fs::remove_file(path);
            None
        }
        // running; or, without locks on this file system, all that is known is that it is there
        Err(_) => serde_json::from_reader(&file).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(pid: u32) -> Gateway {
        Gateway {
            pid,
            admin: format!("http://127.0.0.1:{pid}"),
            public: format!("http://127.0.0.1:1{pid}/mcp"),
            config: None,
        }
    }

    #[test]
    fn a_new_gateway_removes_files_of_processes_that_ended() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(place.path())).unwrap();
        std::fs::create_dir(state.path(FOLDER)).unwrap();
        let left = state.path(FOLDER).join("1-00000000.json");
        std::fs::write(&left, serde_json::to_vec(&gateway(1)).unwrap()).unwrap();
        let running = Registration::new(&state, &gateway(2)).unwrap();
        assert!(!left.exists());
        assert!(running.path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn the_file_and_its_folder_are_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;

        let place = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(&place.path().join("state"))).unwrap();
        let registered = Registration::new(&state, &gateway(1)).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&registered.path), 0o600);
        assert_eq!(mode(&state.path(FOLDER)), 0o700);
    }

    #[test]
    fn what_is_no_such_file_is_not_listed() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(place.path())).unwrap();
        std::fs::create_dir(state.path(FOLDER)).unwrap();
        let odd = state.path(FOLDER).join("odd.json");
        std::fs::write(&odd, "{}").unwrap();
        let held = File::open(&odd).unwrap();
        held.lock_shared().unwrap();
        assert_eq!(gateways(&state), []);
    }
}
