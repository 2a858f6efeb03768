//! The evidence file: a line of JSON and a checksum.

use callward_core::FingerprintKey;
use serde::{Deserialize, Serialize};

use super::registry::Subject;
use super::tool::SavedEvidence;

const FORMAT: &str = "callward-evidence 1";

/// All evidence at one time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Snapshot {
    format: String,
    pub(super) secret: (u64, u64),
    /// When it was taken, in milliseconds since 1970.
    pub(super) saved_ms: u64,
    /// The most recently used last.
    pub(super) tools: Vec<(Subject, SavedEvidence)>,
}

impl Snapshot {
    pub(super) fn new(
        secret: (u64, u64),
        saved_ms: u64,
        tools: Vec<(Subject, SavedEvidence)>,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            secret,
            saved_ms,
            tools,
        }
    }

    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        let end = checksum_line(&text);
        text.extend_from_slice(end.as_bytes());
        Ok(text)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// What is wrong with it: it was cut or changed, or it is of another version.
    pub(super) fn decode(text: &[u8]) -> Result<Self, String> {
        let end = text.len().checked_sub(checksum_line(&[]).len());
        let split = end.and_then(|end| text.split_at_checked(end));
        let Some((body, _)) = split.filter(|(body, end)| *end == checksum_line(body).as_bytes())
        else {
            return Err("the checksum at its end is missing or wrong".to_owned());
        };
        let snapshot: Self = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        match snapshot.format.as_str() {
            FORMAT => Ok(snapshot),
            other => Err(format!("it is {other:?}, not {FORMAT:?}")),
        }
    }
}

/// Returns the last line of a file that begins with `body`. It protects against accidents, not
/// forgery: a process that can write the file can write any evidence.
pub(super) fn checksum_line(body: &[u8]) -> String {
    let checksum = FingerprintKey::fixed().bytes(body);
    format!("{{\"checksum\":\"{checksum}\"}}\n")
}
