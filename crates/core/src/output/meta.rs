//! Adds to the `_meta` of an answer without changing another byte, and separates the keys that
//! others wrote.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::value::RawValue;

use super::{InvalidOutput, ToolOutput};
use crate::members::Members;

/// The key under which members are moved that a server sent under keys of this runtime: in the
/// `_meta` of a result, and in the `data` of an error.
pub const UPSTREAM_META: &str = "io.callward/upstream";

/// Returns `true` if a key of a `_meta` is one that only this runtime writes for clients.
pub fn is_our_meta(key: &str) -> bool {
    key.starts_with("io.callward/")
}

impl ToolOutput {
    /// Returns a copy of the answer with one more member in its `_meta`; every other byte stays as
    /// it is. A member of that name is replaced, and so is a `_meta` that is not an object. Where a
    /// name is given twice, the last one counts, as most parsers have it.
    ///
    /// ```
    /// use callward_core::ToolOutput;
    ///
    /// let output = ToolOutput::from_json(r#"{"content": [], "_meta":{"a":1} }"#)?;
    /// let marked = output.with_meta("b", &serde_json::value::RawValue::TRUE)?;
    /// assert_eq!(marked.body(), r#"{"content": [], "_meta":{"a":1,"b":true} }"#);
    /// # Ok::<(), callward_core::InvalidOutput>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidOutput`] if the body has bytes that are no UTF-8 where they would have to be read.
    pub fn with_meta(&self, key: &str, value: &RawValue) -> Result<Self, InvalidOutput> {
        let body = &self.0.body;
        let (name, value) = (serde_json::Value::from(key), value.get());
        let members: Members<'_> = serde_json::from_slice(body).map_err(InvalidOutput::Json)?;
        let body = match members.last("_meta") {
            None => append(body, &format!(r#""_meta":{{{name}:{value}}}"#)),
            Some(meta) => match Members::read(meta.get()).map(|members| members.last(key)) {
                Err(_) => replace(body, meta, format!("{{{name}:{value}}}").as_bytes()),
                Ok(Some(old)) => replace(body, old, value.as_bytes()),
                Ok(None) => {
                    let longer = append(meta.get().as_bytes(), &format!("{name}:{value}"));
                    replace(body, meta, &longer)
                }
            },
        };
        Ok(self.with_body(body))
    }

    /// Moves what a server wrote into the `_meta` under keys of ours to [`UPSTREAM_META`], so that
    /// what a client finds under them is ours. What such members say of freshness counts there too.
    /// Every other byte stays as it is outside of that `_meta`.
    ///
    /// # Errors
    ///
    /// [`InvalidOutput`] as for [`with_meta`](Self::with_meta).
    pub fn with_ours_nested(self) -> Result<Self, InvalidOutput> {
        match nest_ours(&self.0.body).map_err(InvalidOutput::Json)? {
            Some(body) => Ok(self.with_body(body)),
            None => Ok(self),
        }
    }
}

/// Moves the members under keys of ours in the `_meta` of an object to [`UPSTREAM_META`] there;
/// nothing if there are none. Every other byte stays as it is outside of that `_meta`.
///
/// # Errors
///
/// The parser's error if `whole` is not a JSON object.
pub fn nest_ours(whole: &[u8]) -> serde_json::Result<Option<Bytes>> {
    if !may_have_ours(whole) {
        return Ok(None);
    }
    let members: Members<'_> = serde_json::from_slice(whole)?;
    let mut out = Vec::new();
    let mut copied = 0;
    for (_, meta) in members.iter().filter(|(name, _)| *name == "_meta") {
        if let Some(nested) = nested(meta.get()) {
            let start = place(whole, meta);
            out.extend_from_slice(whole.get(copied..start).unwrap_or_default());
            out.extend_from_slice(nested.as_bytes());
            copied = start + meta.get().len();
        }
    }
    if out.is_empty() {
        return Ok(None);
    }
    out.extend_from_slice(whole.get(copied..).unwrap_or_default());
    Ok(Some(out.into()))
}

/// Returns `true` if a body may contain keys of this runtime: a scan of the bytes costs a hundredth
/// of reading them. A name may be written with escapes, too.
fn may_have_ours(body: &[u8]) -> bool {
    static PARTS: LazyLock<[Finder<'_>; 2]> =
        LazyLock::new(|| ["io.callward", "\\u"].map(Finder::new));
    PARTS.iter().any(|part| part.find(body).is_some())
}

/// Writes a `_meta` with the members under our keys moved; nothing if it has none.
fn nested(meta: &str) -> Option<String> {
    let Ok(members) = Members::read(meta) else {
        // names that are not text here may be text to other parsers
        return meta.starts_with('{').then(|| "{}".to_owned());
    };
    let (ours, theirs): (Vec<_>, Vec<_>) = members.iter().partition(|(key, _)| is_our_meta(key));
    if ours.is_empty() {
        return None;
    }
    let member = |(key, value): (&str, &RawValue)| {
        format!("{}:{}", serde_json::Value::from(key), value.get())
    };
    let ours: Vec<_> = ours.into_iter().map(member).collect();
    let mut all: Vec<_> = theirs.into_iter().map(member).collect();
    all.push(format!("\"{UPSTREAM_META}\":{{{}}}", ours.join(",")));
    Some(format!("{{{}}}", all.join(",")))
}

/// Removes the member `resultType` that has this value. Every other byte stays as it is, unless the
/// name is written with escapes.
pub(super) fn without_result_type(body: &[u8], value: &RawValue) -> serde_json::Result<Bytes> {
    let (before, rest) = body.split_at(place(body, value));
    let after = rest.get(value.get().len()..).unwrap_or_default();
    let name = before.trim_ascii_end().strip_suffix(b":");
    let name = name.and_then(|name| name.trim_ascii_end().strip_suffix(b"\"resultType\""));
    if let Some(before) = name {
        // with the comma that follows, or else with that before it
        return Ok(match after.trim_ascii_start().strip_prefix(b",") {
            Some(after) => [before, after].concat().into(),
            None => {
                let before = before.trim_ascii_end();
                let before = before.strip_suffix(b",").unwrap_or(before);
                [before, after].concat().into()
            }
        });
    }
    let members: Members<'_> = serde_json::from_slice(body)?;
    let others = members.iter().filter(|(name, _)| *name != "resultType");
    let others = others.map(|(name, value)| format!("{}:{}", serde_json::Value::from(name), value));
    Ok(format!("{{{}}}", others.collect::<Vec<_>>().join(",")).into())
}

/// Adds a member at the end of an object.
fn append(object: &[u8], member: &str) -> Bytes {
    let end = object.iter().rposition(|byte| *byte == b'}');
    let (before, after) = object.split_at(end.unwrap_or(object.len()));
    let last = before.iter().rfind(|byte| !byte.is_ascii_whitespace());
    // only the bracket that opens an empty object needs no comma after it
    let comma: &[u8] = if last == Some(&b'{') { b"" } else { b"," };
    [before, comma, member.as_bytes(), after].concat().into()
}

/// Returns the position of a slice of `whole`: the distance between the two pointers.
fn place(whole: &[u8], part: &RawValue) -> usize {
    let start = (part.get().as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    start.min(whole.len())
}

/// Writes something else in place of `old`, which is a slice of `whole`.
fn replace(whole: &[u8], old: &RawValue, new: &[u8]) -> Bytes {
    let (before, rest) = whole.split_at(place(whole, old));
    let after = rest.get(old.get().len()..).unwrap_or_default();
    [before, new, after].concat().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json, value::to_raw_value};

    use super::*;
    use crate::Freshness;
    use crate::fingerprint::tests::any_json;

    fn marked(body: &str) -> String {
        let output = ToolOutput::from_json(body.to_owned()).unwrap();
        let value = to_raw_value(&json!([1])).unwrap();
        let marked = output.with_meta("k", &value).unwrap();
        String::from_utf8(marked.body().to_vec()).unwrap()
    }

    #[test]
    fn every_other_byte_stays() {
        let rows = r#"
{} => {"_meta":{"k":[1]}}
 { }  =>  { "_meta":{"k":[1]}} 
{"n": 1e2 } => {"n": 1e2 ,"_meta":{"k":[1]}}
{"_meta":{ },"n":"}"} => {"_meta":{ "k":[1]},"n":"}"}
{"_meta":{"k": {} ,"a":1}} => {"_meta":{"k": [1] ,"a":1}}
{"_meta":{"\u006b":2}} => {"_meta":{"\u006b":[1]}}
{"_meta":null,"n":1} => {"_meta":{"k":[1]},"n":1}
{"_meta":7} => {"_meta":{"k":[1]}}
{"_meta":1,"_meta":{}} => {"_meta":1,"_meta":{"k":[1]}}
{"content":[{"_meta":{"k":0}}],"x":"{"} => {"content":[{"_meta":{"k":0}}],"x":"{","_meta":{"k":[1]}}"#;
        for (body, expected) in rows.lines().filter_map(|row| row.split_once(" => ")) {
            assert_eq!(marked(body), expected, "{body}");
        }
    }

    #[test]
    fn what_a_server_wrote_under_our_keys_is_found_apart() {
        let rows = r#"
{"a": 1,"o/cache":{"status":"hit"} , "b":2} => {"a":1,"b":2,"o/upstream":{"o/cache":{"status":"hit"}}}
{"io.callwar\u0064\/trail":[]} => {"o/upstream":{"o/trail":[]}}
{"o/x":1,"o/x":2} => {"o/upstream":{"o/x":1,"o/x":2}}
{"o/upstream":1} => {"o/upstream":{"o/upstream":1}}
{"\ud800":1,"o/x":2} => {"REPLACED":1,"o/upstream":{"o/x":2}}"#;
        let rows = rows
            .replace("\"o/", "\"io.callward/")
            .replace("REPLACED", "\u{fffd}");
        for (meta, nested) in rows.lines().filter_map(|row| row.split_once(" => ")) {
            for body in [
                r#" {"content": [ ],"_meta": META }"#,
                r#"{"_meta":{"c": 3},"_meta":META,"x":"io.callward/x"}"#,
                r#"{"\u005fmeta":META,"content":[{"_meta":{"io.callward/x":1}}]}"#,
            ] {
                let output = ToolOutput::from_json(body.replace("META", meta)).unwrap();
                let kept = output.with_ours_nested().unwrap();
                assert_eq!(kept.body(), &body.replace("META", nested));
            }
        }
        let others = r#"{"content":[{"text":"io.callward/cache \u00fc"}],"_meta":{ "a" : 1e2 }}
{"_meta":"io.callward/cache","io.callward/cache":1}
{"_meta":{"x":{"io.callward/cache":1}}}"#;
        for body in others.lines() {
            let output = ToolOutput::from_json(body).unwrap();
            assert_eq!(output.with_ours_nested().unwrap().body(), body);
        }
    }

    #[test]
    fn what_policy_reads_of_the_answer_is_the_same() {
        for body in [
            r#"{"content":[],"isError":true,"ttlMs":5000}"#,
            r#"{"_meta":{"io.callward/cache":{"status":"stale","age_ms":250}}}"#,
        ] {
            let output = ToolOutput::from_json(body).unwrap();
            let read = |output: &ToolOutput| (output.is_error(), output.freshness());
            let said = read(&output);
            assert!(said.1 != Freshness::default());
            assert_eq!(read(&output.with_meta("k", RawValue::NULL).unwrap()), said);
            assert_eq!(read(&output.with_ours_nested().unwrap()), said);
        }
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
