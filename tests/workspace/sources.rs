//! The files of the workspace.

use std::io;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a directory with this extension, as text; without build directories.
pub(crate) fn sources(directory: &Path, extension: &str) -> io::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with(['.', '_']) && name != "target" && name != "node_modules" {
                found.extend(sources(&path, extension)?);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            let text = std::fs::read_to_string(&path)?;
            found.push((path, text));
        }
    }
    Ok(found)
}
