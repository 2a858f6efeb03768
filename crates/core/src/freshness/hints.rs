//! The freshness that a tool result states, in its members and in its `_meta`.

use std::sync::LazyLock;
use std::time::Duration;

use memchr::memmem::Finder;
use serde_json::value::RawValue;

use super::{CACHE_META, Freshness};
use crate::members::Members;
use crate::output::is_our_meta;
use crate::{CacheStatus, UPSTREAM_META};

/// The protocol's lifetime in milliseconds. It states it for lists, not for tool results; a server
/// may state it for a result too, and is believed.
const TTL: &str = "ttlMs";
/// The protocol's scope: `public` or `private`.
const SCOPE: &str = "cacheScope";
/// Proposed for tool results: `no-cache` or `cache`; with the prefix that is proposed, or without.
const HINT: [&str; 2] = ["cache_hint", "io.modelcontextprotocol/cache_hint"];

impl Freshness {
    /// Reads what a tool result says in its own body: the members `ttlMs` and `cacheScope` of the
    /// protocol, in the result or in its `_meta`; `cache_hint` in its `_meta`; and what a runtime
    /// of this kind further up wrote there under [`CACHE_META`], or is found to have written under
    /// [`UPSTREAM_META`](crate::UPSTREAM_META).
    ///
    /// A member of the wrong type reads as absent, and so does everything in a body that is not a
    /// JSON object: metadata never fails a call.
    pub(crate) fn from_result(body: &[u8]) -> Self {
        if !may_say(body) {
            return Self::default();
        }
        let Ok(top) = serde_json::from_slice::<Members<'_>>(body) else {
            return Self::default();
        };
        let mut said = Self::default();
        for (name, value) in top.iter() {
            said = said.strictest(member(name, value));
            // more than one only if a server wants two readings
            if name == "_meta"
                && let Ok(meta) = Members::read(value.get())
            {
                for (name, value) in meta.iter() {
                    let in_meta = meta_member(name, value, MOST_INSTANCES);
                    said = said.strictest(member(name, value)).strictest(in_meta);
                }
            }
        }
        said
    }
}

/// Returns `true` if the body may hold hints at all: a scan of the bytes costs a hundredth of
/// reading them. A name may be written with escapes, too.
fn may_say(body: &[u8]) -> bool {
    // preparing a search costs more than searching a short body
    static PARTS: LazyLock<[Finder<'_>; 4]> =
        LazyLock::new(|| ["_meta", TTL, SCOPE, "\\u"].map(Finder::new));
    PARTS.iter().any(|part| part.find(body).is_some())
}

/// What the protocol's own members say, wherever they stand.
fn member(name: &str, value: &RawValue) -> Freshness {
    let mut said = Freshness::default();
    match name {
        TTL => {
            said.max_age = millis(value);
            said.no_store = said.max_age == Some(Duration::ZERO);
        }
        SCOPE => said.private = word(value).as_deref() == Some("private"),
        _ => {}
    }
    said
}

/// How many instances of this runtime in a chain are considered.
const MOST_INSTANCES: u32 = 8;

/// What only `_meta` states, including that of at most `instances` further up.
fn meta_member(name: &str, value: &RawValue, instances: u32) -> Freshness {
    let mut said = Freshness::default();
    if name == UPSTREAM_META
        && let Some(instances) = instances.checked_sub(1)
        && let Ok(members) = Members::read(value.get())
    {
        for (name, value) in members.iter().filter(|(name, _)| is_our_meta(name)) {
            said = said.strictest(meta_member(name, value, instances));
        }
    } else if HINT.contains(&name) {
        said.no_store = word(value).as_deref() == Some("no-cache");
    } else if name == CACHE_META
        && let Ok(members) = Members::read(value.get())
    {
        for (name, value) in members.iter() {
            match name {
                // An upstream cache served it after its lifetime: it is not kept here.
                "status" if word(value).as_deref() == Some(CacheStatus::Stale.as_str()) => {
                    said.no_store = true;
                }
                "age_ms" => said.age = said.age.max(millis(value)),
                _ => {}
            }
        }
    }
    said
}

fn word(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// Reads milliseconds; a negative number counts as 0. A value that is not a number is ignored.
fn millis(value: &RawValue) -> Option<Duration> {
    let number: f64 = serde_json::from_str(value.get()).ok()?;
    if number.is_nan() || number < 1.0 {
        return Some(Duration::ZERO);
    }
    Some(Duration::try_from_secs_f64(number / 1000.0).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> Freshness {
        Freshness::from_result(body.as_bytes())
    }

    /// A body, and what it says: that it is never kept, is private, its lifetime and age in ms.
    const ROWS: &str = r#"
{"content":[],"ttlMs":1500} => max=1500
{"content":[],"_meta":{"ttlMs":1500}} => max=1500
{"ttlMs":9000,"_meta":{"x":1,"ttlMs":2e3}} => max=2000
{"\u005fmeta":{"ttl\u004ds":1500}} => max=1500
{"cacheScope":"private","content":[]} => private
{"ttlMs":0} => never max=0
{"ttlMs":-5} => never max=0
{"ttlMs":0.4} => never max=0
{"_meta":{"cache_hint":"no-cache"}} => never
{"_meta":{"io.modelcontextprotocol/cache_hint":"no-cache"}} => never
{"_meta":{"cache_hint":"cache","cacheScope":"public"}} =>
{"cacheScope":"public","content":[{"_meta":{"ttlMs":1}}]} =>
{"cache_hint":"no-cache"} =>
{"_meta":{"io.callward/upstream":{"cache_hint":"no-cache"}}} =>
{"_meta":{"io.callward/cache":{"status":"hit","age_ms":250}}} => age=250
{"_meta":{"io.callward/cache":{"status":"stale","age_ms":250}}} => never age=250
{"ttlMs":"60000","cacheScope":1} =>
{"ttlMs":null,"_meta":null} =>
{"_meta":[{"ttlMs":1}]} =>
{"_meta":{"ttlMs":[1],"cache_hint":{},"io.callward/cache":"stale"}} =>
{"_meta":{"io.callward/cache":{"status":7,"age_ms":"x"}}} =>
[] =>
{ =>
 =>
{"ttlMs":9,"ttlMs":5,"ttlMs":7} => max=5
{"_meta":{"ttlMs":5},"_meta":{"ttlMs":7}} => max=5
"#;

    #[test]
    fn each_body_says_what_its_row_says() {
        for (body, expected) in ROWS.lines().filter_map(|row| row.split_once(" =>")) {
            let said = said(body);
            let time = |name: &str, time: Option<Duration>| {
                time.map(|time| format!("{name}={}", time.as_millis()))
            };
            let found = [
                said.no_store.then(|| "never".to_owned()),
                said.private.then(|| "private".to_owned()),
                time("max", said.max_age),
                time("age", said.age),
            ];
            let found: Vec<_> = found.into_iter().flatten().collect();
            assert_eq!(found.join(" "), expected.trim_start(), "{body}");
        }
        assert_eq!(said(r#"{"ttlMs":1e300}"#).max_age, Some(Duration::MAX));
    }

    #[test]
    fn instances_further_up_are_heard_through_others_but_not_without_end() {
        let behind = |instances: usize| {
            let before = r#"{"io.callward/upstream":"#.repeat(instances);
            let stale = r#"{"io.callward/cache":{"status":"stale","age_ms":250}}"#;
            format!(r#"{{"_meta":{before}{stale}{}}}"#, "}".repeat(instances))
        };
        for instances in 0..8 {
            let said = said(&behind(instances));
            assert!(said.no_store && said.age == Some(Duration::from_millis(250)));
        }
        assert_eq!(said(&behind(100_000)), Freshness::default());
    }
}
