//! Compares the content of two answers.

use serde_json::value::RawValue;

use super::ToolOutput;
use crate::FingerprintKey;
use crate::members::Members;

/// Members that are not content; `isError` and `resultType` are compared as they are understood,
/// since both may be left out.
const BESIDE: [&str; 5] = ["_meta", "cacheScope", "isError", "resultType", "ttlMs"];

impl ToolOutput {
    /// Returns a digest that two answers share exactly if they have the same content, ignoring
    /// their `_meta`. White space and the order of members do not count; text is compared as text,
    /// and numbers exactly. `None` for an answer that cannot be compared with others: one with a
    /// duplicate member, say. It is the same in every process, and meant for comparison only: it is
    /// not a secret.
    ///
    /// ```
    /// use callward_core::ToolOutput;
    ///
    /// let a = ToolOutput::from_json(r#"{"structuredContent":{"a":1,"b":2},"content":[]}"#)?;
    /// let b = r#"{"content":[], "structuredContent":{"b":2,"a":1},"_meta":{}}"#;
    /// let b = ToolOutput::from_json(b)?;
    /// assert_eq!(a.answer_digest(), b.answer_digest());
    /// # Ok::<(), callward_core::InvalidOutput>(())
    /// ```
    pub fn answer_digest(&self) -> Option<u128> {
        let mut parts = vec![u128::from(self.0.is_error), self.0.status as u128];
        let members = serde_json::from_slice(&self.0.body).ok()?;
        for (name, value) in sorted(&members, &BESIDE)? {
            parts.push(FingerprintKey::fixed().bytes(name.as_bytes()));
            // `content` block by block, if it is what the protocol says: each may have a `_meta`
            let blocks = Some(value.get()).filter(|_| name == "content");
            match blocks.and_then(|blocks| serde_json::from_str::<Vec<_>>(blocks).ok()) {
                None => parts.extend([0, digest(value)?]),
                Some(blocks) => {
                    parts.extend([1, blocks.len() as u128]);
                    for block in blocks {
                        let block = sorted(&block, &["_meta"])?;
                        parts.push(block.len() as u128);
                        for (name, value) in block {
                            let name = FingerprintKey::fixed().bytes(name.as_bytes());
                            parts.extend([name, digest(value)?]);
                        }
                    }
                }
            }
        }
        Some(FingerprintKey::fixed().combine(&parts))
    }
}

/// Returns the members by name, without some of them; `None` if one is given twice.
fn sorted<'m, 'a>(
    members: &'m Members<'a>,
    without: &[&str],
) -> Option<Vec<(&'m str, &'a RawValue)>> {
    let kept = members.iter().filter(|(name, _)| !without.contains(name));
    let mut kept: Vec<_> = kept.collect();
    kept.sort_by_key(|(name, _)| *name);
    let is_unique = kept.windows(2).all(|pair| pair[0].0 != pair[1].0);
    is_unique.then_some(kept)
}

fn digest(value: &RawValue) -> Option<u128> {
    FingerprintKey::fixed().json(value.get().as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::Value;

    use super::*;
    use crate::OutputStatus;

    fn digest_of(body: &str) -> Option<u128> {
        ToolOutput::from_json(body.to_owned())
            .unwrap()
            .answer_digest()
    }

    #[test]
    fn answers_share_a_digest_if_they_say_the_same() {
        let rows = r#"
{"a":1,"content":[]} == { "content" : [ ] , "a": 1 }
{"content":[],"_meta":{"t":1}} == {"content":[],"ttlMs":5}
{"isError":false} == {"resultType":"complete"}
{"content":[{"t":"text","text":"a","_meta":1}]} == {"content":[{"text":"\u0061","t":"text"}]}
{"structuredContent":{"a":{"c":1,"d":2}}} == {"structuredContent":{"a":{"d":2,"c":1}}}
{"content":[1]} != {"content":[2]}
{"content":[1]} != {"content":[1.0]}
{"content":[{}]} != {"content":[{"a":1}]}
{"content":[{}]} != {"x":[{}]}
{"content":[]} != {"content":[],"isError":true}
{"resultType":"task"} != {"resultType":"complete"}
{"content":[]} != {"content":[],"extra":null}
{"content":[{"t":"a"},{"t":"b"}]} != {"content":[{"t":"b"},{"t":"a"}]}
{"content":[{"t":1},{"text":"a"}]} != {"content":[{"t":1,"text":"a"},{}]}
{"structuredContent":9007199254740993} != {"structuredContent":9007199254740992}
{"structuredContent":{"_meta":{"n":1}}} != {"structuredContent":{"_meta":{"n":2}}}"#;
        for row in rows.lines().skip(1) {
            let same = row.split_once(" == ");
            let (one, other) = same.or_else(|| row.split_once(" != ")).unwrap();
            let (one, other) = (digest_of(one).unwrap(), digest_of(other).unwrap());
            assert_eq!(one == other, same.is_some(), "{row}");
        }
    }

    #[test]
    fn an_answer_that_can_be_read_in_two_ways_has_no_digest() {
        let bodies =
            r#"{"x":1,"x":2} {"content":[{"t":1,"t":2}]} {"structuredContent":{"a":1,"a":1}}"#;
        for body in bodies.split(' ') {
            assert_eq!(digest_of(body), None, "{body}");
        }
    }

    /// What an answer says, if no member is given twice.
    fn said(body: &str) -> (bool, OutputStatus, Value) {
        let output = ToolOutput::from_json(body.to_owned()).unwrap();
        let mut said: Value = serde_json::from_str(body).unwrap();
        let members = said.as_object_mut().unwrap();
        BESIDE.iter().for_each(|name| drop(members.remove(*name)));
        let blocks = members.get_mut("content").and_then(Value::as_array_mut);
        if let Some(blocks) = blocks.filter(|blocks| blocks.iter().all(Value::is_object)) {
            let metas = blocks.iter_mut().filter_map(Value::as_object_mut);
            metas.for_each(|block| drop(block.remove("_meta")));
        }
        (output.is_error(), output.status(), said)
    }

    /// An answer of few, so that pairs are often equal.
    fn body() -> impl Strategy<Value = String> {
        let values = concat!(
            r#"1;1.0;"a";"\u0061";[];[ ];{"a":1,"b":2};{ "b":2, "a":1 };{"a":1,"a":1};"#,
            r#"[{"type":"text","text":"a"}];[{"text":"a","type":"text","_meta":1}];"#,
            r#"[{"type":"text"},{"text":"a"}];[{}];[{"_meta":0}]"#,
        );
        let values: Vec<_> = values.split(';').collect();
        let names = ["content", "structuredContent", "_meta", "x", "ttlMs"];
        let stated = r#""isError":false;"isError":true;"resultType":"complete";"resultType":"task";"resultType":"other""#;
        let stated: Vec<_> = stated.split(';').collect();
        let member = (select(names.to_vec()), select(values))
            .prop_map(|(name, value)| format!("\"{name}\":{value}"));
        let member = prop_oneof![8 => member, 1 => select(stated).prop_map(str::to_owned)];
        prop::collection::vec(member, 0..3)
            .prop_map(|members| format!("{{{}}}", members.join(", ")))
            .prop_filter("one reading", |body| {
                ToolOutput::from_json(body.clone()).is_ok()
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn digests_are_equal_exactly_if_answers_say_the_same(a in body(), b in body()) {
            if let (Some(one), Some(other)) = (digest_of(&a), digest_of(&b)) {
                prop_assert_eq!(one == other, said(&a) == said(&b));
            }
        }
    }
}
