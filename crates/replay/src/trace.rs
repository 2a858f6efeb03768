//! Recorded calls: one JSON object per line, in the order of the calls of each session.
//!
//! `docs/replay.md` documents all members. `tool` is required; `null` is the same as an absent
//! member; unknown members are ignored. A duplicate member or one of the wrong type makes the line
//! invalid: [`Calls`] returns an error with its number and continues with the next line.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use callward_core::{Delivery, Effect, ToolName};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{Lines, ReplayError};

/// One recorded call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a line is written whole")]
pub struct RecordedCall {
    /// The recording that the call belongs to.
    #[serde(default, deserialize_with = "name")]
    pub trace: String,
    /// The conversation that the call belongs to.
    #[serde(default, deserialize_with = "name")]
    pub session: String,
    /// The number of the call in its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The tool.
    pub tool: ToolName,
    /// The arguments; `None` stands for `{}`.
    pub args: Option<Box<RawValue>>,
    /// The SHA-1 of the result, as 40 lower-case hexadecimal digits.
    #[serde(default, deserialize_with = "sha1")]
    pub result_sha1: Option<String>,
    /// The length of the result in bytes.
    pub result_bytes: Option<u64>,
    /// `true` if the call failed.
    #[serde(default, deserialize_with = "flag")]
    pub error: bool,
    /// `true` if the call may have changed something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<bool>,
    /// The effect of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// `true` if a second identical call has no further effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// How long the result may be kept, in milliseconds; 0: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The delivery of a call without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Calls of a session with the same number were concurrent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<u64>,
    /// When the call began.
    #[serde(default, with = "millis", skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<Duration>,
    /// How long it took.
    #[serde(default, with = "millis", skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Duration>,
    /// The cache status of the call while it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cow<'static, str>>,
    /// The replica set whose state the call reads or writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The principal of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

impl RecordedCall {
    /// Parses one line.
    ///
    /// # Errors
    ///
    /// The problem, and its column.
    pub fn from_line(line: &[u8]) -> Result<Self, serde_json::Error> {
        if !line.trim_ascii_start().starts_with(b"{") {
            // serde would accept an array
            return Err(serde_json::Error::custom("not a JSON object"));
        }
        let call: Self = serde_json::from_slice(line)?;
        match (call.write, call.effect) {
            (Some(write), Some(effect)) if write != effect.is_write() => {
                let text = format!("`write` is {write}, but `effect` is \"{effect}\"");
                Err(serde_json::Error::custom(text))
            }
            _ => Ok(call),
        }
    }

    /// Appends the call as one line, including the line end.
    ///
    /// # Errors
    ///
    /// The serializer's error, if the call has no JSON form.
    pub fn write_line(&self, into: &mut Vec<u8>) -> serde_json::Result<()> {
        let start = into.len();
        serde_json::to_writer(&mut *into, self)?;
        for byte in into.iter_mut().skip(start) {
            // raw arguments may have line ends, which are white space in JSON
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        into.push(b'\n');
        Ok(())
    }

    /// Returns the arguments as raw JSON.
    #[must_use]
    pub fn arguments(&self) -> &str {
        self.args.as_ref().map_or("{}", |args| args.get())
    }

    /// Returns the recorded effect, or `None` if the line has no label.
    #[must_use]
    pub fn labelled(&self) -> Option<Effect> {
        match (self.effect, self.write, self.idempotent) {
            (Some(Effect::Mutating), _, Some(true)) => Some(Effect::Idempotent),
            (Some(effect), ..) => Some(effect),
            (None, Some(false), _) => Some(Effect::ReadOnly),
            (None, Some(true), Some(true)) => Some(Effect::Idempotent),
            (None, Some(true), _) => Some(Effect::Mutating),
            (None, None, _) => None,
        }
    }

    /// Returns `true` unless the line records that a cache answered the call.
    #[must_use]
    pub fn ran(&self) -> bool {
        !matches!(self.cache.as_deref(), Some("hit" | "joined" | "stale"))
    }
}

/// A time in milliseconds, to the microsecond: not negative, and at most ten years, so that the sum
/// of two never overflows a clock.
mod millis {
    use super::*;

    const MAX: f64 = 10.0 * 365.0 * 24.0 * 3600.0 * 1e3;

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        // microseconds of centuries are below 2^53
        time.map(|time| time.as_micros() as f64 / 1e3).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let duration = |millis: f64| {
            let known = Duration::try_from_secs_f64(millis.min(MAX) / 1e3);
            known.map_err(|_| D::Error::custom(format!("{millis} is negative: expected a time")))
        };
        Option::deserialize(from)?.map(duration).transpose()
    }
}

/// Accepts a string, a number or `null`.
fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a string or a number")]
    enum Name {
        Text(String),
        Number(serde_json::Number),
    }
    Ok(match Option::deserialize(from)? {
        None => String::new(),
        Some(Name::Text(text)) => text,
        Some(Name::Number(number)) => number.to_string(),
    })
}

fn sha1<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    if let Some(text) = &text
        && (text.len() != 40 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()))
    {
        let text = format!("{text:?} is not a SHA-1: expected 40 hexadecimal digits");
        return Err(D::Error::custom(text));
    }
    Ok(text.map(|text| text.to_ascii_lowercase()))
}

fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Reads the calls of a recording line by line. Blank lines are skipped.
///
/// Reading continues after an invalid line, and ends after a read error.
#[derive(Debug)]
pub struct Calls {
    lines: Lines,
    is_broken: bool,
}

/// Data without line ends is not a recording.
const MAX_LINE: usize = 64 << 20;

impl Calls {
    /// Opens a recording, compressed or not; `-` is standard input.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Open`] if the file cannot be opened or its first bytes cannot be read.
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        Ok(Self::of(Lines::open(path, MAX_LINE)?))
    }

    /// Reads from a reader; errors mention `name`.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Open`] if the first bytes cannot be read.
    pub fn from_reader(name: &str, reader: impl Read + 'static) -> Result<Self, ReplayError> {
        Ok(Self::of(Lines::from_reader(name, reader, MAX_LINE)?))
    }

    const fn of(lines: Lines) -> Self {
        Self {
            lines,
            is_broken: false,
        }
    }

    fn advance(&mut self) -> Result<Option<RecordedCall>, ReplayError> {
        loop {
            let Some(line) = self.lines.next_line()? else {
                return Ok(None);
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let read = RecordedCall::from_line(line.trim_ascii());
            return read.map(Some).map_err(|error| {
                // the parser only ever sees one line
                let text = error.to_string();
                self.lines
                    .fault(text.replace(" at line 1 column", " at column"))
            });
        }
    }
}

impl Iterator for Calls {
    type Item = Result<RecordedCall, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken {
            return None;
        }
        let next = self.advance();
        self.is_broken = matches!(&next, Err(error) if !matches!(error, ReplayError::Line { .. }));
        next.transpose()
    }
}

#[cfg(test)]
mod tests;
