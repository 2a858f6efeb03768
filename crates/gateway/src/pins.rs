//! What is approved of tools, kept from one run to the next.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use callward::registry::{Hold, PinStore, Pins, ReviewOptions};

use crate::config::Config;
use crate::error::AppError;
use crate::state_dir::{read_json, write_json};

/// The file of one config, or of one wrapped command.
#[derive(Debug)]
struct PinFile(PathBuf);

impl PinStore for PinFile {
    fn save(&self, pins: &Pins) -> io::Result<()> {
        write_json(&self.0, pins)
    }
}

/// Reads what is approved from a file, and has it written there if it `keeps` changes. Without a
/// file, each start approves what servers list first.
///
/// # Errors
///
/// [`AppError`] if the file is damaged: what servers list now is not approved because of that.
pub(crate) fn open(
    config: &Config,
    file: Option<PathBuf>,
    hold: Hold,
    keeps: bool,
) -> Result<ReviewOptions, AppError> {
    let mut review = ReviewOptions::default();
    review.hold = hold;
    review.new_tools = config.discovery.hold_new_tools;
    if let Some(file) = file {
        let pins = read_json(&file).map_err(|error| {
            let file = file.display();
            AppError::Usage(format!(
                "{file}, which has the approved definitions of tools, cannot be read: {error}; \
                 restore it, or delete it to approve what the servers list now"
            ))
        })?;
        review.pins = pins.unwrap_or_default();
        review.store = keeps.then(|| Arc::new(PinFile(file)) as Arc<dyn PinStore>);
    }
    Ok(review)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pins.json");
        let config = Config::without_file(Vec::new());
        let open = || open(&config, Some(file.clone()), Hold::Changes, true);
        let review = open().unwrap();
        assert_eq!(review.pins, Pins::default());
        review.store.unwrap().save(&review.pins).unwrap();
        open().unwrap();
        for text in ["", "{", "[]", r#"{"s": {"servers": []}}"#] {
            std::fs::write(&file, text).unwrap();
            let error = open().unwrap_err().to_string();
            assert!(
                error.contains("pins.json") && error.contains("delete it"),
                "{error}"
            );
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
