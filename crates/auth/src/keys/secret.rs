//! The form of a key: `cwk_`, 43 characters of 256 random bits, and 6 characters of a checksum.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::KeyError;
use crate::authenticator::KEY_PREFIX;
use crate::hex;

/// The length of the part before the checksum, and of the whole.
const BODY: usize = KEY_PREFIX.len() + 43;
const WHOLE: usize = BODY + 6;

/// A key as its owner has it. A file of keys does not have it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a key of 256 random bits.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoRandomBits`] if the system gives none.
    pub fn random() -> Result<Self, KeyError> {
        let mut bits = [0; 32];
        let filled = SystemRandom::new().fill(&mut bits);
        filled.map_err(|_| KeyError::NoRandomBits)?;
        Ok(Self::of(bits))
    }

    /// Returns `true` if a text is this key. Hashes are compared: the time reveals something of a
    /// hash at most, and no one can make a text for a hash that is nearly right.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        KeyHash::of_key(text).is_some_and(|hash| Some(hash) == KeyHash::of_key(&self.0))
    }

    pub(super) fn of(bits: [u8; 32]) -> Self {
        let body = format!("{KEY_PREFIX}{}", BASE64.encode(bits));
        let sum = checksum(&body);
        Self(body + &sum)
    }

    /// Returns the key, to be shown to its owner.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The SHA-256 of a key, in files as base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct KeyHash([u8; 32]);

impl KeyHash {
    /// Hashes a text that has the form of a key; `None` if it does not. By the
    /// checksum a mistyped key is refused at once, and a scanner for leaked keys skips other texts.
    /// It protects nothing.
    pub(super) fn of_key(text: &str) -> Option<Self> {
        let (body, sum) = text.split_at_checked(BODY)?;
        let is_key = text.len() == WHOLE && body.starts_with(KEY_PREFIX) && sum == checksum(body);
        is_key.then(|| Self(Sha256::digest(text).into()))
    }

    /// Returns 40 bits of it as a public name: of 256 unknown bits they tell nothing.
    pub(super) fn id(self) -> String {
        hex(self.0.into_iter().take(5))
    }
}

impl From<KeyHash> for String {
    fn from(KeyHash(hash): KeyHash) -> Self {
        BASE64.encode(hash)
    }
}

impl TryFrom<String> for KeyHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let hash = BASE64
            .decode(text)
            .ok()
            .and_then(|hash| hash.try_into().ok());
        hash.map(Self).ok_or("expected 32 bytes as base64url")
    }
}

fn checksum(body: &str) -> String {
    let mut sum = BASE64.encode(Sha256::digest(body));
    sum.truncate(WHOLE - BODY);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_key_if_length_prefix_and_checksum_are_right() {
        let secret = Secret::of([7; 32]);
        let key = secret.expose();
        assert_eq!(key, "cwk_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc1t5rxM");
        let changed = key.replacen("Bw", "bw", 1);
        let upper = key.replacen("cwk_", "CWK_", 1);
        for (text, is_key) in [
            (key, true),
            (&key[..52], false),
            (&format!("{key}a"), false),
            (&format!("{key} "), false),
            (&changed, false),
            (&upper, false),
            ("", false),
            ("cwk_", false),
            (&"é".repeat(30), false),
        ] {
            assert_eq!(KeyHash::of_key(text).is_some(), is_key, "{text}");
            assert_eq!(secret.is(text), is_key, "{text}");
        }
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        let random = Secret::random().unwrap();
        assert!(!random.is(key) && !random.is(Secret::random().unwrap().expose()));
    }
}
