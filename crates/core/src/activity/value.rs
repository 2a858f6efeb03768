//! Values of a call's arguments, as they are shown.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::text;

/// A value is shown with at most so many characters.
pub(super) const MOST: usize = 48;
/// Lists of up to so many plain values are shown, longer ones are counted.
const FEW: usize = 3;

/// What there is to show for each wanted argument.
pub(super) type Shown = SmallVec<[Option<String>; 2]>;

/// Looks the wanted arguments up in a JSON object. What is absent, `null`, empty, given twice, or in
/// something that is no JSON object is not there.
pub(super) fn pick(arguments: &[u8], wanted: &[&str]) -> Shown {
    let nothing = || wanted.iter().map(|_| None).collect();
    let mut json = serde_json::Deserializer::from_slice(arguments);
    let picked = json.deserialize_map(Picker { wanted });
    match picked {
        Ok(picked) if json.end().is_ok() => picked,
        _ => nothing(),
    }
}

struct Picker<'w> {
    wanted: &'w [&'w str],
}

impl<'de> Visitor<'de> for Picker<'_> {
    type Value = Shown;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the arguments of a call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shown, A::Error> {
        let mut shown: Shown = self.wanted.iter().map(|_| None).collect();
        let mut met: SmallVec<[bool; 2]> = self.wanted.iter().map(|_| false).collect();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let at = self.wanted.iter().position(|wanted| *wanted == key);
            match at.and_then(|at| shown.get_mut(at).zip(met.get_mut(at))) {
                Some((place, met)) => {
                    let value = map.next_value::<&'de RawValue>()?;
                    // which of two counts is up to the server: neither is shown for the other
                    let again = std::mem::replace(met, true);
                    *place = show(value.get()).filter(|_| !again);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(shown)
    }
}

/// Shows a JSON value in a few characters; nothing for one that says nothing.
fn show(raw: &str) -> Option<String> {
    let shown = match raw.bytes().next()? {
        b'"' => text::line(&serde_json::from_str::<String>(raw).ok()?, MOST),
        b'[' => list(raw)?,
        b'{' => counted(serde_json::from_str::<Fields>(raw).ok()?.0, "field"),
        b'n' => return None,
        _ => text::line(raw, MOST),
    };
    (!shown.is_empty()).then_some(shown)
}

fn list(raw: &str) -> Option<String> {
    let items: Items<'_> = serde_json::from_str(raw).ok()?;
    let plain = |raw: &&RawValue| !raw.get().starts_with(['[', '{']);
    if items.count > FEW || items.first.is_empty() || !items.first.iter().all(plain) {
        return Some(counted(items.count, "item"));
    }
    let shown: Vec<String> = items
        .first
        .iter()
        .filter_map(|raw| show(raw.get()))
        .collect();
    Some(text::line(&shown.join(", "), MOST))
}

fn counted(count: usize, of: &str) -> String {
    if count == 1 {
        format!("1 {of}")
    } else {
        format!("{count} {of}s")
    }
}

/// The first few items of a list, and how many there are.
#[derive(Default)]
struct Items<'a> {
    first: SmallVec<[&'a RawValue; FEW]>,
    count: usize,
}

impl<'de> serde::Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Few;

        impl<'de> Visitor<'de> for Few {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Items::default();
                while items.first.len() < FEW {
                    let Some(item) = seq.next_element()? else {
                        return Ok(items);
                    };
                    items.first.push(item);
                    items.count += 1;
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    items.count += 1;
                }
                Ok(items)
            }
        }

        from.deserialize_seq(Few)
    }
}

/// How many members an object has.
struct Fields(usize);

impl<'de> serde::Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Count;

        impl<'de> Visitor<'de> for Count {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut count = 0;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Fields(count))
            }
        }

        from.deserialize_map(Count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &str) -> Option<String> {
        let arguments = format!(r#"{{"other": {{"id": 1}}, "id": {value}}}"#);
        pick(arguments.as_bytes(), &["id"]).remove(0)
    }

    #[test]
    fn values_are_shown_in_a_few_characters() {
        for (value, want) in [
            (r#""cus_1""#, Some("cus_1")),
            (r#""a\u0000\n b\u202e""#, Some("a b")),
            ("18446744073709551616", Some("18446744073709551616")),
            ("-1.50", Some("-1.50")),
            ("true", Some("true")),
            ("null", None),
            (r#""  ""#, None),
            (r#""\ud800""#, None),
            ("[7]", Some("7")),
            (r#"["a", 2, null]"#, Some("a, 2")),
            ("[1,2,3,4]", Some("4 items")),
            ("[[1]]", Some("1 item")),
            ("[]", Some("0 items")),
            (r#"{"a": 1, "b": {}}"#, Some("2 fields")),
        ] {
            assert_eq!(shown(value).as_deref(), want, "{value}");
        }
        let long = shown(&format!("\"{}\"", "x".repeat(1000))).unwrap();
        assert_eq!(long.chars().count(), MOST);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn what_is_no_object_has_no_arguments() {
        for odd in ["", "[]", "1", "{\"id\": 1", "{\"id\": 1} x", "{\"id\" 1}"] {
            assert_eq!(pick(odd.as_bytes(), &["id"])[..], [None], "{odd}");
        }
        assert_eq!(pick(b"{\"id\": \"\xff\"}", &["id"])[..], [None]);
    }

    #[test]
    fn of_an_argument_given_twice_nothing_is_shown() {
        for twice in [
            r#"{"id":"a","x":1,"id":"b"}"#,
            r#"{"id":"a","\u0069d":"a"}"#,
            r#"{"id":"a","id":null,"id":"b"}"#,
        ] {
            let shown = pick(twice.as_bytes(), &["id", "x"]);
            assert_eq!(shown.first(), Some(&None), "{twice}");
        }
        let shown = pick(br#"{"id":"a","x":1,"id":"b"}"#, &["id", "x"]);
        assert_eq!(shown[1].as_deref(), Some("1"));
    }

    #[test]
    fn depth_is_no_matter() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(shown(&deep).as_deref(), Some("1 item"));
        let beside = format!(r#"{{"x": {deep}, "id": 1}}"#);
        assert_eq!(pick(beside.as_bytes(), &["id"])[..], [Some("1".to_owned())]);
    }
}
