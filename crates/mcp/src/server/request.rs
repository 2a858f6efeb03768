//! One message of a client, and a request with the parameters that any served method reads.

use std::sync::Arc;

use bytes::Bytes;
use callward_core::{ClientCapabilities, ClientInfo, IdempotencyKey, LogLevel, Method};
use futures_util::future::Either;
use http::StatusCode;

use super::error::Fault;
use super::intro;
use crate::wire::object::{self, Known};
use crate::wire::{Era, KNOWN_VERSIONS, Message, RequestId, RpcError, code, meta};

/// The methods served; one place for their names.
pub(super) mod method {
    use callward_core::Method;

    pub(in crate::server) const CALL_TOOL: &str = Method::CallTool.as_str();
    pub(in crate::server) const CANCELLED: &str = "notifications/cancelled";
    pub(in crate::server) const DISCOVER: &str = "server/discover";
    pub(in crate::server) const INITIALIZE: &str = "initialize";
    pub(in crate::server) const INITIALIZED: &str = "notifications/initialized";
    pub(in crate::server) const LISTEN: &str = "subscriptions/listen";
    pub(in crate::server) const LIST_TOOLS: &str = "tools/list";
    pub(in crate::server) const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    pub(in crate::server) const SET_LEVEL: &str = "logging/setLevel";
    pub(in crate::server) const PING: &str = "ping";
    pub(in crate::server) const SUBSCRIBE: &str = "resources/subscribe";
    pub(in crate::server) const UNSUBSCRIBE: &str = "resources/unsubscribe";

    /// Returns `true` if a method asks what the server is or offers.
    pub(in crate::server) fn is_list(method: &str) -> bool {
        [DISCOVER, INITIALIZE, LIST_TOOLS].contains(&method)
            || Method::by_name(method).is_some_and(Method::is_list)
    }

    /// Returns the name of a method that is served: what clients make up is in no metric.
    pub(in crate::server) fn known(method: &str) -> Option<&'static str> {
        [
            DISCOVER,
            INITIALIZE,
            LISTEN,
            LIST_TOOLS,
            PING,
            SET_LEVEL,
            SUBSCRIBE,
            UNSUBSCRIBE,
        ]
        .into_iter()
        .chain(Method::ALL.iter().map(|relayed| relayed.as_str()))
        .find(|known| *known == method)
    }
}

/// Reads a message of a client: a request, on the left, or any other.
///
/// # Errors
///
/// A fault to answer it with, under its id if that can be read.
pub(super) fn receive(raw: &Bytes) -> Result<Either<Request, Message>, Fault> {
    match Message::parse(raw) {
        Ok(Message::Request { id, method, params }) => {
            let request = Request::new(id.clone(), method, params.as_ref());
            let request = request.map_err(|fault| fault.under(Some(&id)))?;
            Ok(Either::Left(request))
        }
        Ok(other) => Ok(Either::Right(other)),
        Err(invalid) => {
            let fault = Fault::new(StatusCode::BAD_REQUEST, invalid.to_rpc_error());
            // the id of an answer is that of a request of ours
            let has = |name| object::get_member(raw, name).is_ok_and(|value| value.is_some());
            let is_answer = !has("method") && (has("result") || has("error"));
            Err(fault.under(invalid.id().filter(|_| !is_answer)))
        }
    }
}

/// The parameters that are read.
const PARAMS: [&str; 14] = [
    "_meta",
    "arguments",
    "capabilities",
    "clientInfo",
    "cursor",
    "inputResponses",
    "level",
    "name",
    "notifications",
    "protocolVersion",
    "requestId",
    "requestState",
    "taskId",
    "uri",
];

/// The parameters of a relayed request that its server does not get as they are. Requests about
/// tasks have no further rounds, and bring answers as their own parameters.
const OURS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// The members of `_meta` that are read. One of the wrong type reads as absent: metadata fails no
/// call, except for an invalid idempotency key.
const META: [&str; 9] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::PROGRESS_TOKEN,
    meta::TRACEPARENT,
    meta::TRACESTATE,
    meta::BAGGAGE,
    meta::IDEMPOTENCY_KEY,
    meta::LOG_LEVEL,
];

/// One request, with the parameters that any served method reads.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) method: String,
    /// The method, if a server answers it.
    pub(super) relayed: Option<Method>,
    pub(super) params: Known,
    /// The parameters of a relayed request for its server; empty for `tools/call`.
    pub(super) passed_on: Bytes,
    pub(super) meta: Known,
    /// The revision that `_meta` states. It makes the request a modern one.
    pub(super) version: Option<String>,
    /// What a relayed request is about, such as the name of the tool, if it is a string.
    pub(super) name: Option<String>,
    /// The client's idempotency key.
    pub(super) key: Option<IdempotencyKey>,
}

impl Request {
    /// Reads the parameters of a request.
    ///
    /// # Errors
    ///
    /// A fault to answer it with, if `params` or `_meta` cannot be read.
    pub(super) fn new(id: RequestId, method: String, raw: Option<&Bytes>) -> Result<Self, Fault> {
        let known = |raw: Option<&Bytes>, names| match raw {
            Some(raw) => Known::parse(raw, names).map_err(invalid),
            None => Ok(Known::default()),
        };
        let params = known(raw, &PARAMS)?;
        let meta = known(params.get("_meta"), &META)?;
        let key = match meta.get(meta::IDEMPOTENCY_KEY) {
            Some(raw) if method == method::CALL_TOOL => Some(key_of(raw)?),
            _ => None,
        };
        let relayed = Method::by_name(&method);
        let passed_on = match (relayed, raw) {
            (None | Some(Method::CallTool), _) => Bytes::new(),
            (Some(_), None) => Bytes::from_static(b"{}"),
            (Some(method), Some(raw)) if method.is_of_task() => {
                object::without(raw, &["_meta"]).map_err(invalid)?
            }
            (Some(_), Some(raw)) => object::without(raw, &OURS).map_err(invalid)?,
        };
        let named_by = relayed.and_then(Method::named_by);
        Ok(Self {
            version: meta.text(meta::PROTOCOL_VERSION),
            name: named_by.and_then(|parameter| params.text(parameter)),
            relayed,
            passed_on,
            id,
            method,
            params,
            meta,
            key,
        })
    }

    /// Returns the revision that is agreed on with a client that asks for one.
    pub(super) fn agreed_version(&self) -> Option<&'static str> {
        let asked = self.params.text("protocolVersion")?;
        Some(intro::negotiate(&asked))
    }

    /// Returns how the client introduces itself in `initialize`.
    pub(super) fn client_of_session(&self) -> Option<Arc<ClientInfo>> {
        client(self.params.get("clientInfo"))
    }

    /// Returns what the client declares: in `initialize`, or with each modern request.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        let modern = self.meta.get(meta::CLIENT_CAPABILITIES);
        let declared = modern.or_else(|| self.params.get("capabilities"));
        declared.map_or_else(ClientCapabilities::default, |raw| {
            ClientCapabilities::parse(raw)
        })
    }

    /// Returns the level of log messages that a modern request asks for.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        LogLevel::by_name(&self.meta.text(meta::LOG_LEVEL)?)
    }

    /// Returns the token under which the client wants progress: a string or a number, raw.
    pub(super) fn progress_token(&self) -> Option<&Bytes> {
        let is_token = |first: &u8| matches!(first, b'"' | b'-' | b'0'..=b'9');
        let token = self.meta.get(meta::PROGRESS_TOKEN)?;
        token.first().is_some_and(is_token).then_some(token)
    }

    /// Returns how the client introduces itself in `_meta`.
    pub(super) fn client(&self) -> Option<Arc<ClientInfo>> {
        client(self.meta.get(meta::CLIENT_INFO))
    }

    /// Chooses how the request is served. A request that states its revision is modern whatever it
    /// states; two methods exist in the modern era only.
    pub(super) fn era(&self) -> Era {
        match self.method.as_str() {
            method::DISCOVER | method::LISTEN => Era::Modern,
            _ if self.version.is_some() => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Checks what every modern request has to state about itself.
    ///
    /// # Errors
    ///
    /// The fault to answer with.
    pub(super) fn check_modern(&self) -> Result<(), Fault> {
        let Some(version) = &self.version else {
            return Err(Fault::invalid_meta(meta::PROTOCOL_VERSION));
        };
        if !KNOWN_VERSIONS.contains(&version.as_str()) {
            return Err(Fault::unsupported_version(version));
        }
        let capabilities = self.meta.get(meta::CLIENT_CAPABILITIES);
        if capabilities.is_none_or(|raw| raw.first() != Some(&b'{')) {
            return Err(Fault::invalid_meta(meta::CLIENT_CAPABILITIES));
        }
        Ok(())
    }
}

/// Reads which request a `notifications/cancelled` takes back.
pub(super) fn cancelled_id(params: Option<&Bytes>) -> Option<RequestId> {
    let params = Known::parse(params?, &["requestId"]).ok()?;
    RequestId::from_raw(std::str::from_utf8(params.get("requestId")?).ok()?)
}

fn client(raw: Option<&Bytes>) -> Option<Arc<ClientInfo>> {
    ClientInfo::from_json(raw?).map(Arc::new)
}

/// Reads a key. An invalid one is refused, as its sender relies on it.
fn key_of(raw: &[u8]) -> Result<IdempotencyKey, Fault> {
    let name = meta::IDEMPOTENCY_KEY;
    let text: String = serde_json::from_slice(raw)
        .map_err(|_| invalid(format!("`_meta`: `{name}` must be a string")))?;
    IdempotencyKey::new(text).map_err(|error| invalid(format!("`_meta`: `{name}`: {error}")))
}

fn invalid(reason: impl std::fmt::Display) -> Fault {
    let error = RpcError::new(code::INVALID_PARAMS, format!("params: {reason}"));
    Fault::new(StatusCode::BAD_REQUEST, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, params: &str) -> Result<Request, Fault> {
        let params = Bytes::copy_from_slice(params.as_bytes());
        Request::new(RequestId::number(1), method.to_owned(), Some(&params))
    }

    #[test]
    fn metadata_of_the_wrong_type_is_absent() {
        for (token, read) in [("[]", None), (r#""t\u0041""#, Some(r#""t\u0041""#))] {
            let meta = format!(r#"{{"_meta":{{"tracestate":7,"progressToken":{token}}}}}"#);
            let request = request(method::CALL_TOOL, &meta).unwrap();
            assert_eq!(request.meta.text(meta::TRACESTATE), None);
            let token = request.progress_token().map(|token| &**token);
            assert_eq!(token, read.map(str::as_bytes));
        }
    }
}
