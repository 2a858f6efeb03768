//! One call under the guard.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{FingerprintKey, ToolCall, ToolError, ToolOutput, WithoutSession};
use tokio::time::Instant;

use crate::outcome::{Outcome, answer, may_have_changed};
use crate::table::{Admission, Table};

/// A write in flight. Dropped before its end, it may have run and clears all other calls.
#[derive(Debug)]
pub(crate) struct Watch {
    table: Arc<Table>,
    /// Identifies the call, if its failures count.
    key: Option<u128>,
    /// When it began, if it is a trial.
    trial: Option<Instant>,
    ended: bool,
}

impl Watch {
    /// Watches a call, or returns the answer in its server's place. `None` for a read, and for a
    /// further round, which repeats no call.
    pub(crate) fn begin(table: &Arc<Table>, call: &ToolCall) -> Result<Option<Self>, ToolOutput> {
        if !call.plan().is_write() || call.round.is_some() {
            return Ok(None);
        }
        let counts = !call.is_background
            && (call.caller().session.is_some()
                || table.config.without_session == WithoutSession::ByPrincipal);
        let mut watch = Self {
            table: table.clone(),
            key: counts.then(|| key(&table.secret, call)),
            trial: None,
            ended: false,
        };
        let now = Instant::now();
        let admission = watch.key.map(|key| table.admit(key, now));
        match admission {
            None | Some(Admission::Send) => {}
            Some(Admission::Trial) => watch.trial = Some(now),
            Some(Admission::Stop {
                failures,
                message,
                wait,
            }) => {
                watch.ended = true;
                table.answered.fetch_add(1, Ordering::Relaxed);
                let tool = call.tool().name();
                tracing::info!(%tool, failures, "answers a call that keeps failing");
                if let Some(record) = &call.record {
                    record.with(|facts| facts.is_guarded = true);
                    record.decided(|| {
                        let why = format!("it failed {failures} times in this session");
                        Decision::new(Stage::LoopGuard, Verdict::Answered, why)
                    });
                }
                return Err(answer(tool.as_str(), failures, &message, wait));
            }
        }
        Ok(Some(watch))
    }

    /// Counts how the call ended.
    pub(crate) fn end(mut self, result: &Result<ToolOutput, ToolError>) {
        self.ended = true;
        let table = &self.table;
        if may_have_changed(result) {
            table.clear(self.key);
        }
        match (Outcome::of(result), self.key) {
            (Outcome::Succeeded, _) => table.clear(None),
            (Outcome::Failed(message), Some(key)) => {
                table.fail(key, Instant::now(), message);
                self.trial = None;
            }
            // the drop takes a trial back
            _ => {}
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let (Some(key), Some(began)) = (self.key, self.trial) {
            self.table.take_back(key, began);
        }
        if !self.ended {
            self.table.clear(self.key);
        }
    }
}

/// Returns what identifies a call: principal, session, tool, and the JSON value of its arguments.
fn key(secret: &FingerprintKey, call: &ToolCall) -> u128 {
    let (caller, tool, arguments) = (call.caller(), call.tool(), call.arguments());
    let session = caller.session.as_ref().map(|session| session.as_str());
    // arguments that two readers may read differently count as their bytes
    let arguments = secret.json(arguments);
    let arguments = arguments.unwrap_or_else(|| secret.bytes(call.arguments()));
    let hash = |text: &str| secret.bytes(text.as_bytes());
    secret.combine(&[
        hash(caller.principal.as_str()),
        u128::from(session.is_some()),
        hash(session.unwrap_or_default()),
        hash(tool.set().as_str()),
        hash(tool.name().as_str()),
        arguments,
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use callward_core::{Caller, Principal, SessionId};
    use callward_testkit::tool;

    use super::*;

    #[test]
    fn equal_arguments_have_one_key_and_other_calls_another() {
        let secret = FingerprintKey::new(1, 2);
        let key = |principal: &str, session: Option<&str>, set: &str, name: &str, json: &str| {
            let mut caller = Caller::new(Principal::new(principal));
            if let Some(session) = session {
                caller = caller.with_session(SessionId::new(session));
            }
            let tool = tool(name).set(set).build();
            let call = ToolCall::new(tool, json.as_bytes().to_vec());
            key(&secret, &call.with_caller(Arc::new(caller)))
        };
        let json = r#"{"a":1,"b":[]}"#;
        let one = key("ada", Some("1"), "s", "t", json);
        let spaced = r#"{ "b" : [], "a" : 1 }"#;
        assert_eq!(one, key("ada", Some("1"), "s", "t", spaced));
        let all = [
            one,
            key("ada", Some("1"), "s", "t", r#"{"a":2,"b":[]}"#),
            key("ada", Some("1"), "s", "t2", json),
            key("ada", Some("1"), "s2", "t", json),
            key("ada", Some("2"), "s", "t", json),
            key("ada", None, "s", "t", json),
            key("ada", Some(""), "s", "t", json),
            key("eve", Some("1"), "s", "t", json),
            // two readers may take different ones of the two
            key("ada", Some("1"), "s", "t", r#"{"a":1,"a":2}"#),
            key("ada", Some("1"), "s", "t", r#"{"a":2,"a":1}"#),
            key("ada", Some("1"), "s", "t", "not JSON"),
        ];
        assert_eq!(HashSet::from(all).len(), all.len());
    }
}
