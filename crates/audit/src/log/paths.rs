//! The names of the files of a log.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// The files of a log: the active `audit.jsonl`, and the closed `audit.000001.jsonl` and so on.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    pub(crate) active: PathBuf,
    pub(crate) lock: PathBuf,
    stem: OsString,
    extension: Option<OsString>,
}

impl Paths {
    pub(crate) fn new(active: &Path) -> Self {
        Self {
            lock: beside(active, ".lock"),
            stem: active.file_stem().unwrap_or_default().to_owned(),
            extension: active.extension().map(OsStr::to_owned),
            active: active.to_owned(),
        }
    }

    /// Returns the path of a closed file.
    pub(crate) fn closed(&self, number: u64) -> PathBuf {
        let mut name = self.stem.clone();
        name.push(format!(".{number:06}"));
        if let Some(extension) = &self.extension {
            name.push(".");
            name.push(extension);
        }
        self.active.with_file_name(name)
    }

    /// Returns the existing closed files, by number.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub(crate) fn all_closed(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder(&self.active))? {
            let name = entry?.file_name();
            if let Some(number) = self.number_of(&name) {
                found.push((number, self.closed(number)));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn number_of(&self, name: &OsStr) -> Option<u64> {
        let name = Path::new(name);
        if name.extension() != self.extension.as_deref() && self.extension.is_some() {
            return None;
        }
        let stem = match self.extension {
            Some(_) => Path::new(name.file_stem()?),
            None => name,
        };
        if stem.file_stem()? != self.stem {
            return None;
        }
        closed_number(stem.extension()?)
    }
}

/// Returns the number of a closed file of any log.
pub(crate) fn number_in(path: &Path) -> Option<u64> {
    let stem = Path::new(path.file_stem()?);
    let number = stem.extension().and_then(closed_number);
    // the number of a log without an extension is in its place
    number.or_else(|| path.extension().and_then(closed_number))
}

fn closed_number(text: &OsStr) -> Option<u64> {
    let text = text.to_str()?;
    let is_number = text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns the folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_files_are_found_among_others() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::new(&folder.path().join("audit.jsonl"));
        for name in [
            "audit.jsonl",
            "audit.000010.jsonl",
            "audit.000002.jsonl",
            "audit.1000000.jsonl",
            "audit.open-world.000003.jsonl",
            "audit.12.jsonl",
            "audit.000003.log",
            "other.000004.jsonl",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found: Vec<_> = paths.all_closed().unwrap();
        let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [2, 10, 1_000_000]);
        assert!(found.iter().all(|(_, path)| path.exists()));
        assert_eq!(number_in(&found[0].1), Some(2));
        assert_eq!(number_in(&paths.active), None);
    }

    #[test]
    fn a_log_without_an_extension_has_closed_files() {
        let paths = Paths::new(Path::new("/tmp/audit"));
        assert_eq!(paths.closed(7), Path::new("/tmp/audit.000007"));
        assert_eq!(paths.number_of(OsStr::new("audit.000007")), Some(7));
        assert_eq!(number_in(&paths.closed(7)), Some(7));
    }
}
