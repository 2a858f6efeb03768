//! What holds the lines of a log together.

use std::fmt;
use std::io::Write as _;

use callward_core::InvalidConfig;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A key that makes hashes nobody else can work out: whoever has it not can still cut a log at its
/// end, but write no line of it.
#[derive(Clone, PartialEq, Eq)]
pub struct AuditKey(Box<[u8]>);

impl AuditKey {
    /// The least length of a key, in bytes.
    pub const LEAST_LEN: usize = 16;

    /// Takes the bytes of a key, drawn at random: 32 of them are as many as count.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] if there are fewer than [`LEAST_LEN`](Self::LEAST_LEN).
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Result<Self, InvalidConfig> {
        let bytes = bytes.into();
        if bytes.len() < Self::LEAST_LEN {
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

/// A hash, as it is written: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; Self::LEN]);

impl Hash {
    /// How long it is when it is written.
    pub(crate) const LEN: usize = 64;
    /// What stands before the first line of a log.
    pub(crate) const NONE: Self = Self([b'0'; Self::LEN]);

    fn of(digest: &[u8]) -> Self {
        let mut hex = [b'0'; Self::LEN];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(digest) {
            // a pair has room for two digits
            let _ = write!(&mut pair[..], "{byte:02x}");
        }
        Self(hex)
    }

    /// Takes a hash as it is written; whether it is one shows when it is compared.
    pub(crate) fn read(hex: &[u8]) -> Option<Self> {
        hex.try_into().ok().map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.0).unwrap_or("not a hash"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How hashes are made.
#[derive(Clone)]
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

    /// The name in the first line of a file.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Plain => "sha256",
            Self::Keyed(_) => "hmac-sha256",
        }
    }

    pub(crate) fn hash(&self, bytes: &[u8]) -> Hash {
        match self {
            Self::Plain => Hash::of(&Sha256::digest(bytes)),
            Self::Keyed(mac) => {
                let mut mac = Hmac::clone(mac);
                mac.update(bytes);
                Hash::of(&mac.finalize().into_bytes())
            }
        }
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the next line of a chain goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The number of the next line.
    pub(crate) seq: u64,
    /// The hash of the line before.
    pub(crate) prev: Hash,
}

impl Link {
    /// The first line of a log.
    pub(crate) const FIRST: Self = Self {
        seq: 0,
        prev: Hash::NONE,
    };

    /// Appends a line: `body` is the inside of an object, which may not be empty.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, seal: &Seal, time: &str, body: &[u8]) {
        let start = out.len();
        // writing into memory does not fail
        let _ = write!(out, "{{\"seq\":{},\"time\":\"{time}\",", self.seq);
        out.extend_from_slice(body);
        out.extend_from_slice(PREV);
        out.extend_from_slice(self.prev.as_bytes());
        out.push(b'"');
        let hash = seal.hash(out.get(start..).unwrap_or_default());
        out.extend_from_slice(HASH);
        out.extend_from_slice(hash.as_bytes());
        out.extend_from_slice(END);
        out.push(b'\n');
        self.seq += 1;
        self.prev = hash;
    }
}

/// A line, taken apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) seq: u64,
    pub(crate) prev: Hash,
    pub(crate) hash: Hash,
    /// What the hash is made of.
    hashed: &'a [u8],
    /// From the time on, up to the hash of the line before.
    pub(crate) body: &'a [u8],
}

impl<'a> Line<'a> {
    /// Takes a line apart, without the line feed at its end. Nothing if it is not one of ours, to the
    /// byte.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        let (rest, hash) = take_hash(line.strip_suffix(END)?)?;
        let hashed = rest.strip_suffix(HASH)?;
        let (rest, prev) = take_hash(hashed.strip_suffix(b"\"")?)?;
        let rest = rest.strip_suffix(PREV)?.strip_prefix(b"{\"seq\":")?;
        let digits = rest.iter().position(|byte| *byte == b',')?;
        let (seq, body) = rest.split_at_checked(digits)?;
        let seq = std::str::from_utf8(seq).ok()?.parse().ok()?;
        Some(Self {
            seq,
            prev,
            hash,
            hashed,
            body: body.strip_prefix(b",")?,
        })
    }

    /// Says whether the line is as it was written.
    pub(crate) fn is_whole(&self, seal: &Seal) -> bool {
        seal.hash(self.hashed) == self.hash
    }

    /// Returns what kind of record it is, and when it was made.
    pub(crate) fn kind(&self) -> Option<(&'a str, &'a str)> {
        let rest = self.body.strip_prefix(b"\"time\":\"")?;
        let (time, rest) = until_quote(rest)?;
        let (kind, _) = until_quote(rest.strip_prefix(b",\"kind\":\"")?)?;
        Some((kind, time))
    }
}

fn take_hash(text: &[u8]) -> Option<(&[u8], Hash)> {
    let at = text.len().checked_sub(Hash::LEN)?;
    let (rest, hex) = text.split_at_checked(at)?;
    Some((rest, Hash::read(hex)?))
}

fn until_quote(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text.iter().position(|byte| *byte == b'"')?;
    let (word, rest) = text.split_at_checked(end)?;
    Some((std::str::from_utf8(word).ok()?, rest.get(1..)?))
}

const PREV: &[u8] = b",\"prev\":\"";
const HASH: &[u8] = b",\"hash\":\"";
const END: &[u8] = b"\"}";

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-01-02T03:04:05.000006Z";

    fn line(seal: &Seal) -> Vec<u8> {
        let mut out = Vec::new();
        let mut link = Link::FIRST;
        link.write(&mut out, seal, TIME, b"\"kind\":\"call\",\"tool\":\"a\"");
        assert_eq!(out.pop(), Some(b'\n'));
        out
    }

    #[test]
    fn a_line_is_json_and_is_read_as_it_was_written() {
        let written = line(&Seal::Plain);
        let value: serde_json::Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(value["tool"], "a");
        let read = Line::read(&written).unwrap();
        assert_eq!((read.seq, read.prev), (0, Hash::NONE));
        assert_eq!(read.kind(), Some(("call", TIME)));
        assert!(read.is_whole(&Seal::Plain));
        assert_eq!(value["hash"], read.hash.to_string());
    }

    #[test]
    fn the_hash_is_sha_256_of_all_that_stands_before_it() {
        // FIPS 180-4, and RFC 4231, test case 2
        assert_eq!(
            Seal::Plain.hash(b"abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let mac = Hmac::new_from_slice(b"Jefe").unwrap();
        assert_eq!(
            Seal::Keyed(Box::new(mac))
                .hash(b"what do ya want for nothing?")
                .to_string(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let written = line(&Seal::Plain);
        let at = written.windows(HASH.len()).position(|w| w == HASH).unwrap();
        let read = Line::read(&written).unwrap();
        assert_eq!(Seal::Plain.hash(&written[..at]), read.hash);
    }

    #[test]
    fn no_byte_of_a_line_can_be_another() {
        let written = line(&Seal::Plain);
        for at in 0..written.len() {
            for change in [1, 0x20, 0x80] {
                let mut edited = written.clone();
                edited[at] ^= change;
                let seen = Line::read(&edited).is_none_or(|line| {
                    !line.is_whole(&Seal::Plain) || line.seq != 0 || line.prev != Hash::NONE
                });
                assert!(seen, "byte {at} of {}", String::from_utf8_lossy(&edited));
            }
        }
    }

    #[test]
    fn a_line_made_with_a_key_is_whole_for_its_holder_only() {
        let key = |byte| AuditKey::new(vec![byte; 32]).unwrap();
        let ours = Seal::new(Some(&key(1)));
        let written = line(&ours);
        let read = Line::read(&written).unwrap();
        assert!(read.is_whole(&ours));
        assert!(!read.is_whole(&Seal::Plain));
        assert!(!read.is_whole(&Seal::new(Some(&key(2)))));
        assert!(AuditKey::new([0; 15]).is_err());
        assert_eq!(format!("{:?}", key(7)), "AuditKey(..)");
    }
}
