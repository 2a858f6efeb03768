//! The running gateways of this user, for the command line to find, and the token of each.
//!
//! Each writes one file with mode 0600 into the state directory, and keeps it locked: a lock ends
//! with its process, whatever ends that, and no process id is mistaken for that of another program.
//! The token is in the file with the address, so that it is sent to no other address.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use scopeguard::{ScopeGuard, guard};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::AppError;
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
    /// What the admin listener asks for; none if only this user can connect.
    pub(crate) token: Option<Token>,
    /// The file itself, where it was read.
    #[serde(skip)]
    pub(crate) file: PathBuf,
}

/// A credential for an admin listener. Debug does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token(pub(crate) String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = self.config.as_deref();
        let config = config.unwrap_or_else(|| Path::new("no config file"));
        let (admin, pid) = (&self.admin, self.pid);
        write!(f, "--url {admin}  (pid {pid}, {})", config.display())
    }
}

/// Keeps the file of a running gateway. Dropping it removes the file.
pub(crate) type Registration = ScopeGuard<(PathBuf, File), fn((PathBuf, File))>;

/// Writes the file, readable by its owner only, and removes files of processes that ended.
///
/// # Errors
///
/// If the state directory cannot be written.
pub(crate) fn register(state: &StateDir, gateway: &Gateway) -> io::Result<Registration> {
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
    // the file is held for its lock
    let remove: fn(_) = |(path, _file)| std::fs::remove_file::<PathBuf>(path).unwrap_or_default();
    Ok(guard((path, file), remove))
}

/// Returns the gateways that are running, those started first at the front. Files of processes that
/// ended are removed.
pub(crate) fn gateways(state: &StateDir) -> Vec<Gateway> {
    let entries = std::fs::read_dir(state.path(FOLDER));
    let files = entries.into_iter().flatten().flatten();
    let mut found: Vec<_> = files
        .filter(|file| file.path().extension().is_some_and(|end| end == "json"))
        .filter_map(|file| {
            let gateway = running(file.path())?;
            let written = file.metadata().and_then(|file| file.modified()).ok();
            Some((written, gateway))
        })
        .collect();
    found.sort_by_key(|(written, gateway)| (*written, gateway.pid));
    found.into_iter().map(|(_, gateway)| gateway).collect()
}

/// Returns the token of the running gateway with this admin address. `None` if there is none, or it
/// has none.
///
/// # Errors
///
/// [`AppError`] if other users may read the file with the token.
pub(crate) fn token(state: &StateDir, admin: &str) -> Result<Option<Token>, AppError> {
    let admin = Url::parse(admin).ok();
    let mut running = gateways(state).into_iter();
    let Some(found) = running.find(|one| Url::parse(&one.admin).ok() == admin) else {
        return Ok(None);
    };
    #[cfg(unix)]
    if let (Some(_), Ok(file)) = (&found.token, std::fs::metadata(&found.file)) {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            let path = found.file.display();
            return Err(AppError::Remote(format!(
                "{path}: other users may read or write this file, which has the admin token (mode \
                 {mode:03o}); run `chmod 600 {path}`, and restart the gateway, which makes a token"
            )));
        }
    }
    Ok(found.token)
}

/// Reads one file; `None` if its process has ended, or if it cannot be read.
fn running(path: PathBuf) -> Option<Gateway> {
    let file = File::open(&path).ok()?;
    match file.try_lock() {
        Ok(()) => {
            let _ = std::fs::remove_file(path);
            None
        }
        // running; or, without locks on this file system, all that is known is that it is there
        Err(_) => {
            let mut gateway: Gateway = serde_json::from_reader(&file).ok()?;
            gateway.file = path;
            Some(gateway)
        }
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
            token: Some(Token(format!("secret {pid}"))),
            file: PathBuf::new(),
        }
    }

    #[test]
    fn a_new_gateway_removes_files_of_processes_that_ended() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(&place.path().join("state"))).unwrap();
        drop(register(&state, &gateway(3)).unwrap());
        let left = state.path(FOLDER).join("1-00000000.json");
        std::fs::write(&left, serde_json::to_vec(&gateway(1)).unwrap()).unwrap();
        // other files are not listed
        let odd = state.path(FOLDER).join("odd.json");
        std::fs::write(&odd, "{}").unwrap();
        let held = File::open(&odd).unwrap();
        held.lock_shared().unwrap();
        assert_eq!(gateways(&state), []);
        assert!(!left.exists());
        let running = register(&state, &gateway(2)).unwrap();
        let file = running.0.clone();
        let two = Gateway { file, ..gateway(2) };
        assert_eq!(gateways(&state), [two]);
        #[cfg(unix)]
        for (path, expected) in [(&running.0, 0o600), (&state.path(FOLDER), 0o700)] {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, expected, "for its owner only");
        }
        let of = |admin: &str| token(&state, admin);
        let theirs = of("http://127.0.0.1:2/").unwrap();
        assert_eq!(theirs, gateway(2).token);
        assert_eq!(of("http://127.0.0.1:1").unwrap(), None);
        assert!(!format!("{:?}", gateway(2)).contains("secret"));
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
            std::fs::set_permissions(&running.0, mode).unwrap();
            let said = of("http://127.0.0.1:2").unwrap_err().to_string();
            assert!(
                said.contains("(mode 640)") && said.contains("`chmod 600 "),
                "{said}"
            );
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
