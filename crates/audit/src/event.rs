//! The events of a log, and their records.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use callward_core::{
    AuditLevel, Authorization, Caller, ConfirmOutcome, ConfirmRule, CredentialKind, Delivery,
    ErrorKind, HedgeStatus, Inbound, Tool, ToolCall, ToolError,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::chain::Seal;
use crate::service::Answer;
use crate::{AuditConfig, Bodies};

/// An event to record.
#[derive(Debug)]
pub(crate) enum Event {
    Call(Box<Called>),
    /// The members of any other record: of a call of an unknown tool, of one that could not be
    /// parsed, or of a request for approval.
    Noted(SystemTime, String),
}

/// A call that ended.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) at: SystemTime,
    pub(crate) took: Duration,
    /// It has a record.
    pub(crate) call: ToolCall,
    /// `None` if the call was cancelled.
    pub(crate) answer: Option<Answer>,
}

impl Called {
    fn error(&self) -> Option<&ToolError> {
        self.answer.as_ref()?.as_ref().err()
    }

    /// Returns `true` if the call was not sent, for want of an approval.
    fn is_unapproved(&self) -> bool {
        let facts = self.call.record.as_ref().map(|record| record.facts());
        let confirmation = facts.and_then(|facts| facts.confirmation);
        confirmation.is_some_and(|it| it.outcome != ConfirmOutcome::Approved)
    }

    fn outcome(&self) -> &'static str {
        match &self.answer {
            Some(Ok(_)) if self.is_unapproved() => "refused",
            Some(Ok(output)) if output.is_error() => "tool_error",
            Some(Ok(_)) => "answered",
            Some(Err(error)) if refuser(error).is_some() => "refused",
            Some(Err(_)) => "failed",
            None => "cancelled",
        }
    }
}

/// The longest name in a record, in characters.
const MAX_NAME: usize = 200;
/// The longest message of an error, in characters.
const MAX_MESSAGE: usize = 512;

/// Makes the records of events.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) config: AuditConfig,
    pub(crate) seal: Seal,
}

impl Recorder {
    /// Returns the members of the record, for [`Link::write`](crate::chain::Link::write).
    pub(crate) fn called(&self, called: &Called) -> String {
        let mut out = Members::new("call");
        let (rule, tool) = (called.call.plan().audit, called.call.tool());
        out.put("level", rule.level.as_str());
        out.put("tool", tool.name().as_str());
        out.put("set", tool.set().as_str());
        let method = tool.definition.method;
        out.put("method", method.is_of_task().then_some(method.as_str()));
        out.put("open_world", rule.open_world);
        out.put("outcome", called.outcome());
        out.put("client", client(called.call.inbound.as_ref()));
        let took = u64::try_from(called.took.as_micros()).unwrap_or(u64::MAX);
        out.put("duration_us", took);
        if rule.level == AuditLevel::Full {
            self.full(called, &mut out);
        } else if let Some(error) = called.error() {
            if let Some(by) = &error.authorization {
                self.caller(called.call.caller(), &mut out);
                out.put_rule(by);
            }
            out.put("error", brief(error));
        }
        out.0
    }

    fn full(&self, called: &Called, out: &mut Members) {
        let (call, plan, error) = (&called.call, called.call.plan(), called.error());
        let facts = call.record.as_ref().map(|record| record.facts());
        let facts = facts.unwrap_or_default();
        out.put("effect", plan.effect.as_str());
        out.put("plan_reason", &plan.reason);
        self.caller(call.caller(), out);
        let trace = call.trace.as_ref();
        let trace = trace.map(|trace| format!("{:032x}", trace.trace_id()));
        out.put("trace_id", trace);
        let by = error.and_then(refuser);
        let by = by.or_else(|| called.is_unapproved().then_some("approval"));
        let by = by.or_else(|| facts.is_guarded.then_some("loop_guard"));
        match by {
            Some(by) => out.put("decision", json!({"verdict": "refused", "by": by})),
            None => out.put("decision", json!({"verdict": "allowed"})),
        }
        let ruled = error.and_then(|error| error.authorization.as_ref());
        if let Some(by) = ruled.or(facts.authorization.as_ref()) {
            out.put_rule(by);
        }
        let skips = plan.confirm == ConfirmRule::Skip;
        out.put("confirm", if skips { "skip" } else { "ask" });
        let approval = facts.confirmation.as_ref().map(|it| {
            json!({
                "request": it.request,
                "outcome": it.outcome,
                "arguments_digest": self.seal.of_digest(&it.arguments_digest),
                "by": it.by.as_ref().map(|by| by.as_str()),
                "channel": it.channel,
            })
        });
        out.put("approval", approval);
        let server = facts.server.as_ref().map(|(server, _)| server);
        let server = server.or_else(|| error?.server.as_ref());
        out.put("server", server.map(|server| server.as_str()));
        out.put("attempts", facts.started_attempts);
        out.put("cache", facts.cache.as_str());
        let hedge = Some(facts.hedge).filter(|hedge| *hedge != HedgeStatus::None);
        out.put("hedge", hedge);
        if let Some(error) = error {
            self.error(error, out);
        }
        self.content("arguments", self.config.arguments, call.arguments(), out);
        if let Some(Ok(output)) = &called.answer {
            self.content("result", self.config.results, output.body(), out);
        }
    }

    pub(crate) fn refused(
        &self,
        name: &str,
        known: Option<&Tool>,
        caller: &Caller,
        inbound: Option<&Arc<Inbound>>,
        error: &ToolError,
    ) -> String {
        let mut out = Members::new("refused");
        match known {
            Some(tool) => {
                out.put("tool", tool.name().as_str());
                out.put("set", tool.set().as_str());
            }
            None => out.put("tool", cut(name)),
        }
        out.put("outcome", "refused");
        out.put("client", client(inbound));
        self.caller(caller, &mut out);
        let by = match error.kind {
            // no call waits for a permit before its tool is known
            ErrorKind::Overloaded if error.authorization.is_none() => Some("shutdown"),
            _ => refuser(error),
        };
        out.put("decision", json!({"verdict": "refused", "by": by}));
        if let Some(by) = &error.authorization {
            out.put_rule(by);
        }
        self.error(error, &mut out);
        out.0
    }

    fn error(&self, error: &ToolError, out: &mut Members) {
        let message: String = error.message.chars().take(MAX_MESSAGE).collect();
        let redactor = &self.config.redactor;
        let message = redactor.redact(json!(message).to_string().as_bytes());
        let mut error = brief(error);
        error["message"] = json!(RawValue::from_string(message).ok());
        out.put("error", error);
    }

    /// Adds the arguments or the result: redacted, or as a digest.
    fn content(&self, name: &str, bodies: Bodies, bytes: &[u8], out: &mut Members) {
        let mut digest = json!({"bytes": bytes.len()});
        match bodies {
            Bodies::Redacted => {
                if let Ok(text) = RawValue::from_string(self.config.redactor.redact(bytes)) {
                    return out.put(name, text);
                }
            }
            Bodies::Digest => digest["hash"] = json!(self.seal.hash(bytes)),
            Bodies::Omitted => {}
        }
        out.put(&format!("{name}_digest"), digest);
    }

    fn caller(&self, caller: &Caller, out: &mut Members) {
        out.put("principal", cut(caller.principal.as_str()));
        let credential = &caller.credential;
        if credential.kind != CredentialKind::None {
            let mut shown = json!({"kind": credential.kind});
            if let Some(name) = &credential.name {
                shown["name"] = cut(name).into();
            }
            out.put("credential", shown);
        }
        if let Some(session) = &caller.session {
            // it may be a secret: only its hash is recorded
            let mut hash = self.seal.hash(session.as_str().as_bytes());
            hash.truncate(16);
            out.put("session", hash);
        }
    }
}

/// Returns the members of a record of this kind.
pub(crate) fn noted(kind: &str, members: &Map<String, Value>) -> String {
    let mut out = Members::new(kind);
    for (name, value) in members {
        out.put(name, value);
    }
    out.0
}

fn brief(error: &ToolError) -> Value {
    let mut brief = json!({"kind": error.kind, "delivery": error.delivery});
    if let Some(limit) = error.limit {
        brief["limit"] = limit.name.into();
    }
    brief
}

/// The members of a JSON object, in order.
struct Members(String);

impl Members {
    fn new(kind: &str) -> Self {
        Self(format!("\"kind\":\"{kind}\""))
    }

    /// Adds a member, unless it is `null`.
    fn put(&mut self, name: &str, value: impl Serialize) {
        let value = serde_json::to_string(&value).ok();
        if let Some(value) = value.filter(|value| value != "null") {
            // writing into memory does not fail
            let _ = write!(self.0, ",\"{name}\":{value}");
        }
    }

    /// Adds the rule that allowed or refused the call, and which rules there were.
    fn put_rule(&mut self, by: &Authorization) {
        self.put("rule", cut(&by.rule));
        self.put("policy", by.policy.as_deref());
    }
}

/// Returns what is known of the client: its own statement of name and version, and its address.
fn client(inbound: Option<&Arc<Inbound>>) -> Option<Map<String, Value>> {
    let info = inbound?.client_info.as_deref();
    let members = [
        ("name", json!(info.map(|info| &info.name))),
        ("version", json!(info.map(|info| &info.version))),
        ("address", json!(inbound?.client)),
    ];
    let known = members.into_iter().filter(|(_, value)| !value.is_null());
    let known = known.map(|(name, value)| (name.to_owned(), value));
    Some(known.collect()).filter(|client: &Map<_, _>| !client.is_empty())
}

/// Returns the layer that refused the call; `None` if it was sent, or may have been.
fn refuser(error: &ToolError) -> Option<&'static str> {
    if error.delivery != Delivery::NotSent {
        return None;
    }
    match error.kind {
        _ if error.authorization.is_some() => Some("authorization"),
        _ if error.limit.is_some() => Some("principal_limit"),
        ErrorKind::BreakerOpen => Some("breaker"),
        ErrorKind::InvalidCall => Some("check"),
        ErrorKind::NoEligibleServer => Some("router"),
        ErrorKind::Overloaded => Some("concurrency_limit"),
        ErrorKind::RateLimited => Some("rate_limit"),
        ErrorKind::Unauthorized => Some("guard"),
        ErrorKind::UnknownTool => Some("catalogue"),
        // a failure on the way, not a refusal
        ErrorKind::ConnectFailed | ErrorKind::ConnectionLost | ErrorKind::Cancelled => None,
        _ => Some("runtime"),
    }
}

/// Limits the length of a name that a client sent.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_NAME) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
