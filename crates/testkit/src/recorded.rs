//! Recorded data: beside the checkout, or of this crate.

use std::path::{Path, PathBuf};

/// Reads a file, and returns its name and text. Where none is given, that is `shared` beside the
/// checkout, or `own` in the data of this crate where there is none.
///
/// # Errors
///
/// The name of the file, and why it cannot be read.
pub fn read(file: Option<PathBuf>, shared: &str, own: &str) -> Result<(String, String), String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = here.join("../../../shared").join(shared);
    let file = match file {
        Some(file) => file,
        None if shared.exists() => shared,
        None => here.join("data").join(own),
    };
    let text = std::fs::read_to_string(&file);
    let file = file.display().to_string();
    let text = text.map_err(|error| format!("{file}: {error}"))?;
    Ok((file, text))
}
