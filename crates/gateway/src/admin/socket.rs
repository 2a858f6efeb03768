//! The admin listener as a Unix socket.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixSocket, UnixStream};

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 128;

/// A socket that its owner alone may connect to. Dropping it removes its file.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Listens, also where a process that was killed left its socket.
    pub(crate) async fn bind(path: &Path) -> io::Result<Self> {
        let socket = UnixSocket::new_stream()?;
        if let Err(error) = socket.bind(path) {
            if error.kind() != io::ErrorKind::AddrInUse {
                return Err(error);
            }
            remove_stale(path).await?;
            socket.bind(path)?;
        }
        // before `listen`: no client can connect until then
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self {
            listener: socket.listen(BACKLOG)?,
            path: path.to_owned(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
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

impl axum::serve::Listener for Socket {
    type Io = UnixStream;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        axum::serve::Listener::accept(&mut self.listener).await
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_its_owner_s_replaces_a_stale_one_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("admin.sock");
        let socket = Socket::bind(&path).await.unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let taken = Socket::bind(&path).await.err().unwrap();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());

        // one that was killed leaves its file
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        drop(Socket::bind(&path).await.unwrap());

        std::fs::write(&path, "a file").unwrap();
        assert!(Socket::bind(&path).await.is_err());
        assert!(path.exists());
    }
}
