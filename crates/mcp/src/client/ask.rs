//! An outgoing request.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use callward_core::{
    CallMeta, Caller, LogLevel, Method, Principal, ProgressSink, Round, ToolCall, ToolError, Watch,
};
use memchr::memmem;
use sha1::{Digest, Sha1};
use uuid::Uuid;

use super::answer::RequestError;
use super::carried::Carried;
use crate::wire::{Era, LATEST, RequestId, code, meta, object, write};

/// The implementation object we introduce ourselves with, raw.
pub(super) const CLIENT_INFO: &str = concat!(
    r#"{"name":"callward","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// What every modern request says of its client beside its capabilities: the beginning of its
/// `_meta`.
static MODERN_CONTEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut out = vec![b'{'];
    text_member(&mut out, meta::PROTOCOL_VERSION, LATEST);
    write::member(&mut out, meta::CLIENT_INFO, CLIENT_INFO.as_bytes());
    out
});

/// The form of requests that a server expects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) era: Era,
    /// Whether calls carry their idempotency keys.
    pub(super) keys: bool,
    /// The revision the server speaks, once that is known.
    pub(super) version: Option<&'static str>,
}

impl Style {
    /// Before the server has said anything, in this era.
    pub(super) const fn unknown(era: Era) -> Self {
        Self {
            era,
            keys: false,
            version: None,
        }
    }
}

/// One request: its method, its `params` without `_meta`, and the call behind it.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: &'static str,
    params: Vec<u8>,
    /// What the header `Mcp-Name` repeats.
    pub(super) name: Option<Cow<'a, str>>,
    /// The call behind the request.
    pub(super) call: Option<&'a ToolCall>,
    /// The watcher that is notified when the request is sent.
    pub(super) watch: Option<Watch>,
    /// Whether it answers what the server asked for.
    is_further_round: bool,
}

impl<'a> Ask<'a> {
    /// Takes a method and a raw `params` object.
    pub(super) fn new(method: &'static str, params: impl Into<Vec<u8>>) -> Self {
        Self {
            method,
            params: params.into(),
            name: None,
            call: None,
            watch: None,
            is_further_round: false,
        }
    }

    /// Turns a call into a request. Its arguments are copied unchanged, so they must be one JSON
    /// object: other text could end the message early and begin another. Those of a method other
    /// than `tools/call` are its parameters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`], not sent, if they are not.
    pub(super) fn call(call: &'a ToolCall) -> Result<Self, ToolError> {
        let arguments = call.arguments();
        object::check(arguments).map_err(|fault| {
            RequestError::invalid(format!("the arguments cannot be sent: {fault}"))
                .with_code(code::INVALID_PARAMS)
        })?;
        let definition = &call.tool().definition;
        let (params, name) = match definition.method {
            Method::CallTool => {
                let mut params = Vec::with_capacity(arguments.len() + 128);
                params.push(b'{');
                let name = definition.name.as_str();
                text_member(&mut params, "name", name);
                write::member(&mut params, "arguments", arguments);
                params.push(b'}');
                (params, Some(name.into()))
            }
            method => {
                let named = method.named_by().and_then(|parameter| {
                    let name = object::get_member(arguments, parameter).ok()??;
                    serde_json::from_slice(name).ok().map(Cow::Owned)
                });
                (arguments.to_vec(), named)
            }
        };
        let ask = Self {
            name,
            call: Some(call),
            watch: call.attempt().watch.clone(),
            ..Self::new(definition.method.as_str(), params)
        };
        Ok(match &call.round {
            Some(round) => ask.with_round(round),
            None => ask,
        })
    }

    /// Adds the answers to what the server asked for, and its state.
    pub(super) fn with_round(mut self, round: &Round) -> Self {
        self.is_further_round = true;
        // params are an object: its last bracket closes it
        let end = self.params.iter().rposition(|byte| *byte == b'}');
        self.params.truncate(end.unwrap_or_default());
        let members = [
            ("inputResponses", &round.responses),
            ("requestState", &round.state),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                self.params.truncate(self.params.trim_ascii_end().len());
                write::member(&mut self.params, name, value);
            }
        }
        self.params.push(b'}');
        self
    }

    /// Returns where progress goes.
    pub(super) fn progress(&self) -> Option<&'a Arc<dyn ProgressSink>> {
        self.call.and_then(ToolCall::progress)
    }

    /// Returns the idempotency key of the call, as the server sees it.
    pub(super) fn key(&self, style: &Style) -> Option<String> {
        // a further round is another request
        let call = self.call.filter(|_| style.keys && !self.is_further_round)?;
        let key = call.idempotency_key()?.to_string();
        let principal = &call.caller().principal;
        Some(if *principal == Caller::local().principal {
            key
        } else {
            qualified(principal, &key)
        })
    }

    /// Returns `true` if the server may be notified that the call is cancelled.
    ///
    /// `initialize` may not be cancelled, and an old server may not understand that a probe is.
    pub(super) fn is_cancellable(&self) -> bool {
        !matches!(self.method, "initialize" | "server/discover")
    }

    /// Writes the request.
    ///
    /// The request's own number serves as progress token: it is unique among those in flight.
    pub(super) fn to_message(&self, id: u64, style: &Style, carried: &Carried<'_>) -> Vec<u8> {
        let meta = self.meta(id, style, carried);
        let request = RequestId::number(id);
        if meta.len() == 2 {
            return write::request(&request, self.method, Some(&self.params));
        }
        let mut params = Vec::with_capacity(self.params.len() + meta.len() + 10);
        params.extend_from_slice(&self.params);
        // params are an object written here: its last byte is the bracket
        params.pop();
        write::member(&mut params, "_meta", &meta);
        params.push(b'}');
        write::request(&request, self.method, Some(&params))
    }

    fn modern_context(&self) -> Vec<u8> {
        let mut out = MODERN_CONTEXT.clone();
        let capabilities = self.call.map(|call| call.capabilities);
        let capabilities = capabilities.unwrap_or_default().to_json();
        write::member(&mut out, meta::CLIENT_CAPABILITIES, capabilities.as_bytes());
        let theirs = self.call.and_then(|call| call.meta.as_ref());
        let asks = |meta: &Arc<CallMeta>| memmem::find(meta.members(), meta::LOG_LEVEL.as_bytes());
        if let Some(level) = self.log_level()
            && theirs.and_then(asks).is_none()
        {
            text_member(&mut out, meta::LOG_LEVEL, level.as_str());
        }
        out
    }

    /// Returns the level of log messages that the client asked for.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        self.call?.client.as_ref()?.peer().log_level()
    }

    fn meta(&self, id: u64, style: &Style, carried: &Carried<'_>) -> Vec<u8> {
        let mut out = match style.era {
            Era::Modern => self.modern_context(),
            Era::Legacy => vec![b'{'],
        };
        if self.progress().is_some() {
            write::member(&mut out, meta::PROGRESS_TOKEN, id.to_string().as_bytes());
        }
        carried.write(&mut out);
        if let Some(key) = self.key(style) {
            text_member(&mut out, meta::IDEMPOTENCY_KEY, &key);
        }
        if let Some(theirs) = self.call.and_then(|call| call.meta.as_ref()) {
            write::members(&mut out, theirs.members());
        }
        out.push(b'}');
        out
    }
}

/// The namespace of the keys, as of a name-based UUID.
const KEYS: Uuid = Uuid::from_u128(0x1b6c_9a3e_52d4_4f0b_8c77_e0d1_94a6_3f25);

/// Binds a caller's own key to the caller. A server sees one client, us: without this, one that
/// guessed a key could have another's result for it. The same in every process, since a key is
/// there to make a call again; and a hash, since the server must not learn the caller.
fn qualified(principal: &Principal, key: &str) -> String {
    let hash = Sha1::new()
        .chain_update(KEYS)
        .chain_update(principal.as_str())
        .chain_update([0]) // a key never has this byte, so no other input has this form
        .chain_update(key)
        .finalize();
    let id = uuid::Builder::from_sha1_bytes(std::array::from_fn(|at| hash[at]));
    id.into_uuid().to_string()
}

/// Appends a member that is a text.
pub(super) fn text_member(out: &mut Vec<u8>, name: &str, text: &str) {
    let mut value = Vec::with_capacity(text.len() + 2);
    write::string(&mut value, text);
    write::member(out, name, &value);
}

/// Reads which request a progress report belongs to.
pub(super) fn progress_id(params: &[u8]) -> Option<u64> {
    let token = object::get_member(params, meta::PROGRESS_TOKEN).ok()??;
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// Writes the cancellation of a request.
pub(super) fn cancelled(id: u64) -> Vec<u8> {
    let params = format!(r#"{{"requestId":{id},"reason":"the call was cancelled"}}"#);
    write::notification("notifications/cancelled", Some(params.as_bytes()))
}
