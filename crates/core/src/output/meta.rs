//! Adding to an answer's `_meta` without touching another byte.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{InvalidOutput, ToolOutput};
use crate::members::{Members, Text};

impl ToolOutput {
    /// Returns a copy of the answer with one more member in its `_meta`; every other byte stays as it
    /// is. A member of that name is replaced, and so is a `_meta` that is no object. Where a name is
    /// given twice, the last one counts, as most parsers have it.
    ///
    /// ```
    /// use tollgate_core::ToolOutput;
    ///
    /// let output = ToolOutput::from_json(r#"{"content": [], "_meta":{"a":1} }"#)?;
    /// let marked = output.with_meta("b", &serde_json::value::RawValue::TRUE)?;
    /// assert_eq!(marked.body(), r#"{"content": [], "_meta":{"a":1,"b":true} }"#);
    /// # Ok::<(), tollgate_core::InvalidOutput>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidOutput`] if the body has bytes that are no UTF-8 where they would have to be read.
    pub fn with_meta(&self, key: &str, value: &RawValue) -> Result<Self, InvalidOutput> {
        let found: Found<'_> = serde_json::from_slice(&self.0.body).map_err(InvalidOutput)?;
        let name = serde_json::Value::from(key);
        let value = value.get();
        let body = match found.meta {
            None => append(&self.0.body, &format!(r#""_meta":{{{name}:{value}}}"#)),
            Some(meta) => match Members::read(meta.get()) {
                Err(_) => replace(
                    &self.0.body,
                    meta.get(),
                    format!("{{{name}:{value}}}").as_bytes(),
                ),
                Ok(members) => match members.iter().rfind(|(known, _)| *known == key) {
                    Some((_, old)) => replace(&self.0.body, old.get(), value.as_bytes()),
                    None => {
                        let longer = append(meta.get().as_bytes(), &format!("{name}:{value}"));
                        replace(&self.0.body, meta.get(), &longer)
                    }
                },
            },
        };
        Ok(self.with_body(body))
    }
}

/// The last `_meta` of a result.
struct Found<'a> {
    meta: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Found<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Found<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = Found { meta: None };
                while let Some(Text(name)) = map.next_key()? {
                    if name == "_meta" {
                        found.meta = Some(map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(found)
            }
        }

        from.deserialize_map(Object)
    }
}

/// Adds a member at the end of an object.
fn append(object: &[u8], member: &str) -> Bytes {
    let end = object.iter().rposition(|byte| *byte == b'}');
    let (before, after) = object.split_at(end.unwrap_or(object.len()));
    let last = before.iter().rfind(|byte| !byte.is_ascii_whitespace());
    let mut out = BytesMut::with_capacity(object.len() + member.len() + 1);
    out.put_slice(before);
    // only the bracket that opens an empty object needs no comma after it
    if last != Some(&b'{') {
        out.put_u8(b',');
    }
    out.put_slice(member.as_bytes());
    out.put_slice(after);
    out.freeze()
}

/// Writes something else in place of `old`, which is a slice of `whole`.
fn replace(whole: &[u8], old: &str, new: &[u8]) -> Bytes {
    // the place is the distance between the two pointers
    let start = (old.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    let (before, rest) = whole.split_at(start.min(whole.len()));
    let after = rest.get(old.len()..).unwrap_or_default();
    let mut out = BytesMut::with_capacity(whole.len() + new.len());
    out.put_slice(before);
    out.put_slice(new);
    out.put_slice(after);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json, value::to_raw_value};

    use super::*;

    fn marked(body: &str) -> String {
        let output = ToolOutput::from_json(body.to_owned()).unwrap();
        let value = to_raw_value(&json!([1])).unwrap();
        let marked = output.with_meta("k", &value).unwrap();
        String::from_utf8(marked.body().to_vec()).unwrap()
    }

    #[test]
    fn every_other_byte_stays() {
        for (body, expected) in [
            ("{}", r#"{"_meta":{"k":[1]}}"#),
            (" { } ", r#" { "_meta":{"k":[1]}} "#),
            (r#"{"n": 1e2 }"#, r#"{"n": 1e2 ,"_meta":{"k":[1]}}"#),
            (
                r#"{"_meta":{ },"n":"}"}"#,
                r#"{"_meta":{ "k":[1]},"n":"}"}"#,
            ),
            (
                r#"{"_meta":{"k": {} ,"a":1}}"#,
                r#"{"_meta":{"k": [1] ,"a":1}}"#,
            ),
            (r#"{"_meta":{"\u006b":2}}"#, r#"{"_meta":{"\u006b":[1]}}"#),
            (r#"{"_meta":null,"n":1}"#, r#"{"_meta":{"k":[1]},"n":1}"#),
            (r#"{"_meta":7}"#, r#"{"_meta":{"k":[1]}}"#),
            (
                r#"{"content":[{"_meta":{"k":0}}],"x":"{"}"#,
                r#"{"content":[{"_meta":{"k":0}}],"x":"{","_meta":{"k":[1]}}"#,
            ),
        ] {
            assert_eq!(marked(body), expected, "{body}");
        }
    }

    #[test]
    fn what_policy_reads_of_the_answer_is_the_same() {
        let said = "max-age=5";
        let output = ToolOutput::error_text("no").with_cache_control(said);
        let marked = output.with_meta("k", RawValue::NULL).unwrap();
        assert!(marked.is_error());
        assert_eq!(marked.freshness(), output.freshness());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a{}\\[\\]\",:\\\\ é\u{1}]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ab_{}\"]{0,3}|_meta|k", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_parser_sees_one_more_member_and_nothing_else(
            members in prop::collection::btree_map("[ab\"]{0,3}|_meta", any_json(), 0..5),
            key in "[a{}\"\\\\é]{0,3}|k|_meta",
            value in any_json(),
            pretty: bool,
        ) {
            let mut object: Map<String, Value> = members.into_iter().collect();
            let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let body = write(&object).unwrap();
            let output = ToolOutput::from_json(body).unwrap();
            let marked = output.with_meta(&key, &to_raw_value(&value).unwrap()).unwrap();
            let meta = object.entry("_meta").or_insert_with(|| json!({}));
            if !meta.is_object() {
                *meta = json!({});
            }
            meta[key] = value;
            prop_assert_eq!(serde_json::from_slice::<Value>(marked.body()).unwrap(), Value::from(object));
        }
    }
}
