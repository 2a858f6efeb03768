//! The names of the files of a log: the active `audit.jsonl`, and the closed `audit.000001.jsonl`
//! and so on.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of a closed file.
pub(crate) fn closed(active: &Path, number: u64) -> PathBuf {
    before_extension(active, &format!(".{number:06}"))
}

/// Returns the existing closed files, by number.
///
/// # Errors
///
/// If the folder cannot be read.
pub(crate) fn all_closed(active: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder(active))? {
        let name = entry?.file_name();
        if let Some(number) = number_in(Path::new(&name))
            && closed(active, number).file_name() == Some(&name)
        {
            found.push((number, closed(active, number)));
        }
    }
    found.sort_unstable();
    Ok(found)
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

/// Inserts a text before the extension of a file name.
pub(crate) fn before_extension(path: &Path, text: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(text);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_files_are_found_among_others() {
        let folder = tempfile::tempdir().unwrap();
        let active = folder.path().join("audit.jsonl");
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
        let found = all_closed(&active).unwrap();
        let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [2, 10, 1_000_000]);
        assert!(found.iter().all(|(_, path)| path.exists()));
        assert_eq!(number_in(&found[0].1), Some(2));
        assert_eq!(number_in(&active), None);
    }

    #[test]
    fn names_are_made_beside_that_of_the_active_file() {
        for (active, seventh) in [
            ("/log/a.b.jsonl", "/log/a.b.000007.jsonl"),
            ("audit", "audit.000007"),
        ] {
            assert_eq!(closed(Path::new(active), 7), Path::new(seventh));
            assert_eq!(number_in(Path::new(seventh)), Some(7));
        }
    }
}
