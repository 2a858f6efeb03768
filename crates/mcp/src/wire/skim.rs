//! Finds the id of an overlong message while its bytes are skipped.

use super::RequestId;

/// A key or an id longer than this, in bytes, is not looked at.
const MAX_TOKEN: usize = 256;

/// The id and kind of a message that was too long to be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// The message's own `id`, wherever it stood; nothing if it has none that is a string or a
    /// number.
    pub(crate) id: Option<RequestId>,
    /// Whether it has a `method`: it is a request or a notification, and not an answer.
    pub(crate) has_method: bool,
}

/// Reads a JSON object piece by piece and keeps its top-level `id`. Its memory is bounded: it holds
/// one key or one value in part, and the depth.
///
/// Of two ids the last one counts. What is not JSON is read as if it were: it finds an id or none.
#[derive(Debug, Default)]
pub(super) struct Skim {
    /// How many objects and arrays are open. The members of the message stand at depth 1.
    depth: u64,
    in_string: bool,
    /// Whether the byte before, in a string, was a backslash.
    escaped: bool,
    /// The member whose value comes.
    member: Option<Member>,
    /// The key or the value at depth 1, as it is written; of a nested value its first bracket.
    token: Vec<u8>,
    pub(super) found: Skipped,
    has_ended: bool,
}

#[derive(Debug, Clone, Copy)]
enum Member {
    Id,
    Method,
    Other,
}

impl Skim {
    pub(super) fn feed(&mut self, mut piece: &[u8]) {
        while !self.has_ended {
            if self.in_string && !self.escaped && !self.has_space() {
                // nothing matters but where the string ends
                let end = memchr::memchr2(b'"', b'\\', piece);
                piece = end.and_then(|at| piece.get(at..)).unwrap_or_default();
            }
            let Some((byte, rest)) = piece.split_first() else {
                return;
            };
            self.step(*byte);
            piece = rest;
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            let escaped = std::mem::replace(&mut self.escaped, false);
            self.escaped = byte == b'\\' && !escaped;
            self.in_string = byte != b'"' || escaped;
            return;
        }
        match (self.depth, byte) {
            (0, b'{') => self.depth = 1,
            (0, _) => self.has_ended = !byte.is_ascii_whitespace(),
            (1, b':') if self.member.is_none() => {
                self.member = Some(self.named());
                self.token.clear();
            }
            (1, b',' | b'}') => {
                self.end_member();
                self.has_ended = byte == b'}';
            }
            (_, b'{' | b'[') => {
                self.keep(byte);
                self.depth = self.depth.saturating_add(1);
            }
            (_, b'}' | b']') => self.depth -= 1,
            _ if byte.is_ascii_whitespace() && self.token.is_empty() => {}
            _ => {
                self.keep(byte);
                self.in_string = byte == b'"';
            }
        }
    }

    fn end_member(&mut self) {
        match self.member.take() {
            Some(Member::Id) => {
                let raw = std::str::from_utf8(&self.token).ok();
                self.found.id = raw.and_then(RequestId::from_raw);
            }
            Some(Member::Method) => self.found.has_method = true,
            Some(Member::Other) | None => {}
        }
        self.token.clear();
    }

    /// Returns `true` if the next byte is kept.
    fn has_space(&self) -> bool {
        self.depth == 1 && self.token.len() < MAX_TOKEN
    }

    /// Adds a byte to the token. One byte above the limit makes it a token that matches nothing.
    fn keep(&mut self, byte: u8) {
        if self.has_space() {
            self.token.push(byte);
        } else if self.depth == 1
            && let Some(first) = self.token.first_mut()
        {
            *first = b'?';
        }
    }

    /// Returns which member the key names; it may be written with escapes.
    fn named(&self) -> Member {
        match serde_json::from_slice::<String>(&self.token).as_deref() {
            Ok("id") => Member::Id,
            Ok("method") => Member::Method,
            _ => Member::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::wire::message::tests::json;

    fn skim<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Skipped {
        let mut skim = Skim::default();
        pieces.into_iter().for_each(|piece| skim.feed(piece));
        skim.found
    }

    fn id_of(text: &str) -> Option<String> {
        let found = skim([text.as_bytes()]);
        found.id.map(|id| id.to_raw().into_owned())
    }

    #[test]
    fn the_last_id_of_a_whole_object_is_found() {
        for (text, id) in [
            (r#"{"id":-1.5e3}"#, Some("-1.5e3")),
            (r#"{"id":1,"id":2}"#, Some("2")),
            // cut off in the middle of the id: which one it is cannot be known
            (r#"{"result":"x","id":12"#, None),
            (r#"[{"id":1}]"#, None),
            (r#""id":1"#, None),
            ("", None),
        ] {
            assert_eq!(id_of(text).as_deref(), id, "{text}");
        }
        let long = "9".repeat(MAX_TOKEN + 1);
        assert_eq!(id_of(&format!(r#"{{"id":{long}}}"#)), None);
    }

    fn document() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            Just("id".to_owned()),
            Just("method".to_owned()),
            r#"[a-z"\\{}\[\]:, \u{e4}\u{1f600}]{0,6}"#,
        ];
        let value = json(text.clone());
        prop::collection::vec((text, value), 0..6)
            .prop_map(|members| Value::Object(Map::from_iter(members)))
    }

    /// Spells some characters of a JSON text's strings as escapes.
    fn escaped(text: &str, every: usize) -> String {
        let mut out = String::new();
        let (mut in_string, mut backslash, mut count) = (false, false, 0);
        for letter in text.chars() {
            if in_string && !backslash && letter.is_ascii_alphabetic() {
                count += 1;
                if count % every == 0 {
                    out.push_str(&format!("\\u{:04x}", u32::from(letter)));
                    continue;
                }
            }
            if letter == '"' && !backslash {
                in_string = !in_string;
            }
            backslash = in_string && letter == '\\' && !backslash;
            out.push(letter);
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_document_in_any_pieces_is_read_as_a_whole_one(
            document in document(),
            pretty in any::<bool>(),
            every in 1_usize..5,
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let text = match pretty {
                true => serde_json::to_string_pretty(&document),
                false => serde_json::to_string(&document),
            };
            let text = escaped(&text.unwrap(), every);
            let whole: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&whole, &document, "the escapes say the same");
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let found = skim(cuts.windows(2).map(|ends| &text.as_bytes()[ends[0]..ends[1]]));
            let expected = document.get("id").filter(|id| id.is_string() || id.is_number());
            let id = found.id.map(|id| serde_json::from_str::<Value>(&id.to_raw()).unwrap());
            prop_assert_eq!(id.as_ref(), expected);
            prop_assert_eq!(found.has_method, document.get("method").is_some());
        }
    }

    #[test]
    fn its_memory_is_bounded_whatever_comes() {
        let mut skim = Skim::default();
        skim.feed(br#"{"id":""#);
        for _ in 0..1000 {
            skim.feed(&[b'x'; 4096]);
        }
        assert!(skim.token.capacity() <= MAX_TOKEN * 2);
        skim.feed(br#"","id":3}"#);
        assert_eq!(skim.found.id, RequestId::from_raw(&json!(3).to_string()));
    }
}
