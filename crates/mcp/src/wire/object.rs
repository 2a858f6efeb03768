//! Edits one member of a raw JSON object and leaves every other byte as it was.

use std::ops::Range;

use bytes::Bytes;
use callward_core::Members;
use serde_json::value::RawValue;

use super::from_json;

/// A text that is not a JSON object, or one that has the member in question twice.
#[derive(Debug, thiserror::Error)]
#[error("not a usable JSON object: {0}")]
pub struct InvalidObject(String);

/// Returns the members of a raw object.
///
/// # Errors
///
/// [`InvalidObject`] if the text is not an object.
pub(crate) fn members(raw: &[u8]) -> Result<Members<'_>, InvalidObject> {
    begins(raw)?;
    from_json(raw).map_err(|error| InvalidObject(error.to_string()))
}

/// Checks that a text is exactly one JSON object.
///
/// # Errors
///
/// [`InvalidObject`] if it is not.
pub(crate) fn check(raw: &[u8]) -> Result<(), InvalidObject> {
    begins(raw)?;
    serde_json::from_slice::<serde::de::IgnoredAny>(raw)
        .map(|_| ())
        .map_err(|error| InvalidObject(error.to_string()))
}

fn begins(raw: &[u8]) -> Result<(), InvalidObject> {
    if raw.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        Ok(())
    } else {
        Err(InvalidObject("it does not begin with `{`".to_owned()))
    }
}

/// Returns the raw value of one member.
///
/// # Errors
///
/// [`InvalidObject`] if the text is not an object or has the member twice: two readers could then
/// disagree about its value.
pub fn get_member<'a>(raw: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, InvalidObject> {
    find(&members(raw)?, name)
}

/// Returns the object with one member set to a raw value: replaced in place, or added at the end.
///
/// # Errors
///
/// [`InvalidObject`] as for [`get_member`].
pub fn set_member(raw: &[u8], name: &str, value: &[u8]) -> Result<Bytes, InvalidObject> {
    let members = members(raw)?;
    let mut out = Vec::with_capacity(raw.len() + name.len() + value.len() + 4);
    if let Some(old) = find(&members, name)? {
        let old = span(raw, old)?;
        out.extend_from_slice(&raw[..old.start]);
        out.extend_from_slice(value);
        out.extend_from_slice(&raw[old.end..]);
    } else {
        // the text is a valid object, so its last bracket closes it
        let end = memchr::memrchr(b'}', raw).ok_or_else(outside)?;
        out.extend_from_slice(&raw[..end]);
        if members.iter().next().is_some() {
            out.push(b',');
        }
        super::write::named(&mut out, name, value);
        out.extend_from_slice(&raw[end..]);
    }
    Ok(out.into())
}

/// Returns the object without one member, and without the white space between the others.
///
/// # Errors
///
/// [`InvalidObject`] as for [`get_member`].
pub fn remove_member(raw: &[u8], name: &str) -> Result<Bytes, InvalidObject> {
    let members = members(raw)?;
    if find(&members, name)?.is_none() {
        return Ok(Bytes::copy_from_slice(raw));
    }
    without(raw, &[name])
}

/// Returns the object without these members, and without the white space between the others.
///
/// # Errors
///
/// [`InvalidObject`] if the text is not an object.
pub(crate) fn without(raw: &[u8], names: &[&str]) -> Result<Bytes, InvalidObject> {
    let mut out = vec![b'{'];
    let members = members(raw)?;
    for (name, value) in members.iter().filter(|(name, _)| !names.contains(name)) {
        super::write::member(&mut out, name, value.get().as_bytes());
    }
    out.push(b'}');
    Ok(out.into())
}

fn find<'a>(members: &Members<'a>, name: &str) -> Result<Option<&'a [u8]>, InvalidObject> {
    let mut hits = members.iter().filter(|(key, _)| *key == name);
    let first = hits.next().map(|(_, value)| value.get().as_bytes());
    match hits.next() {
        Some(_) => Err(twice(name)),
        None => Ok(first),
    }
}

/// The position of a part in `raw`.
fn span(raw: &[u8], part: &[u8]) -> Result<Range<usize>, InvalidObject> {
    let start = (part.as_ptr() as usize).wrapping_sub(raw.as_ptr() as usize);
    match start.checked_add(part.len()) {
        Some(end) if end <= raw.len() => Ok(start..end),
        _ => Err(outside()),
    }
}

/// Returns a part of a buffer as a slice that keeps the buffer alive; a copy if it is elsewhere.
pub(super) fn slice_of(buffer: &Bytes, part: &RawValue) -> Bytes {
    let part = part.get().as_bytes();
    span(buffer, part).map_or_else(|_| Bytes::copy_from_slice(part), |span| buffer.slice(span))
}

/// The members of an object that are known, as raw JSON; absent and null are the same.
#[derive(Debug, Default)]
pub(crate) struct Known {
    members: Vec<(&'static str, Bytes)>,
    /// Whether it has members beside those.
    pub(crate) has_others: bool,
}

impl Known {
    /// Takes the members of these names out of a raw object.
    ///
    /// # Errors
    ///
    /// [`InvalidObject`] if the text is not an object or has one of them twice: a proxy that
    /// checked this message before may have read the other one.
    pub(crate) fn parse(raw: &Bytes, names: &[&'static str]) -> Result<Self, InvalidObject> {
        let mut known = Self {
            members: Vec::with_capacity(names.len()),
            has_others: false,
        };
        for (name, value) in members(raw)?.iter() {
            let Some(name) = names.iter().find(|known| **known == name) else {
                known.has_others = true;
                continue;
            };
            if known.get(name).is_some() {
                return Err(twice(name));
            }
            known.members.push((name, slice_of(raw, value)));
        }
        known.members.retain(|(_, value)| value != "null");
        Ok(known)
    }

    /// Returns the raw value of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&Bytes> {
        let mut members = self.members.iter();
        members.find_map(|(known, value)| (*known == name).then_some(value))
    }

    /// Returns the value of a member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_slice(self.get(name)?).ok()
    }
}

fn twice(name: &str) -> InvalidObject {
    InvalidObject(format!("it has the member {name:?} twice"))
}

fn outside() -> InvalidObject {
    InvalidObject("a member is outside of it".to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_the_named_member_changes() {
        let raw = br#" { "b" : 1e2 , "na\u006de":"old","c": [ 1 ] } "#;
        let set = set_member(raw, "name", b"\"new\"").unwrap();
        assert_eq!(
            text(&set),
            r#" { "b" : 1e2 , "na\u006de":"new","c": [ 1 ] } "#
        );
        let added = set_member(raw, "x", b"{}").unwrap();
        assert_eq!(
            text(&added),
            r#" { "b" : 1e2 , "na\u006de":"old","c": [ 1 ] ,"x":{}} "#
        );
        assert_eq!(text(&set_member(b"{ }", "x", b"1").unwrap()), r#"{ "x":1}"#);
    }

    #[test]
    fn known_members_are_slices_and_null_is_absent() {
        let raw =
            Bytes::from_static(br#"{"n\u0061me":"a\u0062","c":{ "n" : 1e2 },"x":null,"y":1}"#);
        let known = Known::parse(&raw, &["name", "c", "x"]).unwrap();
        assert_eq!(known.text("name").as_deref(), Some("ab"));
        let value = known.get("c").unwrap();
        assert_eq!(&value[..], br#"{ "n" : 1e2 }"#);
        assert!(raw.as_ptr_range().contains(&value.as_ptr()));
        assert_eq!(known.text("c"), None, "of the wrong type");
        assert!(known.get("x").is_none() && known.get("y").is_none());
        for twice in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":null,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            "1",
        ] {
            assert!(Known::parse(&twice.into(), &["a"]).is_err(), "{twice}");
        }
    }

    #[test]
    fn a_member_that_is_there_twice_is_refused() {
        let raw = br#"{"a":1,"a":2,"b":3}"#;
        assert!(get_member(raw, "a").is_err());
        assert!(set_member(raw, "a", b"1").is_err());
        assert_eq!(get_member(raw, "b").unwrap(), Some(&b"3"[..]));
        for raw in ["[]", "", "{", "1", "{}{}"] {
            assert!(members(raw.as_bytes()).is_err(), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn set_then_get_and_remove_agree(
            map in prop::collection::btree_map(any::<String>(), any::<i64>(), 0..5),
            name in any::<String>(), value in any::<i64>(),
        ) {
            let raw = serde_json::to_vec(&map).unwrap();
            let set = set_member(&raw, &name, value.to_string().as_bytes()).unwrap();
            let mut expected = map;
            expected.insert(name.clone(), value);
            let read: BTreeMap<String, i64> = serde_json::from_slice(&set).unwrap();
            prop_assert_eq!(&read, &expected);
            expected.remove(&name);
            let removed = remove_member(&set, &name).unwrap();
            let read: BTreeMap<String, i64> = serde_json::from_slice(&removed).unwrap();
            prop_assert_eq!(read, expected);
        }
    }
}
