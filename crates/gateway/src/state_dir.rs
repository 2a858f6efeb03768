//! The folder for what outlives one run: which gateways are running, evidence about answers, and
//! the names of tools.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use callward::core::FingerprintKey;

/// The state directory. It is created when something is first written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// Returns the given directory, or else `callward` below the user's state folder
    /// (`$XDG_STATE_HOME`, by default `~/.local/state`). `None` if there is no home directory
    /// either: nothing is kept then.
    pub(crate) fn locate(given: Option<&Path>) -> Option<Self> {
        Self::locate_in(given, |name| std::env::var_os(name))
    }

    fn locate_in(given: Option<&Path>, var: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        // the XDG specification has relative paths ignored, and they would change with the folder
        let absolute = |name| {
            var(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let root = match given {
            Some(given) => given.to_owned(),
            None => absolute("XDG_STATE_HOME")
                .or_else(|| Some(absolute(HOME)?.join(".local").join("state")))?
                .join("callward"),
        };
        Some(Self { root })
    }

    /// Returns the path of a file or folder in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the path of a file for `what`, and creates its folder in the directory. `None` if it
    /// cannot be created: nothing is kept between runs then.
    pub(crate) fn file_of(&self, folder: &str, what: &[u8], kind: &str) -> Option<PathBuf> {
        let path = self.path(folder);
        if let Err(error) = create_private(&path) {
            tracing::warn!(%error, "`{folder}` cannot be created: nothing of it is kept between runs");
            return None;
        }
        let name = FingerprintKey::fixed().bytes(what);
        Some(path.join(format!("{name:032x}.{kind}")))
    }

    /// Returns the same for a config file.
    pub(crate) fn file_of_config(
        &self,
        folder: &str,
        config: &Path,
        kind: &str,
    ) -> Option<PathBuf> {
        let config = config.canonicalize().ok()?;
        self.file_of(folder, config.as_os_str().as_encoded_bytes(), kind)
    }
}

/// Creates a folder and its parents where they are missing, on Unix with access for the owner only.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a file under another name first, and then gives it its own: readers see all of it, also
/// where several processes write.
///
/// # Errors
///
/// What the system says; then there is no file under the other name.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<File> {
    let unfinished = path.with_extension(format!("{:08x}.tmp", fastrand::u32(..)));
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    let written = write(&mut file).and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written.map(|()| file)
}

#[cfg(windows)]
const HOME: &str = "USERPROFILE";
#[cfg(not(windows))]
const HOME: &str = "HOME";

#[cfg(test)]
mod tests {
    use super::*;

    fn located(given: Option<&str>, xdg: &str, home: &str) -> Option<PathBuf> {
        let var = |name: &str| match name {
            "XDG_STATE_HOME" => Some(xdg.into()),
            HOME => Some(home.into()),
            _ => None,
        };
        let dir = StateDir::locate_in(given.map(Path::new), var)?;
        Some(dir.path("x"))
    }

    #[cfg(unix)]
    #[test]
    fn the_option_wins_then_xdg_then_the_home_directory() {
        for (given, xdg, home, want) in [
            (Some("/given"), "/xdg", "/home/a", Some("/given/x")),
            (Some("here"), "", "", Some("here/x")),
            (None, "/xdg", "/home/a", Some("/xdg/callward/x")),
            (None, "", "/home/a", Some("/home/a/.local/state/callward/x")),
            (
                None,
                "relative",
                "/home/a",
                Some("/home/a/.local/state/callward/x"),
            ),
            (None, "", "", None),
        ] {
            assert_eq!(located(given, xdg, home), want.map(PathBuf::from));
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_directory_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;

        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("a").join("b");
        let dir = StateDir::locate(Some(&root)).unwrap();
        assert!(!root.exists());
        // the second time it is there already
        for _ in 0..2 {
            create_private(&dir.path("")).unwrap();
            let mode = std::fs::metadata(&root).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }
}
