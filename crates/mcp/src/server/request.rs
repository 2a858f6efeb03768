//! One request, with the parameters that any served method reads.

use std::sync::Arc;

use bytes::Bytes;
use callward_core::{ClientInfo, IdempotencyKey};
use http::StatusCode;

use super::error::Fault;
use super::intro;
use crate::wire::meta::{self, RequestMeta};
use crate::wire::{Era, KNOWN_VERSIONS, RequestId, RpcError, code, object};

/// The methods served; one place for their names.
pub(super) mod method {
    pub(in crate::server) const CALL_TOOL: &str = "tools/call";
    pub(in crate::server) const CANCELLED: &str = "notifications/cancelled";
    pub(in crate::server) const DISCOVER: &str = "server/discover";
    pub(in crate::server) const INITIALIZE: &str = "initialize";
    pub(in crate::server) const INITIALIZED: &str = "notifications/initialized";
    pub(in crate::server) const LISTEN: &str = "subscriptions/listen";
    pub(in crate::server) const LIST_PROMPTS: &str = "prompts/list";
    pub(in crate::server) const LIST_RESOURCES: &str = "resources/list";
    pub(in crate::server) const LIST_TEMPLATES: &str = "resources/templates/list";
    pub(in crate::server) const LIST_TOOLS: &str = "tools/list";
    pub(in crate::server) const PING: &str = "ping";

    /// Returns the name of a method that is served: what clients make up is in no metric.
    pub(in crate::server) fn known(method: &str) -> Option<&'static str> {
        let served = [
            CALL_TOOL,
            DISCOVER,
            INITIALIZE,
            LISTEN,
            LIST_PROMPTS,
            LIST_RESOURCES,
            LIST_TEMPLATES,
            LIST_TOOLS,
            PING,
        ];
        served.into_iter().find(|known| *known == method)
    }
}

/// One request, with the parameters that any served method reads.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Params,
    pub(super) meta: RequestMeta,
    /// What the client calls this call by.
    pub(super) key: Option<IdempotencyKey>,
}

/// Parameters as raw JSON; absent and null are the same.
#[derive(Debug, Default)]
pub(super) struct Params {
    name: Option<Bytes>,
    /// `name`, if it is a string.
    tool_name: Option<String>,
    pub(super) arguments: Option<Bytes>,
    pub(super) client_info: Option<Bytes>,
    pub(super) cursor: Option<Bytes>,
    pub(super) input_responses: Option<Bytes>,
    pub(super) notifications: Option<Bytes>,
    pub(super) protocol_version: Option<Bytes>,
    pub(super) request_id: Option<Bytes>,
    pub(super) request_state: Option<Bytes>,
    pub(super) meta: Option<Bytes>,
}

impl Params {
    /// Takes a raw `params` object apart.
    pub(super) fn parse(raw: Option<&Bytes>) -> Result<Self, RpcError> {
        let mut params = Self::default();
        let Some(raw) = raw else {
            return Ok(params);
        };
        let members = object::members(raw).map_err(invalid)?;
        for (name, value) in members {
            let place = match name.as_ref() {
                "_meta" => &mut params.meta,
                "arguments" => &mut params.arguments,
                "clientInfo" => &mut params.client_info,
                "cursor" => &mut params.cursor,
                "inputResponses" => &mut params.input_responses,
                "name" => &mut params.name,
                "notifications" => &mut params.notifications,
                "protocolVersion" => &mut params.protocol_version,
                "requestId" => &mut params.request_id,
                "requestState" => &mut params.request_state,
                _ => continue,
            };
            if place.is_some() {
                // a proxy that checked this call before may have read the other one
                return Err(invalid(format!("`{name}` is there twice")));
            }
            // `null` is kept until the end, so that a second one is seen
            *place = Some(part_of(raw, value));
        }
        for place in params.places() {
            if place.as_deref() == Some(b"null") {
                *place = None;
            }
        }
        let name = params.name.as_deref();
        params.tool_name = name.and_then(|name| serde_json::from_slice(name).ok());
        Ok(params)
    }

    /// Returns the tool's name.
    pub(super) fn tool_name(&self) -> Option<&str> {
        self.tool_name.as_deref()
    }

    /// Returns the revision that is agreed on with a client that asks for one.
    pub(super) fn agreed_version(&self) -> Option<&'static str> {
        let asked: String = serde_json::from_slice(self.protocol_version.as_ref()?).ok()?;
        Some(intro::negotiate(&asked))
    }

    /// Returns how the client introduces itself in `initialize`.
    pub(super) fn client(&self) -> Option<Arc<ClientInfo>> {
        ClientInfo::from_json(self.client_info.as_ref()?).map(Arc::new)
    }

    fn places(&mut self) -> [&mut Option<Bytes>; 10] {
        [
            &mut self.name,
            &mut self.arguments,
            &mut self.client_info,
            &mut self.cursor,
            &mut self.input_responses,
            &mut self.notifications,
            &mut self.protocol_version,
            &mut self.request_id,
            &mut self.request_state,
            &mut self.meta,
        ]
    }
}

impl Request {
    /// Reads the parameters of a request.
    ///
    /// # Errors
    ///
    /// A fault to answer it with, if `params` or `_meta` cannot be read.
    pub(super) fn new(
        id: RequestId,
        method: String,
        params: Option<&Bytes>,
    ) -> Result<Self, (RequestId, Fault)> {
        let read = Params::parse(params).and_then(|params| {
            let meta = match &params.meta {
                Some(raw) => RequestMeta::from_json(raw).map_err(invalid)?,
                None => RequestMeta::default(),
            };
            let key = match meta.idempotency_key.as_deref() {
                Some(raw) if method == method::CALL_TOOL => Some(key_of(raw)?),
                _ => None,
            };
            Ok((params, meta, key))
        });
        match read {
            Ok((params, meta, key)) => Ok(Self {
                id,
                method,
                params,
                meta,
                key,
            }),
            Err(error) => Err((id, Fault::new(StatusCode::BAD_REQUEST, error))),
        }
    }

    /// Returns how the client introduces itself in `_meta`.
    pub(super) fn client(&self) -> Option<Arc<ClientInfo>> {
        ClientInfo::from_json(self.meta.client_info.as_ref()?).map(Arc::new)
    }

    /// Chooses how the request is served. A request that states its revision is modern whatever it
    /// states; two methods exist in the modern era only.
    pub(super) fn era(&self) -> Era {
        match self.method.as_str() {
            method::DISCOVER | method::LISTEN => Era::Modern,
            _ if self.meta.protocol_version.is_some() => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Checks what every modern request has to state about itself.
    ///
    /// # Errors
    ///
    /// The fault to answer with.
    pub(super) fn check_modern(&self) -> Result<(), Fault> {
        let Some(version) = &self.meta.protocol_version else {
            return Err(Fault::invalid_meta(meta::PROTOCOL_VERSION));
        };
        if !KNOWN_VERSIONS.contains(&version.as_str()) {
            return Err(Fault::unsupported_version(version));
        }
        let capabilities = self.meta.client_capabilities.as_ref();
        if capabilities.is_none_or(|raw| raw.first() != Some(&b'{')) {
            return Err(Fault::invalid_meta(meta::CLIENT_CAPABILITIES));
        }
        Ok(())
    }
}

/// Reads which request a `notifications/cancelled` takes back.
pub(super) fn cancelled_id(params: Option<&Bytes>) -> Option<RequestId> {
    let id = Params::parse(params).ok()?.request_id?;
    RequestId::from_raw(std::str::from_utf8(&id).ok()?)
}

/// Reads a key. An invalid one is refused, as its sender relies on it.
fn key_of(raw: &[u8]) -> Result<IdempotencyKey, RpcError> {
    let name = meta::IDEMPOTENCY_KEY;
    let text: String = serde_json::from_slice(raw)
        .map_err(|_| invalid(format!("`_meta`: `{name}` must be a string")))?;
    IdempotencyKey::new(text).map_err(|error| invalid(format!("`_meta`: `{name}`: {error}")))
}

fn invalid(reason: impl std::fmt::Display) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("params: {reason}"))
}

/// Returns a part of a buffer as a slice that keeps the buffer alive; a copy if it is elsewhere.
fn part_of(buffer: &Bytes, part: &[u8]) -> Bytes {
    let start = (part.as_ptr() as usize).wrapping_sub(buffer.as_ptr() as usize);
    match start.checked_add(part.len()) {
        Some(end) if end <= buffer.len() => buffer.slice(start..end),
        _ => Bytes::copy_from_slice(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, params: &str) -> Result<Request, (RequestId, Fault)> {
        let params = Bytes::copy_from_slice(params.as_bytes());
        Request::new(RequestId::number(1), method.to_owned(), Some(&params))
    }

    #[test]
    fn arguments_are_a_slice_of_what_came() {
        let raw =
            Bytes::from_static(br#"{"name":"a\u0062","arguments":{ "n" : 1e2 },"cursor":null}"#);
        let params = Params::parse(Some(&raw)).unwrap();
        let arguments = params.arguments.as_ref().unwrap();
        assert_eq!(&arguments[..], br#"{ "n" : 1e2 }"#);
        assert!(raw.as_ptr_range().contains(&arguments.as_ptr()));
        assert_eq!(params.tool_name(), Some("ab"));
        assert!(params.cursor.is_none(), "null is absent");
    }

    #[test]
    fn a_parameter_that_is_there_twice_is_refused() {
        for params in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"arguments":null,"arguments":{}}"#,
            r#"{"name":"a","n\u0061me":"b"}"#,
        ] {
            assert!(request(method::CALL_TOOL, params).is_err(), "{params}");
        }
    }

    #[test]
    fn the_era_is_chosen_by_the_request() {
        let meta = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        for (method, params, era) in [
            (method::LIST_TOOLS, "{}", Era::Legacy),
            (method::LIST_TOOLS, meta, Era::Modern),
            (method::INITIALIZE, "{}", Era::Legacy),
            (method::INITIALIZE, meta, Era::Modern),
            (method::DISCOVER, "{}", Era::Modern),
            (method::LISTEN, "{}", Era::Modern),
            (method::PING, "{}", Era::Legacy),
        ] {
            assert_eq!(
                request(method, params).unwrap().era(),
                era,
                "{method} {params}"
            );
        }
    }
}
