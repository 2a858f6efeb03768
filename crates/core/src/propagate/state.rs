//! `tracestate`: the data of tracing systems beside the trace context.

/// How long a `tracestate` may be that is passed on: as long as the specification says that it
/// should be able to be.
const MAX_BYTES: usize = 512;
/// How many members it may have.
const MAX_MEMBERS: usize = 32;
/// Members longer than this are left out first, where something has to be.
const LONG_MEMBER: usize = 128;

/// Reads a `tracestate`, and cuts it to its limit. Nothing if it breaks the format: then none of it
/// can be relied on.
pub(super) fn read(text: &str) -> Option<Box<str>> {
    let mut members: Vec<&str> = Vec::new();
    for member in text.split(',') {
        let member = member.trim_matches([' ', '\t']);
        if member.is_empty() {
            continue;
        }
        let (key, value) = member.split_once('=')?;
        let is_there = || members.iter().any(|other| key_of(other) == key);
        if !is_key(key) || !is_value(value) || members.len() == MAX_MEMBERS || is_there() {
            return None;
        }
        members.push(member);
    }
    let len = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>();
    while len(&members) > MAX_BYTES + 1 {
        // the one written last stands first, so what stands last is the oldest
        let long = members
            .iter()
            .rposition(|member| member.len() > LONG_MEMBER);
        members.remove(long.unwrap_or(members.len() - 1));
    }
    (!members.is_empty()).then(|| members.join(",").into())
}

fn key_of(member: &str) -> &str {
    member.split_once('=').map_or(member, |(key, _)| key)
}

/// `simple-key` or `multi-tenant-key`, taken together as level 2 of the specification does.
fn is_key(key: &str) -> bool {
    let begins = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let goes_on = |byte: u8| begins(byte) || b"_-*/@".contains(&byte);
    key.len() <= 256 && key.bytes().next().is_some_and(begins) && key.bytes().all(goes_on)
}

fn is_value(value: &str) -> bool {
    let fits = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b',' && byte != b'=';
    !value.is_empty() && value.len() <= 256 && value.bytes().all(fits)
}
