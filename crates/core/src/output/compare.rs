//! Whether two answers say the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::ToolOutput;
use crate::members::Members;
use crate::{Fingerprint, FingerprintKey};

/// What is said beside an answer, not by it; `isError` and `resultType` are compared as they are
/// understood, since both may be left out.
const BESIDE: [&str; 5] = ["_meta", "cacheScope", "isError", "resultType", "ttlMs"];

impl ToolOutput {
    /// Returns whether two answers have the same content, ignoring their `_meta`. White space and
    /// the order of members do not count; text is compared as text, and numbers exactly.
    ///
    /// `None` if they cannot be compared: one has a duplicate member, say.
    ///
    /// ```
    /// use callward_core::ToolOutput;
    ///
    /// let a = ToolOutput::from_json(r#"{"structuredContent":{"a":1,"b":2},"content":[]}"#)?;
    /// let b = r#"{"content":[], "structuredContent":{"b":2,"a":1},"_meta":{}}"#;
    /// let b = ToolOutput::from_json(b)?;
    /// assert_eq!(a.says_the_same(&b), Some(true));
    /// # Ok::<(), callward_core::InvalidOutput>(())
    /// ```
    pub fn says_the_same(&self, other: &Self) -> Option<bool> {
        let (ours, theirs) = (&*self.0, &*other.0);
        if ours.is_error != theirs.is_error || ours.status != theirs.status {
            return Some(false);
        }
        if ours.body == theirs.body {
            return Some(true);
        }
        Some(members(&ours.body)? == members(&theirs.body)?)
    }

    /// Returns a digest that two answers share exactly if they [say the same](Self::says_the_same);
    /// `None` for an answer that cannot be compared with others. It is the same in every process,
    /// and meant for comparison only: it is not a secret.
    pub fn answer_digest(&self) -> Option<u128> {
        let key = FingerprintKey::fixed();
        let mut parts = vec![u128::from(self.0.is_error), self.0.status as u128];
        for (name, said) in members(&self.0.body)? {
            parts.push(key.bytes(name.as_bytes()).as_u128());
            match said {
                Said::Json(value) => parts.extend([0, value.as_u128()]),
                Said::Blocks(blocks) => {
                    parts.extend([1, blocks.len() as u128]);
                    for block in blocks {
                        parts.push(block.len() as u128);
                        parts.extend(block.iter().flat_map(|(name, value)| {
                            [key.bytes(name.as_bytes()).as_u128(), value.as_u128()]
                        }));
                    }
                }
            }
        }
        Some(key.combine(&parts).as_u128())
    }
}

/// A member of an answer, in a form that can be compared.
#[derive(PartialEq, Eq)]
enum Said<'a> {
    /// The blocks of `content`: each may have a `_meta` of its own.
    Blocks(Vec<BTreeMap<Cow<'a, str>, Fingerprint>>),
    Json(Fingerprint),
}

fn members(body: &[u8]) -> Option<BTreeMap<String, Said<'_>>> {
    let members = Members::read(std::str::from_utf8(body).ok()?).ok()?;
    let mut said = BTreeMap::new();
    for (name, value) in members.iter() {
        if BESIDE.contains(&name) {
            continue;
        }
        let value = match blocks(name, value) {
            Some(blocks) => Said::Blocks(blocks),
            None => Said::Json(digest(value)?),
        };
        if said.insert(name.to_owned(), value).is_some() {
            return None;
        }
    }
    Some(said)
}

/// Reads `content` block by block; `None` if it is not what the protocol says it is.
fn blocks<'a>(name: &str, value: &'a RawValue) -> Option<Vec<BTreeMap<Cow<'a, str>, Fingerprint>>> {
    if name != "content" {
        return None;
    }
    let blocks: Vec<Members<'a>> = serde_json::from_str(value.get()).ok()?;
    blocks
        .into_iter()
        .map(|block| {
            let mut parts = BTreeMap::new();
            for (name, value) in block.into_iter().filter(|(name, _)| name != "_meta") {
                if parts.insert(name, digest(value)?).is_some() {
                    return None;
                }
            }
            Some(parts)
        })
        .collect()
}

fn digest(value: &RawValue) -> Option<Fingerprint> {
    FingerprintKey::fixed().json(value.get().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(a: &str, b: &str) -> Option<bool> {
        let output = |body: &str| ToolOutput::from_json(body.to_owned()).unwrap();
        let verdict = output(a).says_the_same(&output(b));
        assert_eq!(output(b).says_the_same(&output(a)), verdict);
        verdict
    }

    #[test]
    fn spelling_order_and_what_stands_beside_do_not_count() {
        for (a, b) in [
            (r#"{"a":1,"content":[]}"#, r#"{ "content" : [ ] , "a": 1 }"#),
            (
                r#"{"content":[],"_meta":{"t":1}}"#,
                r#"{"content":[],"ttlMs":5}"#,
            ),
            (
                r#"{"content":[],"isError":false}"#,
                r#"{"content":[],"resultType":"complete"}"#,
            ),
            (
                r#"{"content":[{"type":"text","text":"a","_meta":{"n":1}}]}"#,
                r#"{"content":[{"text":"\u0061","type":"text","_meta":{"n":2}}]}"#,
            ),
            (
                r#"{"structuredContent":{"a":{"c":1,"d":2}}}"#,
                r#"{"structuredContent":{"a":{"d":2,"c":1}}}"#,
            ),
        ] {
            assert_eq!(same(a, b), Some(true), "{a} {b}");
        }
    }

    #[test]
    fn content_and_structure_count() {
        for (a, b) in [
            (r#"{"content":[1]}"#, r#"{"content":[2]}"#),
            (r#"{"content":[]}"#, r#"{"content":[],"isError":true}"#),
            (r#"{"content":[]}"#, r#"{"content":[],"extra":null}"#),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                r#"{"content":[{"type":"text","text":"b"},{"type":"text","text":"a"}]}"#,
            ),
            (
                r#"{"structuredContent":{"n":9007199254740993}}"#,
                r#"{"structuredContent":{"n":9007199254740992}}"#,
            ),
            (
                r#"{"structuredContent":{"_meta":{"n":1}}}"#,
                r#"{"structuredContent":{"_meta":{"n":2}}}"#,
            ),
        ] {
            assert_eq!(same(a, b), Some(false), "{a} {b}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_cannot_be_compared() {
        for (a, b) in [
            (r#"{"x":1,"x":2}"#, r#"{"x":2}"#),
            (r#"{"content":[{"t":1,"t":2}]}"#, r#"{"content":[{"t":2}]}"#),
        ] {
            assert_eq!(same(a, b), None, "{a} {b}");
        }
    }

    /// A JSON value of few, in one of two spellings.
    fn value() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "1",
            "1.0",
            r#""a""#,
            r#""\u0061""#,
            "[]",
            "[ ]",
            r#"{"a":1,"b":2}"#,
            r#"{ "b":2, "a":1 }"#,
            r#"{"a":1,"a":1}"#,
            r#"[{"type":"text","text":"a"}]"#,
            r#"[{"text":"a","type":"text","_meta":1}]"#,
            r#"[{"type":"text"},{"text":"a"}]"#,
            "[{}]",
            r#"[{"_meta":0}]"#,
        ])
    }

    /// An answer of few, so that pairs are often equal.
    fn body() -> impl Strategy<Value = String> {
        let names = ["content", "structuredContent", "_meta", "x", "ttlMs"];
        let member = (prop::sample::select(names.to_vec()), value())
            .prop_map(|(name, value)| format!("\"{name}\":{value}"));
        let stated = prop::sample::select(vec![
            r#""isError":false"#,
            r#""isError":true"#,
            r#""resultType":"complete""#,
            r#""resultType":"task""#,
            r#""resultType":"other""#,
        ]);
        let member = prop_oneof![8 => member, 1 => stated.prop_map(str::to_owned)];
        prop::collection::vec(member, 0..3)
            .prop_map(|members| format!("{{{}}}", members.join(", ")))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn digests_are_equal_exactly_if_answers_say_the_same(a in body(), b in body()) {
            let output = |body: &String| ToolOutput::from_json(body.clone()).ok();
            let (Some(one), Some(other)) = (output(&a), output(&b)) else {
                return Ok(());
            };
            match (one.answer_digest(), other.answer_digest()) {
                (Some(x), Some(y)) => prop_assert_eq!(one.says_the_same(&other), Some(x == y)),
                _ => {
                    // nothing is known but by the same bytes, or by how the answers stand
                    let stand = |output: &ToolOutput| (output.is_error(), output.status());
                    let known = a == b || stand(&one) != stand(&other);
                    prop_assert_eq!(one.says_the_same(&other).is_some(), known);
                }
            }
        }
    }
}
