//! API keys: random secrets of which a file has the SHA-256.
//!
//! A key has 256 random bits, so a plain hash is enough: no one can try all of them, and a slow
//! hash would only cost each request. [`KeyFile`] is the file, for commands that change it;
//! [`Keys`] is what a running gateway knows of it.

mod entry;
mod file;
mod known;
mod secret;

pub use entry::{KeyEntry, NewKey, Timestamp};
pub use file::{KeyError, KeyFile};
pub use known::Keys;
pub use secret::Secret;
