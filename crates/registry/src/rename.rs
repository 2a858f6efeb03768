//! Renames a listed tool, and changes nothing else.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Returns the listed object with another top-level `name`; every other byte stays as it is.
///
/// # Errors
///
/// The parser's error if `raw` is not a JSON object with exactly one `name`.
pub(crate) fn rename(raw: &[u8], name: &str) -> Result<Bytes, serde_json::Error> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: &'a RawValue,
    }
    let old = serde_json::from_slice::<Named<'_>>(raw)?.name.get();
    // `old` borrows from `raw`: its offset is the distance of the pointers
    let start = old.as_ptr() as usize - raw.as_ptr() as usize;
    let new = serde_json::to_string(name)?;
    let mut renamed = Vec::with_capacity(raw.len() + new.len());
    renamed.extend_from_slice(&raw[..start]);
    renamed.extend_from_slice(new.as_bytes());
    renamed.extend_from_slice(&raw[start + old.len()..]);
    Ok(renamed.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn a_definition_without_exactly_one_name_is_refused() {
        for raw in ["{}", "[]", r#"{"name":1,"name":2}"#, "{\"name\":", ""] {
            assert!(rename(raw.as_bytes(), "x").is_err(), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn only_the_name_changes(
            others in prop::collection::btree_map("[a-z]{1,6}", any::<i64>(), 0..6),
            old in any::<String>(),
            new in any::<String>(),
        ) {
            let mut tool: Map<String, Value> =
                others.into_iter().map(|(key, value)| (key, Value::from(value))).collect();
            tool.insert("name".into(), old.into());
            let renamed = rename(Value::Object(tool.clone()).to_string().as_bytes(), &new).unwrap();
            tool.insert("name".into(), new.into());
            prop_assert_eq!(serde_json::from_slice::<Value>(&renamed).unwrap(), Value::Object(tool));
        }
    }
}
