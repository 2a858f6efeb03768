//! The wire layer: JSON-RPC messages whose `params` and `result` stay raw bytes.
//!
//! A gateway must not change what it does not understand. So a message is parsed only as far as
//! routing needs it (id, method, the members of `_meta`), and everything else is a slice of its
//! buffer. [`object`] splices a changed name or `_meta` into those bytes; every other byte stays as
//! it is.
//!
//! Nothing here does I/O except `LineReader`, and nothing here knows tools.

mod error;
pub(crate) mod header;
mod id;
mod line;
mod long;
mod message;
pub(crate) mod meta;
pub mod object;
mod param_header;
mod skim;
pub(crate) mod tasks;
mod version;
pub(crate) mod write;

use std::str;

use serde::Deserialize;

pub use error::RpcError;
pub(crate) use error::code;
pub use id::RequestId;
pub use line::DEFAULT_MAX_LINE;
pub(crate) use line::{LineError, LineReader, flatten};
pub(crate) use long::{LONG_SIZE, LongMessages, SHORT};
pub use message::{InvalidMessage, Message};
pub(crate) use param_header::ParamHeaders;
pub(crate) use skim::Skipped;
pub use version::Era;
pub(crate) use version::known as known_version;
pub(crate) use version::{KNOWN_VERSIONS, LATEST, LATEST_LEGACY};

/// Parses JSON. The text is checked for UTF-8 once: `from_slice` checks each string and each raw
/// value again, and these nest.
fn from_json<'a, T: Deserialize<'a>>(raw: &'a [u8]) -> serde_json::Result<T> {
    match str::from_utf8(raw) {
        Ok(text) => serde_json::from_str(text),
        // says where the text is invalid
        Err(_) => serde_json::from_slice(raw),
    }
}
