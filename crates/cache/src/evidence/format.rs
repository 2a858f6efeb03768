//! The evidence file: JSON lines, one for each subject, between a header and a checksum.

use std::time::Duration;

use callward_core::FingerprintKey;
use serde::{Deserialize, Serialize};

use super::registry::Subject;
use super::tool::SavedEvidence;

const FORMAT: &str = "callward-evidence";
const VERSION: u32 = 1;

/// All evidence at one time.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) secret: (u64, u64),
    /// When it was taken, since 1970.
    pub(super) saved: Duration,
    /// The most recently used last.
    pub(super) tools: Vec<(Subject, SavedEvidence)>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    secret: (u64, u64),
    saved_ms: u64,
}

impl Snapshot {
    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = Vec::new();
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            secret: self.secret,
            saved_ms: u64::try_from(self.saved.as_millis()).unwrap_or(u64::MAX),
        };
        serde_json::to_writer(&mut text, &header)?;
        text.push(b'\n');
        for tool in &self.tools {
            serde_json::to_writer(&mut text, tool)?;
            text.push(b'\n');
        }
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
        let invalid = |line: usize, error| format!("line {line}: {error}");
        let mut lines = body.split_inclusive(|byte| *byte == b'\n');
        let header: Header = serde_json::from_slice(lines.next().unwrap_or_default())
            .map_err(|error| invalid(1, error))?;
        let (format, version) = (header.format, header.version);
        if format != FORMAT || version != VERSION {
            return Err(format!(
                "it is {format:?} version {version}, not {FORMAT:?} version {VERSION}"
            ));
        }
        let tools = lines.zip(2..).map(|(line, number)| {
            serde_json::from_slice(line).map_err(|error| invalid(number, error))
        });
        Ok(Self {
            secret: header.secret,
            saved: Duration::from_millis(header.saved_ms),
            tools: tools.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the last line of a file that begins with `body`. It protects against accidents, not
/// forgery: a process that can write the file can write any evidence.
pub(super) fn checksum_line(body: &[u8]) -> String {
    let checksum = FingerprintKey::fixed().bytes(body);
    format!("{{\"checksum\":\"{checksum}\"}}\n")
}
