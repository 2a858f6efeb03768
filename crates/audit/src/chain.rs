//! The hash chain over the lines of a log.

use std::fmt::{self, Write as _};

use callward_core::InvalidConfig;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::notes::Note;

/// A secret key for the hashes of a log: without it, no line can be forged.
#[derive(Clone, PartialEq, Eq)]
pub struct AuditKey(Box<[u8]>);

impl AuditKey {
    /// Creates a key from random bytes, typically 32.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] if there are fewer than 16.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Result<Self, InvalidConfig> {
        let bytes = bytes.into();
        if bytes.len() < 16 {
            let reason = "expected 16 bytes or more, drawn at random";
            return Err(InvalidConfig::new("key", reason));
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey(..)")
    }
}

/// The length of a hash: 64 lower-case hexadecimal digits.
pub(crate) const HASH_LEN: usize = 64;

/// Returns the `prev` of the first line of a log.
pub(crate) fn no_hash() -> String {
    "0".repeat(HASH_LEN)
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut hex, byte| {
        // writing into memory does not fail
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Computes the hashes.
#[derive(Debug, Clone)]
pub(crate) enum Seal {
    Plain,
    // boxed: two states of SHA-256 are large
    Keyed(Box<Hmac<Sha256>>),
}

impl Seal {
    pub(crate) fn new(key: Option<&AuditKey>) -> Self {
        let keyed = key.and_then(|key| Hmac::new_from_slice(&key.0).ok());
        // HMAC takes keys of every length
        keyed.map_or(Self::Plain, |mac| Self::Keyed(Box::new(mac)))
    }

    /// The name of the algorithm in the first line of a file.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Plain => "sha256",
            Self::Keyed(_) => "hmac-sha256",
        }
    }

    /// Seals a digest if there is a key: who does not have it cannot try what the digest is of.
    pub(crate) fn of_digest(&self, digest: &str) -> String {
        match self {
            Self::Plain => digest.to_owned(),
            Self::Keyed(_) => self.hash(digest.as_bytes()),
        }
    }

    pub(crate) fn hash(&self, bytes: &[u8]) -> String {
        match self {
            Self::Plain => hex(&Sha256::digest(bytes)),
            Self::Keyed(mac) => {
                let mut mac = Hmac::clone(mac);
                mac.update(bytes);
                hex(&mac.finalize().into_bytes())
            }
        }
    }
}

/// The end of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The number of the next line.
    pub(crate) seq: u64,
    /// The hash of the line before.
    pub(crate) prev: String,
}

impl Link {
    /// Appends a line. `members` are those of a JSON object, without its braces.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, seal: &Seal, time: &str, members: &str) {
        let mut line = format!("{{\"seq\":{},\"time\":\"{time}\",{members}", self.seq);
        line.extend([PREV, &self.prev, "\""]);
        let hash = seal.hash(line.as_bytes());
        line.extend([HASH, &hash, END, "\n"]);
        out.extend_from_slice(line.as_bytes());
        self.seq += 1;
        self.prev = hash;
    }
}

/// A parsed line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) seq: u64,
    pub(crate) time: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) prev: &'a str,
    pub(crate) hash: &'a str,
    /// The input of the hash.
    hashed: &'a str,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// Parses a line without its line feed. Returns `None` unless it has exactly the written form.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?;
        let (hashed, hash) = take_hash(text, HASH, END)?;
        let (rest, prev) = take_hash(hashed, PREV, "\"")?;
        let (seq, rest) = rest.strip_prefix("{\"seq\":")?.split_once(',')?;
        let (time, rest) = rest.strip_prefix("\"time\":\"")?.split_once('"')?;
        let (kind, _) = rest.strip_prefix(",\"kind\":\"")?.split_once('"')?;
        Some(Self {
            seq: seq.parse().ok()?,
            time,
            kind,
            prev,
            hash,
            hashed,
            text,
        })
    }

    /// Returns `true` if the hash matches the line.
    pub(crate) fn is_intact(&self, seal: &Seal) -> bool {
        seal.hash(self.hashed.as_bytes()) == self.hash
    }

    /// Parses a record of the log about itself.
    ///
    /// # Errors
    ///
    /// The problem.
    pub(crate) fn note(&self) -> Result<Note, String> {
        serde_json::from_str(self.text).map_err(|error| format!("invalid record: {error}"))
    }

    /// Returns the security level of the tool, of a record that a request for approval was made.
    ///
    /// # Errors
    ///
    /// The problem.
    pub(crate) fn requested(&self) -> Result<Option<String>, String> {
        #[derive(Deserialize)]
        struct Approval {
            outcome: String,
            // of a grant there is none
            security: Option<String>,
        }
        let approval: Approval =
            serde_json::from_str(self.text).map_err(|error| format!("invalid record: {error}"))?;
        Ok(approval.security.filter(|_| approval.outcome == "pending"))
    }

    /// Returns the end of the chain after this line.
    pub(crate) fn link(&self) -> Link {
        Link {
            seq: self.seq.saturating_add(1),
            prev: self.hash.to_owned(),
        }
    }
}

/// Splits `text` into what is before `name`, and the hash between `name` and `end`.
fn take_hash<'a>(text: &'a str, name: &str, end: &str) -> Option<(&'a str, &'a str)> {
    let rest = text.strip_suffix(end)?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HASH_LEN)?)?;
    Some((rest.strip_suffix(name)?, hash))
}

const PREV: &str = ",\"prev\":\"";
const HASH: &str = ",\"hash\":\"";
const END: &str = "\"}";

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-01-02T03:04:05.000006Z";

    fn line(seal: &Seal) -> Vec<u8> {
        let mut out = Vec::new();
        let (seq, prev) = (0, no_hash());
        let mut link = Link { seq, prev };
        link.write(&mut out, seal, TIME, "\"kind\":\"call\",\"tool\":\"a\"");
        assert_eq!(out.pop(), Some(b'\n'));
        out
    }

    #[test]
    fn the_hash_covers_the_line_up_to_its_hash() {
        let written = line(&Seal::Plain);
        let at = written.len() - END.len() - HASH_LEN - HASH.len();
        let read = Line::parse(&written).unwrap();
        assert_eq!(Seal::Plain.hash(&written[..at]), read.hash);
        assert_eq!((read.seq, read.kind, read.time), (0, "call", TIME));
    }

    #[test]
    fn a_change_of_any_byte_is_detected() {
        let written = line(&Seal::Plain);
        for at in 0..written.len() {
            for change in [1, 0x20, 0x80] {
                let mut edited = written.clone();
                edited[at] ^= change;
                let seen = Line::parse(&edited).is_none_or(|line| {
                    !line.is_intact(&Seal::Plain) || line.seq != 0 || line.prev != no_hash()
                });
                assert!(seen, "byte {at} of {}", String::from_utf8_lossy(&edited));
            }
        }
    }

    #[test]
    fn a_key_is_long_enough_and_not_shown() {
        assert!(AuditKey::new([0; 15]).is_err());
        let key = AuditKey::new([7; 16]).unwrap();
        assert_eq!(format!("{key:?}"), "AuditKey(..)");
    }
}
