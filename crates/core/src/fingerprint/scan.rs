//! Writes a JSON text as canonical bytes, in one pass.
//!
//! Each value begins with a [`Tag`]. Numbers and strings go on with their length and their bytes,
//! arrays with their elements, objects with their members in the order of their names; both end
//! with [`Tag::End`]. No value's bytes are a prefix of another's, so two values share theirs only
//! if they are equal.

use std::borrow::Cow;

use smallvec::SmallVec;

/// How deeply arrays and objects may be nested: serde_json's own limit.
const MAX_DEPTH: usize = 128;

/// The canonical bytes of one value; of most calls' arguments, without an allocation.
pub(super) type Canonical = SmallVec<[u8; 512]>;

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
    End = 7,
    Bytes = 8,
    Combined = 9,
    Decimal = 10,
    JsonBehind = 11,
}

/// The position of a member in the canonical bytes, from its name on.
#[derive(Clone, Copy)]
struct Member {
    start: usize,
    name: usize,
    value: usize,
    end: usize,
}

/// Scans a text that must hold exactly one value, and writes its canonical bytes into `out`, which
/// is empty. `None` if two parsers may read the text differently.
pub(super) fn scan(text: &[u8], out: &mut Canonical) -> Option<()> {
    out.reserve(2 * text.len() + 16);
    let mut scanner = Scanner { text, at: 0, out };
    scanner.skip_space();
    scanner.value(0)?;
    scanner.skip_space();
    (scanner.at == text.len()).then_some(())
}

/// Returns the number of bytes before the next quote or backslash.
fn plain_length(text: &[u8]) -> Option<usize> {
    // most strings are short: a loop has found the end before a search has started
    let (near, far) = text.split_at(text.len().min(16));
    let special = |byte: &u8| matches!(byte, b'"' | b'\\');
    match near.iter().position(special) {
        Some(length) => Some(length),
        None => memchr::memchr2(b'"', b'\\', far).map(|length| near.len() + length),
    }
}

/// Walks a text once, from left to right.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    out: &'a mut Canonical,
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

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b't') => self.word(b"true", Tag::True),
            Some(b'f') => self.word(b"false", Tag::False),
            Some(b'n') => self.word(b"null", Tag::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => None,
        }
    }

    fn word(&mut self, word: &[u8], tag: Tag) -> Option<()> {
        if !self.text[self.at..].starts_with(word) {
            return None;
        }
        self.at += word.len();
        self.out.push(tag as u8);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        self.eat(b'-');
        let first = self.peek();
        let digits = self.digits();
        if digits == 0 || (digits > 1 && first == Some(b'0')) {
            return None;
        }
        if self.eat(b'.') && self.digits() == 0 {
            return None;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            if self.digits() == 0 {
                return None;
            }
        }
        let text = self.text;
        self.write(Tag::Number, &text[start..self.at])
    }

    fn write(&mut self, tag: Tag, bytes: &[u8]) -> Option<()> {
        let length = u32::try_from(bytes.len()).ok()?;
        let [a, b, c, d] = length.to_le_bytes();
        self.out.extend_from_slice(&[tag as u8, a, b, c, d]);
        self.out.extend_from_slice(bytes);
        Some(())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Option<()> {
        let text = self.read_string()?;
        self.write(Tag::String, &text)
    }

    /// Reads a string; borrows it unless it holds an escape.
    fn read_string(&mut self) -> Option<Cow<'a, [u8]>> {
        let start = self.at;
        if !self.eat(b'"') {
            return None;
        }
        let mut escaped = false;
        loop {
            self.at += plain_length(&self.text[self.at..])?;
            if self.eat(b'"') {
                break;
            }
            escaped = true;
            // the backslash and the character it escapes, which may be a quote
            self.at = (self.at + 2).min(self.text.len());
        }
        let inner = &self.text[start + 1..self.at - 1];
        if !escaped {
            // no early exit, so that many bytes are compared at once
            let control = inner
                .iter()
                .fold(false, |found, byte| found | (*byte < 0x20));
            return (!control).then_some(Cow::Borrowed(inner));
        }
        let text = serde_json::from_slice::<String>(&self.text[start..self.at]).ok()?;
        Some(Cow::Owned(text.into_bytes()))
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.descend(depth, Tag::Array)?;
        if !self.eat(b']') {
            loop {
                self.skip_space();
                self.value(depth + 1)?;
                if self.ends(b']')? {
                    break;
                }
            }
        }
        self.out.push(Tag::End as u8);
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.descend(depth, Tag::Object)?;
        let mut members: SmallVec<[Member; 8]> = SmallVec::new();
        if !self.eat(b'}') {
            loop {
                self.skip_space();
                let start = self.out.len();
                self.string()?;
                let value = self.out.len();
                self.skip_space();
                if !self.eat(b':') {
                    return None;
                }
                self.skip_space();
                self.value(depth + 1)?;
                // tag and length stand before the name's own bytes
                members.push(Member {
                    start,
                    name: start + 5,
                    value,
                    end: self.out.len(),
                });
                if self.ends(b'}')? {
                    break;
                }
            }
        }
        self.sort(&mut members)?;
        self.out.push(Tag::End as u8);
        Some(())
    }

    /// Puts an object's members, the last things written, into the order of their names.
    fn sort(&mut self, members: &mut [Member]) -> Option<()> {
        let out = &self.out;
        let name = |member: &Member| &out[member.name..member.value];
        if members.is_sorted_by(|left, right| name(left) < name(right)) {
            return Some(());
        }
        let start = members.first().map_or(out.len(), |member| member.start);
        members.sort_unstable_by(|left, right| name(left).cmp(name(right)));
        if members
            .windows(2)
            .any(|pair| name(&pair[0]) == name(&pair[1]))
        {
            return None;
        }
        let mut sorted = Canonical::with_capacity(out.len() - start);
        for member in members {
            sorted.extend_from_slice(&out[member.start..member.end]);
        }
        self.out.truncate(start);
        self.out.extend_from_slice(&sorted);
        Some(())
    }

    /// Steps over the opening bracket and the space behind it.
    fn descend(&mut self, depth: usize, tag: Tag) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.skip_space();
        self.out.push(tag as u8);
        Some(())
    }

    /// After an element: returns `true` if the container ends here, and otherwise skips the comma.
    fn ends(&mut self, close: u8) -> Option<bool> {
        self.skip_space();
        let is_end = self.eat(close);
        (is_end || self.eat(b',')).then_some(is_end)
    }
}
