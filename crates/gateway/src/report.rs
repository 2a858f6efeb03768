//! What the cache did with a call, and all decisions about it, in the result's `_meta` on request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::refine::Applied;
use callward::core::{CACHE_META, TRAIL_META};
use callward::{CacheStatus, CallRecord, Tool, ToolCall, ToolError, ToolOutput, Trail};
use callward_mcp::wire::object;
use serde::Serialize;

/// What each result reports about its call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reports {
    /// What the cache did.
    pub(crate) cache: bool,
    /// Everything that was decided; errors tell it too.
    pub(crate) trail: bool,
}

impl Reports {
    /// Adds what a request's `_meta` asks for: `true` under the key that the answer stands under.
    pub(crate) fn or_asked(self, meta: Option<&Bytes>) -> Self {
        let Some(meta) = meta else { return self };
        Self {
            cache: self.cache || is_asked(meta, CACHE_META),
            trail: self.trail || is_asked(meta, TRAIL_META),
        }
    }

    /// Begins to record a call, if a report is wanted.
    pub(crate) fn begin(self, call: ToolCall) -> (ToolCall, Option<Taken>) {
        let record = match self {
            Self { trail: true, .. } => CallRecord::new(),
            Self { cache: true, .. } => CallRecord::for_counting(),
            _ => return (call, None),
        };
        let taken = Taken {
            reports: self,
            record: Arc::new(record),
            tool: call.tool().clone(),
            applied: call.applied(),
        };
        (call.with_record(taken.record.clone()), Some(taken))
    }
}

/// A call that is taken down.
#[derive(Debug)]
pub(crate) struct Taken {
    reports: Reports,
    record: Arc<CallRecord>,
    tool: Arc<Tool>,
    applied: Applied,
}

impl Taken {
    /// Writes the reports into a copy of the result. The stored one stays as it is.
    pub(crate) fn tell(
        &self,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let trail = self.reports.trail.then(|| {
            Trail::observed(
                &self.tool,
                self.applied,
                &self.record.facts(),
                Some(&result),
            )
        });
        match (result, trail) {
            (Err(mut error), Some(trail)) => {
                error.trail = Some(Arc::new(trail));
                Err(error)
            }
            (Err(error), None) => Err(error),
            (Ok(output), trail) => {
                let output = match self.reports.cache {
                    true => mark(output, &self.record),
                    false => output,
                };
                Ok(match trail {
                    Some(trail) => with_meta(output, TRAIL_META, &trail),
                    None => output,
                })
            }
        }
    }
}

/// What is reported.
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

/// Returns `true` if a request's `_meta` has `true` under this key.
pub(crate) fn is_asked(meta: &Bytes, key: &str) -> bool {
    // metadata never fails a call: metadata that cannot be read is ignored
    object::get_member(meta, key).ok().flatten() == Some(b"true")
}

/// Writes into a copy of the answer what the cache did. What is stored stays as it is.
fn mark(output: ToolOutput, record: &CallRecord) -> ToolOutput {
    let facts = record.facts();
    let status = facts.cache;
    if status == CacheStatus::Stale {
        // who serves such an answer marks it, whether asked or not
        return output;
    }
    let report = Report {
        status: status.as_str(),
        reason: facts.cache_bypass,
        age_ms: age(&output, facts.cache_age)
            .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
    };
    with_meta(output, CACHE_META, &report)
}

fn with_meta(output: ToolOutput, key: &str, value: &impl Serialize) -> ToolOutput {
    let marked = serde_json::value::to_raw_value(value)
        .ok()
        .and_then(|value| output.with_meta(key, &value).ok());
    // an answer that cannot be marked is still the answer
    marked.unwrap_or(output)
}

/// How old the answer is: what was old when it came is that much older now.
fn age(output: &ToolOutput, here: Option<Duration>) -> Option<Duration> {
    match (here, output.freshness().age) {
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
            (r#"{"io.callward/cache":true}"#, true),
            (r#"{"io.callward\/cache": true }"#, true),
            (r#"{"io.callward/cache":"true"}"#, false),
            (
                r#"{"io.callward/cache":true,"io.callward/cache":true}"#,
                false,
            ),
            (r#"{"cache":true}"#, false),
            ("1", false),
        ] {
            let meta = Bytes::from_static(meta.as_bytes());
            let asked = Reports::default().or_asked(Some(&meta));
            assert_eq!((asked.cache, asked.trail), (asks, false), "{meta:?}");
        }
        assert_eq!(Reports::default().or_asked(None), Reports::default());
        let trail = Bytes::from_static(br#"{"io.callward/trail":true}"#);
        let asked = Reports::default().or_asked(Some(&trail));
        assert_eq!((asked.cache, asked.trail), (false, true));
    }

    fn marked(record: &CallRecord) -> String {
        let output = ToolOutput::from_json(r#"{"content":[],"_meta":{"a":1}}"#).unwrap();
        let marked = mark(output, record);
        String::from_utf8(marked.body().to_vec()).unwrap()
    }

    #[test]
    fn what_the_cache_did_is_added_and_nothing_else_changes() {
        let record = CallRecord::new();
        record.with(|facts| {
            facts.cache = CacheStatus::Hit;
            facts.cache_age = Some(Duration::from_millis(250));
        });
        assert_eq!(
            marked(&record),
            r#"{"content":[],"_meta":{"a":1,"io.callward/cache":{"status":"hit","age_ms":250}}}"#
        );
        let record = CallRecord::new();
        record.with(|facts| facts.cache_bypass = Some("writing"));
        assert_eq!(
            marked(&record),
            r#"{"content":[],"_meta":{"a":1,"io.callward/cache":{"status":"bypass","reason":"writing"}}}"#
        );
    }

    #[test]
    fn what_a_cache_further_up_said_of_the_age_is_added() {
        let text = r#"{"_meta":{"io.callward/cache":{"status":"hit","age_ms":50}}}"#;
        let output = ToolOutput::from_json(text).unwrap();
        let record = CallRecord::new();
        record.with(|facts| {
            facts.cache = CacheStatus::Hit;
            facts.cache_age = Some(Duration::from_millis(250));
        });
        let marked = mark(output, &record);
        assert_eq!(marked.body(), &text.replace("50", "300"));
    }

    #[test]
    fn what_is_marked_as_stale_is_not_marked_twice() {
        let record = CallRecord::new();
        record.with(|facts| facts.cache = CacheStatus::Stale);
        assert_eq!(marked(&record), r#"{"content":[],"_meta":{"a":1}}"#);
    }
}
