//! Writes a JSON text in one form, whatever form it came in: members by name, no white space.
//!
//! Numbers keep their spelling, so no digit is lost.

use std::collections::BTreeMap;

use callward_core::FingerprintKey;
use serde_json::value::RawValue;

/// Returns the canonical form; `None` if the text is not JSON, or if two parsers may read it
/// differently: a person would approve one reading, and the server might act on the other.
pub(crate) fn canonical(text: &[u8]) -> Option<String> {
    // from here on no object has a member twice
    FingerprintKey::fixed().json(text)?;
    let mut out = String::with_capacity(text.len());
    write(std::str::from_utf8(text).ok()?.trim_ascii(), &mut out).ok()?;
    Some(out)
}

fn write(text: &str, out: &mut String) -> serde_json::Result<()> {
    match text.as_bytes().first() {
        Some(b'{') => {
            let mut separator = '{';
            for (name, value) in serde_json::from_str::<BTreeMap<String, &RawValue>>(text)? {
                out.push(separator);
                out.push_str(&serde_json::to_string(&name)?);
                out.push(':');
                write(value.get(), out)?;
                separator = ',';
            }
            out.push_str(if separator == '{' { "{}" } else { "}" });
        }
        Some(b'[') => {
            let mut separator = '[';
            for value in serde_json::from_str::<Vec<&RawValue>>(text)? {
                out.push(separator);
                write(value.get(), out)?;
                separator = ',';
            }
            out.push_str(if separator == '[' { "[]" } else { "]" });
        }
        Some(b'"') => {
            out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(
                text,
            )?)?);
        }
        _ => out.push_str(text),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn one_value_has_one_form_and_numbers_keep_their_digits() {
        for (text, form) in [
            (
                r#" { "b" : [ 1 , 2.50e+1 ] , "a" : { } } "#,
                r#"{"a":{},"b":[1,2.50e+1]}"#,
            ),
            (r#"{"\u0061":"\u0062\n\"\\"}"#, r#"{"a":"b\n\"\\"}"#),
            (
                "[9007199254740993,-0,true,null,[]]",
                "[9007199254740993,-0,true,null,[]]",
            ),
            (r#"{"a":",:[]{}"}"#, r#"{"a":",:[]{}"}"#),
            (" 7 ", "7"),
        ] {
            assert_eq!(canonical(text.as_bytes()).as_deref(), Some(form), "{text}");
            assert_eq!(canonical(form.as_bytes()).as_deref(), Some(form));
        }
        for text in [r#"{"a":1,"a":2}"#, "", "{", "nul", r#""\ud800""#, "{} {}"] {
            assert_eq!(canonical(text.as_bytes()), None, "{text}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_the_same_value(value in json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let form = canonical(text.as_bytes()).unwrap();
                prop_assert_eq!(serde_json::from_str::<Value>(&form).unwrap(), value.clone());
                prop_assert_eq!(form, canonical(value.to_string().as_bytes()).unwrap());
            }
        }
    }
}
