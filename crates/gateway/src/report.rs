//! What the cache did with a call, told in the result's `_meta` to who asks.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tollgate::core::CACHE_META;
use tollgate::{CacheStatus, CallRecord, ToolOutput};
use tollgate_mcp::wire::object;

/// What is told.
#[derive(Debug, Serialize)]
struct Report {
    status: &'static str,
    /// Why it was sent without a look-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// How long ago the answer was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_ms: Option<u64>,
}

/// Says whether a request's `_meta` asks: `true` under the key that the answer stands under.
pub(crate) fn is_asked(meta: Option<&Bytes>) -> bool {
    // metadata never fails a call: what cannot be read asks for nothing
    let asked = meta.and_then(|meta| object::get_member(meta, CACHE_META).ok().flatten());
    asked == Some(b"true")
}

/// Writes into a copy of the answer what the cache did. What is stored stays as it is.
pub(crate) fn mark(output: ToolOutput, record: &CallRecord) -> ToolOutput {
    let status = record.cache();
    if status == CacheStatus::Stale {
        // who serves such an answer marks it, whether asked or not
        return output;
    }
    let report = Report {
        status: status.as_str(),
        reason: record.cache_bypass(),
        age_ms: age(&output, record).map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
    };
    let marked = serde_json::value::to_raw_value(&report)
        .ok()
        .and_then(|report| output.with_meta(CACHE_META, &report).ok());
    // an answer that cannot be marked is still the answer
    marked.unwrap_or(output)
}

/// How old the answer is: what was old when it came is that much older now.
fn age(output: &ToolOutput, record: &CallRecord) -> Option<Duration> {
    match (record.cache_age(), output.freshness().age) {
        (Some(here), Some(before)) => Some(here.saturating_add(before)),
        (here, before) => here.or(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_true_asks() {
        for (meta, asks) in [
            (r#"{"io.tollgate/cache":true}"#, true),
            (r#"{"io.tollgate\/cache": true }"#, true),
            (r#"{"io.tollgate/cache":"true"}"#, false),
            (
                r#"{"io.tollgate/cache":true,"io.tollgate/cache":true}"#,
                false,
            ),
            (r#"{"cache":true}"#, false),
            ("1", false),
        ] {
            let meta = Bytes::from_static(meta.as_bytes());
            assert_eq!(is_asked(Some(&meta)), asks, "{meta:?}");
        }
        assert!(!is_asked(None));
    }

    fn marked(record: &CallRecord) -> String {
        let output = ToolOutput::from_json(r#"{"content":[],"_meta":{"a":1}}"#).unwrap();
        let marked = mark(output, record);
        String::from_utf8(marked.body().to_vec()).unwrap()
    }

    #[test]
    fn what_the_cache_did_is_added_and_nothing_else_changes() {
        let record = CallRecord::new();
        record.set_cache(CacheStatus::Hit);
        record.set_cache_age(Duration::from_millis(250));
        assert_eq!(
            marked(&record),
            r#"{"content":[],"_meta":{"a":1,"io.tollgate/cache":{"status":"hit","age_ms":250}}}"#
        );
        let record = CallRecord::new();
        record.set_cache_bypass("writing");
        assert_eq!(
            marked(&record),
            r#"{"content":[],"_meta":{"a":1,"io.tollgate/cache":{"status":"bypass","reason":"writing"}}}"#
        );
    }

    #[test]
    fn what_a_cache_further_up_said_of_the_age_is_added() {
        let text = r#"{"_meta":{"io.tollgate/cache":{"status":"hit","age_ms":50}}}"#;
        let output = ToolOutput::from_json(text).unwrap();
        let record = CallRecord::new();
        record.set_cache(CacheStatus::Hit);
        record.set_cache_age(Duration::from_millis(250));
        let marked = mark(output, &record);
        assert_eq!(marked.body(), &text.replace("50", "300"));
    }

    #[test]
    fn what_is_marked_as_stale_is_not_marked_twice() {
        let record = CallRecord::new();
        record.set_cache(CacheStatus::Stale);
        assert_eq!(marked(&record), r#"{"content":[],"_meta":{"a":1}}"#);
    }
}
