//! What the cache did with a call, and all decisions about it, in the result's `_meta` on request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::refine::Applied;
use callward::core::trail::Stage;
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
            let facts = self.record.facts();
            let mut trail = Trail::observed(&self.tool, self.applied, &facts, Some(&result));
            // the names of rules are the operator's
            trail
                .decisions
                .retain(|decision| decision.stage != Stage::Authorize);
            trail
        });
        match result {
            Err(mut error) => {
                error.trail = trail.map(Arc::new);
                Err(error)
            }
            Ok(mut output) => {
                if self.reports.cache {
                    output = mark(output, &self.record);
                }
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
    use callward::core::trail::CallFacts;

    use super::*;

    #[test]
    fn only_true_asks() {
        for (meta, cache, trail) in [
            (r#"{"io.callward/cache":true}"#, true, false),
            (r#"{"io.callward\/cache": true }"#, true, false),
            (r#"{"io.callward/trail":true}"#, false, true),
            (r#"{"io.callward/cache":"true"}"#, false, false),
            (
                r#"{"io.callward/cache":true,"io.callward/cache":true}"#,
                false,
                false,
            ),
            (r#"{"cache":true}"#, false, false),
            ("1", false, false),
        ] {
            let asked = Reports::default().or_asked(Some(&Bytes::from_static(meta.as_bytes())));
            assert_eq!(asked, Reports { cache, trail }, "{meta:?}");
        }
        assert_eq!(Reports::default().or_asked(None), Reports::default());
    }

    #[test]
    fn what_the_cache_did_is_added_once_and_nothing_else_changes() {
        let hit = |facts: &mut CallFacts| {
            facts.cache = CacheStatus::Hit;
            facts.cache_age = Some(Duration::from_millis(250));
        };
        type Write = fn(&mut CallFacts);
        let rows: [(&str, Write, &str); 4] = [
            (
                r#"{"content":[],"_meta":{"a":1}}"#,
                hit,
                r#"{"content":[],"_meta":{"a":1,"io.callward/cache":{"status":"hit","age_ms":250}}}"#,
            ),
            (
                r#"{"content":[]}"#,
                |facts| facts.cache_bypass = Some("writing"),
                r#"{"content":[],"_meta":{"io.callward/cache":{"status":"bypass","reason":"writing"}}}"#,
            ),
            // what a cache further up said of the age is added
            (
                r#"{"_meta":{"io.callward/cache":{"status":"hit","age_ms":50}}}"#,
                hit,
                r#"{"_meta":{"io.callward/cache":{"status":"hit","age_ms":300}}}"#,
            ),
            // what serves a stale answer marks it
            (
                r#"{"content":[]}"#,
                |facts| facts.cache = CacheStatus::Stale,
                r#"{"content":[]}"#,
            ),
        ];
        for (output, write, expected) in rows {
            let record = CallRecord::new();
            record.with(write);
            let marked = mark(ToolOutput::from_json(output).unwrap(), &record);
            assert_eq!(marked.body(), expected);
        }
    }
}
