//! What happened, and how it is written down.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use callward_core::redact::Redactor;
use callward_core::{
    Approval, AuditLevel, AuditRule, CallRecord, Caller, ClientInfo, ConfirmRule, Delivery, Effect,
    ErrorKind, HedgeStatus, Inbound, SessionId, Tool, ToolCall, ToolError, ToolOutput,
    TraceContext,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::chain::Seal;
use crate::{AuditConfig, Bodies, notes};

/// What is written down.
#[derive(Debug)]
pub(crate) enum Event {
    Call(Box<Called>),
    Refused(Box<RefusedCall>),
}

/// A call that ended.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) at: SystemTime,
    pub(crate) took: Duration,
    pub(crate) tool: Arc<Tool>,
    pub(crate) rule: AuditRule,
    effect: Effect,
    confirm: ConfirmRule,
    reason: Cow<'static, str>,
    caller: Arc<Caller>,
    trace: Option<Arc<TraceContext>>,
    inbound: Option<Arc<Inbound>>,
    arguments: bytes::Bytes,
    record: Arc<CallRecord>,
    pub(crate) ending: Ending,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Answered(ToolOutput),
    Failed(ToolError),
    Cancelled,
}

impl Ending {
    /// Returns how much of the queue it takes beside the call itself, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Answered(output) => output.body().len(),
            Self::Failed(_) | Self::Cancelled => 0,
        }
    }
}

impl Called {
    /// Takes a call that is about to be sent; until it ends, it counts as cancelled.
    pub(crate) fn new(call: &ToolCall, record: Arc<CallRecord>, at: SystemTime) -> Self {
        let plan = call.plan();
        let is_full = plan.audit.level == AuditLevel::Full;
        Self {
            at,
            took: Duration::ZERO,
            tool: call.tool().clone(),
            rule: plan.audit,
            effect: plan.effect,
            confirm: plan.confirm,
            reason: plan.reason.clone(),
            caller: call.caller().clone(),
            trace: call.trace().cloned(),
            inbound: call.inbound().cloned(),
            arguments: match is_full {
                true => call.arguments_bytes(),
                false => bytes::Bytes::new(),
            },
            record,
            ending: Ending::Cancelled,
        }
    }
}

/// A call that named no tool there is, or could not be read.
#[derive(Debug)]
pub(crate) struct RefusedCall {
    pub(crate) at: SystemTime,
    pub(crate) tool: String,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) inbound: Option<Arc<Inbound>>,
    pub(crate) error: ToolError,
}

/// Makes records of events.
#[derive(Debug)]
pub(crate) struct Scribe {
    redactor: Redactor,
    arguments: Bodies,
    results: Bodies,
    seal: Seal,
}

impl Scribe {
    pub(crate) fn new(config: &AuditConfig) -> Self {
        Self {
            redactor: config.redactor.clone(),
            arguments: config.arguments,
            results: config.results,
            seal: Seal::new(config.key.as_ref()),
        }
    }

    /// Writes the inside of the record's object.
    pub(crate) fn body(&self, event: &Event) -> Vec<u8> {
        let object = match event {
            Event::Call(called) if called.rule.level == AuditLevel::Full => {
                serde_json::to_vec(&self.full(called))
            }
            Event::Call(called) => serde_json::to_vec(&Record::partial(called)),
            Event::Refused(refused) => serde_json::to_vec(&self.refused(refused)),
        };
        // plain data always has a JSON form
        notes::inside(object.unwrap_or_default())
    }

    fn full<'a>(&self, called: &'a Called) -> Record<'a> {
        let record = &called.record;
        let error = called.error();
        let (arguments, arguments_digest) = self.content(self.arguments, &called.arguments);
        let (result, result_digest) = match &called.ending {
            Ending::Answered(output) => self.content(self.results, output.body()),
            _ => (None, None),
        };
        let server = record.server().map(|(server, _)| server.to_string());
        let server = server.or_else(|| error?.server().map(ToString::to_string));
        let hedge = record.hedge();
        Record {
            effect: Some(called.effect.as_str()),
            plan_reason: Some(&called.reason),
            principal: Some(cut(called.caller.principal.as_str())),
            session: called.caller.session.as_ref().map(|id| self.session(id)),
            trace_id: called
                .trace
                .as_deref()
                .map(|trace| format!("{:032x}", trace.trace_id())),
            decision: Some(decision(called)),
            confirm: Some(match called.confirm {
                ConfirmRule::Skip => "skip",
                _ => "ask",
            }),
            approval: record.approval().map(Approved::of),
            server,
            attempts: Some(record.started_attempts()),
            cache: Some(record.cache().as_str()),
            hedge: (hedge != HedgeStatus::None).then(|| hedge.as_str()),
            error: error.map(|error| self.error(error)),
            arguments,
            arguments_digest,
            result,
            result_digest,
            ..Record::partial(called)
        }
    }

    fn refused<'a>(&self, refused: &'a RefusedCall) -> Record<'a> {
        let caller = refused.caller.as_deref();
        Record {
            kind: "refused",
            tool: cut(&refused.tool),
            outcome: "refused",
            principal: caller.map(|caller| cut(caller.principal.as_str())),
            session: caller.and_then(|caller| Some(self.session(caller.session.as_ref()?))),
            client: Client::of(refused.inbound.as_deref()),
            decision: Some(Decision {
                verdict: "refused",
                by: refuser(&refused.error),
            }),
            error: Some(self.error(&refused.error)),
            ..Record::default()
        }
    }

    fn error(&self, error: &ToolError) -> Failure {
        let message: String = error.message().chars().take(LONGEST_MESSAGE).collect();
        let quoted = serde_json::to_vec(&message).unwrap_or_default();
        Failure {
            message: RawValue::from_string(self.redactor.redact(&quoted)).ok(),
            ..Failure::partial(error)
        }
    }

    fn content(&self, how: Bodies, bytes: &[u8]) -> (Option<Box<RawValue>>, Option<Digest>) {
        let digest = |hash| {
            let bytes = bytes.len();
            (None, Some(Digest { bytes, hash }))
        };
        match how {
            Bodies::Redacted => match RawValue::from_string(self.redactor.redact(bytes)) {
                Ok(text) => (Some(text), None),
                Err(_) => digest(None),
            },
            Bodies::Digest => digest(Some(self.seal.hash(bytes).to_string())),
            Bodies::Omitted => digest(None),
        }
    }

    /// A session's own name may open it: never written as it is.
    fn session(&self, session: &SessionId) -> String {
        let mut hash = self.seal.hash(session.as_str().as_bytes()).to_string();
        hash.truncate(16);
        hash
    }
}

impl Called {
    fn error(&self) -> Option<&ToolError> {
        match &self.ending {
            Ending::Failed(error) => Some(error),
            Ending::Answered(_) | Ending::Cancelled => None,
        }
    }

    fn outcome(&self) -> &'static str {
        match &self.ending {
            Ending::Answered(output) if output.is_error() => "tool_error",
            Ending::Answered(_) => "answered",
            Ending::Failed(error) if refuser(error).is_some() => "refused",
            Ending::Failed(_) => "failed",
            Ending::Cancelled => "cancelled",
        }
    }
}

/// A record, member by member in the order they are written.
#[derive(Debug, Default, Serialize)]
struct Record<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'static str>,
    tool: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world: Option<bool>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Client<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hedge: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_digest: Option<Digest>,
}

impl<'a> Record<'a> {
    /// What every record of a call holds, and all that a partial one does.
    fn partial(called: &'a Called) -> Self {
        Self {
            kind: "call",
            level: Some(called.rule.level.as_str()),
            tool: called.tool.name().as_str().into(),
            set: Some(called.tool.set().as_str()),
            open_world: Some(called.rule.open_world),
            outcome: called.outcome(),
            client: Client::of(called.inbound.as_deref()),
            duration_us: Some(u64::try_from(called.took.as_micros()).unwrap_or(u64::MAX)),
            error: called.error().map(Failure::partial),
            ..Self::default()
        }
    }
}

/// The client that sent the request. Name and version are what it states itself, cut to a bounded
/// length when they were read.
#[derive(Debug, Serialize)]
struct Client<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<SocketAddr>,
}

impl<'a> Client<'a> {
    fn of(inbound: Option<&'a Inbound>) -> Option<Self> {
        let inbound = inbound?;
        let info = inbound.client_info.as_deref();
        (info.is_some() || inbound.client.is_some()).then(|| Self {
            name: info.map(ClientInfo::name),
            version: info.and_then(ClientInfo::version),
            address: inbound.client,
        })
    }
}

#[derive(Debug, Serialize)]
struct Failure {
    kind: &'static str,
    delivery: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Box<RawValue>>,
}

impl Failure {
    fn partial(error: &ToolError) -> Self {
        Self {
            kind: error.kind().as_str(),
            delivery: error.delivery().as_str(),
            message: None,
        }
    }
}

#[derive(Debug, Serialize)]
struct Digest {
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

/// Whether the call was let through, and who refused it if it was not.
#[derive(Debug, Serialize)]
struct Decision {
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
}

fn decision(called: &Called) -> Decision {
    let by = called.error().and_then(refuser);
    let by = by.or_else(|| called.record.was_guarded().then_some("loop_guard"));
    Decision {
        verdict: if by.is_some() { "refused" } else { "allowed" },
        by,
    }
}

/// Returns what kept a call from being sent; nothing for one that was, or may have been.
fn refuser(error: &ToolError) -> Option<&'static str> {
    if error.delivery() != Delivery::NotSent {
        return None;
    }
    match error.kind() {
        ErrorKind::BreakerOpen => Some("breaker"),
        ErrorKind::InvalidCall => Some("check"),
        ErrorKind::NoEligibleServer => Some("router"),
        ErrorKind::Overloaded => Some("concurrency_limit"),
        ErrorKind::RateLimited => Some("rate_limit"),
        ErrorKind::Unauthorized => Some("guard"),
        ErrorKind::UnknownTool => Some("catalogue"),
        // nobody refused it: it did not get there
        ErrorKind::ConnectFailed | ErrorKind::ConnectionLost | ErrorKind::Cancelled => None,
        _ => Some("runtime"),
    }
}

/// What a person said to a call.
#[derive(Debug, Serialize)]
struct Approved {
    verdict: &'static str,
    by: String,
}

impl Approved {
    fn of(approval: &Approval) -> Self {
        Self {
            verdict: approval.verdict.as_str(),
            by: cut(&approval.by).into_owned(),
        }
    }
}

/// Names are told in at most this many characters.
const LONGEST_NAME: usize = 200;
/// Messages of errors too.
const LONGEST_MESSAGE: usize = 512;

/// What clients sent may be long.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_NAME) {
        None => text.into(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
    }
}
