//! The details of a call that was sent and not answered.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use super::{ErrorKind, history};
use crate::{ReplicaSetId, ServerId, ToolCall, ToolError, ToolName};

/// The details of a write that was sent and not answered.
///
/// It holds no arguments, which may be secret, and no digest of them either: a short argument can
/// be guessed from one. The keys of its JSON are in camel case and its times in milliseconds, as in
/// the `data` of an error that a client sees.
///
/// It has no wall-clock time, because this crate reads no clock. `sent_ago` is exact at the moment
/// the error was made, which is when a client or a log sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OutcomeUnknown {
    /// The replica set whose tool was called.
    pub set: ReplicaSetId,
    /// The tool's name at its server.
    pub tool: ToolName,
    /// The server it was sent to, if the error named one.
    pub server: Option<ServerId>,
    /// How many bytes of arguments were sent.
    pub argument_bytes: usize,
    /// How long before the error the attempt began that was sent.
    #[serde(rename = "sentMsAgo", serialize_with = "history::millis")]
    pub sent_ago: Duration,
    /// What went wrong after sending.
    pub failure: ErrorKind,
    /// The failure in words.
    pub detail: Cow<'static, str>,
    /// The name clients know a read-only tool by that shows what the call did, if there is one.
    pub verify_with: Option<Box<str>>,
}

impl OutcomeUnknown {
    /// Collects the details of the call and of the failure of its last attempt.
    pub fn new(call: &ToolCall, failure: &ToolError, sent_ago: Duration) -> Self {
        Self {
            set: call.tool().set().clone(),
            tool: call.tool().name().clone(),
            server: failure.0.server.clone(),
            argument_bytes: call.arguments().len(),
            sent_ago,
            failure: failure.0.kind,
            detail: failure.0.message.clone(),
            verify_with: call.tool().verifier.as_deref().map(Into::into),
        }
    }

    /// Describes a call that was not retried, in one sentence: what was sent, what is unknown, and
    /// what to do.
    pub(super) fn message(&self) -> String {
        let Self { tool, failure, .. } = self;
        let server = match &self.server {
            Some(server) => format!(" to server `{server}`"),
            None => String::new(),
        };
        let check = match &self.verify_with {
            Some(verifier) => format!("check with `{verifier}` what it did"),
            None => "check what it did".to_owned(),
        };
        // more digits would only be harder to read
        let millis = u64::try_from(self.sent_ago.as_millis()).unwrap_or(0);
        let ago = Duration::from_millis(millis.max(1));
        format!(
            "`{tool}` was sent{server} {ago:?} ago, and no answer came ({failure}): it may have run; \
             it was not sent again; {check} before calling it again"
        )
    }

    /// Leaves out of the message of another instance of this runtime the tool to check with:
    /// clients of this one know that tool by another name, or not at all. Whether the call may have
    /// run is stated here again.
    pub fn without_verifier(message: &str) -> String {
        let shown = Self::without_check(message);
        let stated = shown.strip_suffix("; the call may have run");
        stated.unwrap_or(&shown).to_owned()
    }

    /// Leaves out of a message which tool to check with.
    pub(super) fn without_check(message: &str) -> String {
        let named = message.rsplit_once("check with `");
        let named = named.and_then(|(before, rest)| Some((before, rest.split_once('`')?.1)));
        match named {
            Some((before, after)) => match before.strip_suffix(": ") {
                Some(before) => format!("{before}{after}"),
                None => format!("{before}check{after}"),
            },
            None => message.to_owned(),
        }
    }
}
