//! The admin listener as a Unix socket.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use scopeguard::{ScopeGuard, guard};
use tokio::net::{UnixListener, UnixSocket, UnixStream};

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 128;

/// The path of a socket. Dropping it removes the file.
pub(super) type SocketPath = ScopeGuard<PathBuf, fn(PathBuf)>;

/// Listens where the owner alone may connect, also where a process that was killed left its socket.
pub(super) async fn bind(path: &Path) -> io::Result<(UnixListener, SocketPath)> {
    let socket = UnixSocket::new_stream()?;
    if let Err(error) = socket.bind(path) {
        if error.kind() != io::ErrorKind::AddrInUse {
            return Err(error);
        }
        remove_stale(path).await?;
        socket.bind(path)?;
    }
    let remove: fn(PathBuf) = |path| std::fs::remove_file(path).unwrap_or_default();
    let bound = guard(path.to_owned(), remove);
    // before `listen`: no client can connect until then
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok((socket.listen(BACKLOG)?, bound))
}

async fn remove_stale(path: &Path) -> io::Result<()> {
    let in_use = |why| io::Error::new(io::ErrorKind::AddrInUse, why);
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(in_use("there is a file that is not a socket"));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Err(in_use("another process listens there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_its_owner_s_replaces_a_stale_one_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("admin.sock");
        let socket = bind(&path).await.unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let taken = bind(&path).await.err().unwrap();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());

        // one that was killed leaves its file
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        drop(bind(&path).await.unwrap());

        std::fs::write(&path, "a file").unwrap();
        assert!(bind(&path).await.is_err());
        assert!(path.exists());
    }
}
