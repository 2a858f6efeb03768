//! Changes single strings of a JSON text, and no other byte.

use callward_core::Members;
use serde_json::Value;
use serde_json::value::RawValue;

/// Where a string is: the names of members from the outermost on. `*` stands for each element of an
/// array; any other value is taken for its only element.
pub type Path<'a> = &'a [&'a str];

/// Returns the text with other strings at these paths; `None` if it has none there. `change` gets
/// the last step of the path and the string.
pub fn rewrite(
    text: &str,
    paths: &[Path<'_>],
    change: impl Fn(&str, &str) -> String,
) -> Option<String> {
    let mut found = Vec::new();
    for path in paths {
        let last = path.last()?;
        select(text, path, &mut |part| found.push((*last, part)));
    }
    // parts are slices of the text: their offsets are the distances of the pointers
    let offset = |part: &str| (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    found.sort_unstable_by_key(|(_, part)| offset(part));
    let mut out = String::with_capacity(text.len() + 64);
    let mut copied = 0;
    for (last, part) in found {
        let (Ok(old), start) = (serde_json::from_str::<String>(part), offset(part)) else {
            continue;
        };
        out.push_str(text.get(copied..start)?);
        out.push_str(&Value::from(change(last, &old)).to_string());
        copied = start + part.len();
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// Passes on the raw values at a path.
fn select<'a>(raw: &'a str, path: &[&str], found: &mut impl FnMut(&'a str)) {
    let Some((step, rest)) = path.split_first() else {
        return found(raw);
    };
    if *step == "*" {
        match serde_json::from_str::<Vec<&RawValue>>(raw) {
            Ok(items) => items
                .iter()
                .for_each(|item| select(item.get(), rest, found)),
            Err(_) => select(raw, rest, found),
        }
    } else if let Ok(members) = Members::read(raw) {
        // readers disagree about which of two members with one name counts
        let named = members.iter().filter(|(name, _)| name == step);
        named.for_each(|(_, value)| select(value.get(), rest, found));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;

    #[test]
    fn strings_at_the_paths_change_and_nothing_else() {
        let paths: &[Path<'_>] = &[&["c", "*", "u"], &["c", "*", "r", "u"], &["n"]];
        for (text, expected) in [
            (
                r#"{ "n":"\u0061","c":[{"u":"b","x":1e2},{"r":{"u":"d"},"u":7}] }"#,
                r#"{ "n":"n:a","c":[{"u":"u:b","x":1e2},{"r":{"u":"u:d"},"u":7}] }"#,
            ),
            (r#"{"c":{"u":"b"}}"#, r#"{"c":{"u":"u:b"}}"#),
            (r#"{"n":"a","\u006e":"b"}"#, r#"{"n":"n:a","\u006e":"n:b"}"#),
            (r#"{"d":{"u":"b"}}"#, ""),
            ("[", ""),
        ] {
            let changed = rewrite(text, paths, |last, old| format!("{last}:{old}"));
            assert_eq!(changed.as_deref().unwrap_or_default(), expected, "{text}");
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
            let text = Value::Object(tool.clone()).to_string();
            let renamed = rewrite(&text, &[&["name"]], |_, _| new.clone()).unwrap();
            tool.insert("name".into(), new.into());
            prop_assert_eq!(serde_json::from_str::<Value>(&renamed).unwrap(), Value::Object(tool));
        }
    }
}
