//! One pass over a JSON text.

use std::borrow::Cow;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};
use smallvec::SmallVec;

use super::FingerprintError;

/// How deeply arrays and objects may be nested: serde_json's own limit.
const MAX_DEPTH: usize = 128;

/// Says what the bytes after it are, so that `"1"`, `1` and `[1]` differ.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Tag {
    Null = 0,
    False = 1,
    True = 2,
    Number = 3,
    String = 4,
    Array = 5,
    Object = 6,
    Bytes = 7,
    Combined = 8,
}

pub(super) fn feed(hasher: &mut SipHasher13, tag: Tag, bytes: &[u8]) {
    hasher.write_u8(tag as u8);
    hasher.write_u64(bytes.len() as u64);
    hasher.write(bytes);
}

/// A scanned value: scalars as they stand in the text, containers already hashed.
pub(super) enum Scanned<'a> {
    Word(Tag),
    Number(&'a [u8]),
    String(Cow<'a, [u8]>),
    Container(Tag, u128),
}

impl Scanned<'_> {
    pub(super) fn feed(&self, hasher: &mut SipHasher13) {
        match self {
            Self::Word(tag) => hasher.write_u8(*tag as u8),
            Self::Number(digits) => feed(hasher, Tag::Number, digits),
            Self::String(text) => feed(hasher, Tag::String, text),
            Self::Container(tag, hash) => {
                hasher.write_u8(*tag as u8);
                hasher.write_u128(*hash);
            }
        }
    }
}

/// Scans a text that must hold exactly one value.
pub(super) fn scan(text: &[u8], key: SipHasher13) -> Result<Scanned<'_>, FingerprintError> {
    let mut scanner = Scanner { text, at: 0, key };
    scanner.skip_space();
    let value = scanner.value(0)?;
    scanner.skip_space();
    if scanner.at == text.len() {
        Ok(value)
    } else {
        Err(FingerprintError::Malformed)
    }
}

/// Walks a text once, from left to right.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    key: SipHasher13,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Scanned<'a>, FingerprintError> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Scanned::String),
            Some(b't') => self.word(b"true", Tag::True),
            Some(b'f') => self.word(b"false", Tag::False),
            Some(b'n') => self.word(b"null", Tag::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(FingerprintError::Malformed),
        }
    }

    fn word(&mut self, word: &[u8], tag: Tag) -> Result<Scanned<'a>, FingerprintError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(FingerprintError::Malformed);
        }
        self.at += word.len();
        Ok(Scanned::Word(tag))
    }

    fn number(&mut self) -> Result<Scanned<'a>, FingerprintError> {
        let start = self.at;
        self.eat(b'-');
        let first = self.peek();
        let digits = self.digits();
        if digits == 0 || (digits > 1 && first == Some(b'0')) {
            return Err(FingerprintError::Malformed);
        }
        if self.eat(b'.') && self.digits() == 0 {
            return Err(FingerprintError::Malformed);
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            if self.digits() == 0 {
                return Err(FingerprintError::Malformed);
            }
        }
        Ok(Scanned::Number(&self.text[start..self.at]))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// Reads a string; borrows it unless it holds an escape.
    fn string(&mut self) -> Result<Cow<'a, [u8]>, FingerprintError> {
        let start = self.at;
        if !self.eat(b'"') {
            return Err(FingerprintError::Malformed);
        }
        let mut escaped = false;
        loop {
            let rest = &self.text[self.at..];
            let Some(skip) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(FingerprintError::Malformed);
            };
            self.at += skip;
            if self.eat(b'"') {
                break;
            }
            escaped = true;
            // the backslash and whatever it protects, which may be a quote
            self.at = (self.at + 2).min(self.text.len());
        }
        let inner = &self.text[start + 1..self.at - 1];
        if !escaped {
            return if inner.iter().any(|byte| *byte < 0x20) {
                Err(FingerprintError::Malformed)
            } else {
                Ok(Cow::Borrowed(inner))
            };
        }
        serde_json::from_slice::<String>(&self.text[start..self.at])
            .map(|text| Cow::Owned(text.into_bytes()))
            .map_err(|_| FingerprintError::InvalidEscape)
    }

    fn array(&mut self, depth: usize) -> Result<Scanned<'a>, FingerprintError> {
        self.descend(depth)?;
        let mut hasher = self.key;
        if !self.eat(b']') {
            loop {
                self.skip_space();
                self.value(depth + 1)?.feed(&mut hasher);
                if self.ends(b']')? {
                    break;
                }
            }
        }
        Ok(Scanned::Container(Tag::Array, hasher.finish128().into()))
    }

    fn object(&mut self, depth: usize) -> Result<Scanned<'a>, FingerprintError> {
        self.descend(depth)?;
        let mut members: SmallVec<[(Cow<'a, [u8]>, Scanned<'a>); 8]> = SmallVec::new();
        if !self.eat(b'}') {
            loop {
                self.skip_space();
                let name = self.string()?;
                self.skip_space();
                if !self.eat(b':') {
                    return Err(FingerprintError::Malformed);
                }
                self.skip_space();
                members.push((name, self.value(depth + 1)?));
                if self.ends(b'}')? {
                    break;
                }
            }
        }
        members.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(FingerprintError::DuplicateMember);
        }
        let mut hasher = self.key;
        for (name, value) in &members {
            feed(&mut hasher, Tag::String, name);
            value.feed(&mut hasher);
        }
        Ok(Scanned::Container(Tag::Object, hasher.finish128().into()))
    }

    /// Steps over the opening bracket and the space behind it.
    fn descend(&mut self, depth: usize) -> Result<(), FingerprintError> {
        if depth >= MAX_DEPTH {
            return Err(FingerprintError::TooDeep);
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// After an element: says whether the container ends here, or steps over the comma.
    fn ends(&mut self, close: u8) -> Result<bool, FingerprintError> {
        self.skip_space();
        if self.eat(close) {
            Ok(true)
        } else if self.eat(b',') {
            Ok(false)
        } else {
            Err(FingerprintError::Malformed)
        }
    }
}
