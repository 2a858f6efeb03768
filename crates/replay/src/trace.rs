//! Recorded calls as a file: one JSON object a line, in the order of the calls of each session.
//!
//! | member | what | absent or `null` |
//! | --- | --- | --- |
//! | `tool` | the tool's name; the only member that must be there | an error |
//! | `args` | the arguments, any JSON | `{}` |
//! | `trace` | the recording the call is of | all calls without one are one recording |
//! | `session` | the conversation the call is of, a text or a number; so is `trace` | all calls of the trace are one session |
//! | `seq` | the call's place in its session, for people: the order of the lines counts | |
//! | `layer` | calls of a session with the same number were made at once | made after the one before |
//! | `result_sha1` | SHA-1 of the result, 40 hexadecimal digits | what came back is unknown |
//! | `result_bytes` | how long the result was | 1024 |
//! | `error` | whether the call failed; such a result is never kept | it did not |
//! | `write` | whether the call may have changed something | concluded from the name |
//! | `effect` | `read_only`, `idempotent`, `mutating` or `destructive` | what `write` says |
//! | `idempotent` | whether a second identical call changes nothing more | it may |
//! | `ttl_ms` | how long the result may be kept; 0: not at all | what the effect allows |
//! | `delivery` | how far a call got that had no answer: `not_sent`, `unknown` or `answered` | it was answered |
//! | `at_ms` | when the call began, in milliseconds since the recording did | the clock stands still |
//! | `duration_ms` | how long it took | unknown |
//! | `cache` | what a cache did while recording: `hit`, `joined` or `stale` means that no server worked | it ran |
//! | `set` | the replica set whose state the call reads or writes | the session has a world of its own |
//! | `principal` | on whose behalf the call was made | the session is one |
//!
//! Other members are ignored. A member twice, or one of the wrong type, makes a bad line.

mod digest;
mod member;
mod reader;

use std::borrow::Cow;
use std::fmt;

use callward_core::{Delivery, Effect, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::digest::{InvalidDigest, ResultDigest};
pub use self::reader::Calls;

/// One recorded call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedCall {
    /// The recording the call is of.
    #[serde(default, deserialize_with = "member::trace")]
    pub trace: String,
    /// The conversation the call is of.
    #[serde(default, deserialize_with = "member::session")]
    pub session: String,
    /// The call's place in its session.
    #[serde(
        default,
        deserialize_with = "member::seq",
        skip_serializing_if = "Option::is_none"
    )]
    pub seq: Option<u64>,
    /// The tool.
    #[serde(deserialize_with = "member::tool")]
    pub tool: ToolName,
    /// The arguments; `None` stands for `{}`.
    #[serde(default)]
    pub args: Option<Box<RawValue>>,
    /// What came back, as a digest.
    #[serde(default, deserialize_with = "member::result_sha1")]
    pub result_sha1: Option<ResultDigest>,
    /// How many bytes came back.
    #[serde(default, deserialize_with = "member::result_bytes")]
    pub result_bytes: Option<u64>,
    /// Whether the call failed.
    #[serde(default, deserialize_with = "member::error")]
    pub error: bool,
    /// Whether the call may have changed something.
    #[serde(
        default,
        deserialize_with = "member::write",
        skip_serializing_if = "Option::is_none"
    )]
    pub write: Option<bool>,
    /// What the call may have done to the world.
    #[serde(
        default,
        deserialize_with = "member::effect",
        skip_serializing_if = "Option::is_none"
    )]
    pub effect: Option<Effect>,
    /// Whether a second identical call changes nothing more.
    #[serde(
        default,
        deserialize_with = "member::idempotent",
        skip_serializing_if = "Option::is_none"
    )]
    pub idempotent: Option<bool>,
    /// How long the result may be kept, in milliseconds; 0: not at all.
    #[serde(
        default,
        deserialize_with = "member::ttl_ms",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// How far a call got that had no answer.
    #[serde(
        default,
        deserialize_with = "member::delivery",
        skip_serializing_if = "Option::is_none"
    )]
    pub delivery: Option<Delivery>,
    /// Calls of a session with the same number were made at once.
    #[serde(
        default,
        deserialize_with = "member::layer",
        skip_serializing_if = "Option::is_none"
    )]
    pub layer: Option<u64>,
    /// When the call began.
    #[serde(
        default,
        deserialize_with = "member::at_ms",
        skip_serializing_if = "Option::is_none"
    )]
    pub at_ms: Option<Millis>,
    /// How long it took.
    #[serde(
        default,
        deserialize_with = "member::duration_ms",
        skip_serializing_if = "Option::is_none"
    )]
    pub duration_ms: Option<Millis>,
    /// What a cache did with the call while it was recorded.
    #[serde(
        default,
        deserialize_with = "member::cache",
        skip_serializing_if = "Option::is_none"
    )]
    pub cache: Option<Cow<'static, str>>,
    /// The replica set whose state the call reads or writes.
    #[serde(
        default,
        deserialize_with = "member::set",
        skip_serializing_if = "Option::is_none"
    )]
    pub set: Option<String>,
    /// On whose behalf the call was made.
    #[serde(
        default,
        deserialize_with = "member::principal",
        skip_serializing_if = "Option::is_none"
    )]
    pub principal: Option<String>,
}

impl RecordedCall {
    /// Starts with a call of this tool of which nothing else is known.
    #[must_use]
    pub const fn new(tool: ToolName) -> Self {
        Self {
            trace: String::new(),
            session: String::new(),
            seq: None,
            tool,
            args: None,
            result_sha1: None,
            result_bytes: None,
            error: false,
            write: None,
            effect: None,
            idempotent: None,
            ttl_ms: None,
            delivery: None,
            layer: None,
            at_ms: None,
            duration_ms: None,
            cache: None,
            set: None,
            principal: None,
        }
    }

    /// Reads one line.
    ///
    /// # Errors
    ///
    /// [`BadLine`] names the member that is wrong.
    pub fn from_line(line: &[u8]) -> Result<Self, BadLine> {
        if !line.trim_ascii_start().starts_with(b"{") {
            // serde would read a list into a struct
            return Err(BadLine("is no JSON object".into()));
        }
        let call: Self = serde_json::from_slice(line).map_err(|error| BadLine::of(line, &error))?;
        let contradiction = match (call.write, call.effect) {
            (Some(write), Some(effect)) if write != effect.is_write() => {
                Some(format!("`write` is {write}, but `effect` is \"{effect}\""))
            }
            _ => None,
        };
        match contradiction {
            Some(reason) => Err(BadLine(reason)),
            None => Ok(call),
        }
    }

    /// Appends the call as one line, line end included.
    ///
    /// # Errors
    ///
    /// The serializer's error, if the call has no JSON form.
    pub fn write_line(&self, into: &mut Vec<u8>) -> serde_json::Result<()> {
        let start = into.len();
        serde_json::to_writer(&mut *into, self)?;
        for byte in into.iter_mut().skip(start) {
            // arguments stay as they are spelt, and a line end is white space in JSON
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

    /// Returns what the record says of the call's effect; `None` if it says nothing.
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

    /// Says whether a server worked for the call, as far as the record tells.
    #[must_use]
    pub fn ran(&self) -> bool {
        !matches!(self.cache.as_deref(), Some("hit" | "joined" | "stale"))
    }
}

/// A number of milliseconds, with a fraction: not negative, and finite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Millis(f64);

impl Millis {
    /// Takes a duration, to the microsecond.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds of centuries are below 2^53"
    )]
    pub const fn of(duration: std::time::Duration) -> Self {
        Self(duration.as_micros() as f64 / 1e3)
    }

    /// Returns the duration; what no clock can say is the longest that one can.
    #[must_use]
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::try_from_secs_f64(self.0 / 1e3)
            .map_or(LONGEST, |span| span.min(LONGEST))
    }
}

/// No recording is longer: adding two of these to a clock never overflows.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(10 * 365 * 24 * 3600);

impl TryFrom<f64> for Millis {
    type Error = String;

    fn try_from(millis: f64) -> Result<Self, String> {
        if millis.is_finite() && millis >= 0.0 {
            Ok(Self(millis))
        } else {
            Err(format!("{millis} is no time: expected a number from 0 up"))
        }
    }
}

impl From<Millis> for f64 {
    fn from(millis: Millis) -> Self {
        millis.0
    }
}

/// A line that is no recorded call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine(String);

impl BadLine {
    fn of(line: &[u8], error: &serde_json::Error) -> Self {
        if let Err(error) = std::str::from_utf8(line) {
            return Self(format!("is no UTF-8: {error}"));
        }
        // the parser counts lines of what it was given, and that is always one
        let said = error
            .to_string()
            .replace(" at line 1 column ", " at column ");
        Self(if error.is_data() {
            said
        } else {
            format!("is no JSON object: {said}")
        })
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadLine {}
