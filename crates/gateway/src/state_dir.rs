//! The folder for what outlives one run: which gateways are running, evidence about answers, the
//! names of tools, and what is approved of them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use callward::core::FingerprintKey;
use etcetera::base_strategy::{BaseStrategy, Xdg};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

/// The state directory. It is created when something is first written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// Returns the given directory, or else `callward` below the user's state folder
    /// (`$XDG_STATE_HOME`, by default `$HOME/.local/state`). `None` if neither is set: nothing is
    /// kept then.
    pub(crate) fn locate(given: Option<&Path>) -> Option<Self> {
        let has = |name| std::env::var_os(name).is_some();
        let users = || Some(Xdg::new().ok()?.state_dir()?.join("callward"));
        let users = || users().filter(|_| has("HOME") || has("XDG_STATE_HOME"));
        let root = given.map(Path::to_owned).or_else(users)?;
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

    /// Returns the same for a wrapped command in this folder.
    pub(crate) fn file_of_command(
        &self,
        folder: &str,
        command: &[String],
        kind: &str,
    ) -> Option<PathBuf> {
        let here = std::env::current_dir().ok()?;
        let mut text = here.into_os_string().into_encoded_bytes();
        for word in command {
            text.push(0);
            text.extend_from_slice(word.as_bytes());
        }
        self.file_of(folder, &text, kind)
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

/// Reads a file of JSON; `None` without one.
///
/// # Errors
///
/// What the system or the parser says.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match std::fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file of JSON as a whole. Once this returns, a crash does not lose it.
///
/// # Errors
///
/// What the system says.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(value)?;
    write_whole(path, |file| {
        file.write_all(&text).and_then(|()| file.sync_all())
    })?;
    Ok(())
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
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(path))?;
    write(file.as_file_mut())?;
    Ok(file.persist(path)?)
}
