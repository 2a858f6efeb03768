//! The context of a request, besides its message.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::ConnectInfo;
use callward_core::{Caller, ClientInfo, Inbound, RequestName, TraceContext, Transport};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Version};
use tokio::sync::mpsc;

use super::answer::Answer;
use super::client::SessionClient;
use super::request::Request;
use crate::wire::{Era, RequestId, header, known_version, meta};

/// How long the id of a request may be where it is shown, in characters.
const SHOWN_ID: usize = 128;

/// The context of a request.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) era: Era,
    pub(super) caller: Arc<Caller>,
    pub(super) inbound: Inbound,
    /// The trace context of a call.
    pub(super) trace: Option<TraceContext>,
    /// As it came: nothing of it may be passed on unless it is listed.
    pub(super) baggage: Option<String>,
    /// The client of the session, if it has one.
    pub(super) client: Option<Arc<SessionClient>>,
    /// Where messages beside the answer go, if the transport can carry them.
    pub(super) reports: Option<mpsc::Sender<Answer>>,
}

impl Arrival {
    /// It came this way, from a client that introduced itself so, if it did.
    pub(super) fn new(
        era: Era,
        caller: Arc<Caller>,
        transport: Transport,
        client: Option<Arc<ClientInfo>>,
    ) -> Self {
        let mut inbound = Inbound::new(transport);
        inbound.client_info = client;
        Self {
            era,
            caller,
            inbound,
            trace: None,
            baggage: None,
            client: None,
            reports: None,
        }
    }

    /// Adds what the headers of an HTTP request state.
    pub(super) fn add_headers(&mut self, parts: &Parts) {
        let headers = &parts.headers;
        let single = |name| header::single(headers, name).ok().flatten();
        let inbound = &mut self.inbound;
        inbound.session.clone_from(&self.caller.session);
        inbound.protocol_version = single(&header::PROTOCOL_VERSION).and_then(known_version);
        inbound.http_version = http_version(parts.version);
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        inbound.client = peer.map(|ConnectInfo(client)| *client);
        if let Some(parent) = single(&header::TRACEPARENT) {
            let state = joined(headers, &header::TRACESTATE);
            self.trace = TraceContext::parse(parent, state.as_deref()).ok();
        }
        self.baggage = joined(headers, &header::BAGGAGE);
    }

    /// Returns `true` if the request needs a way to its client: servers may ask it something, or it
    /// wants to read log messages.
    pub(super) fn reaches(&self, request: &Request) -> bool {
        match &self.client {
            Some(client) => client.is_reached(),
            None => request.log_level().is_some(),
        }
    }

    /// Merges it with the message's own context, which takes precedence: a hop that does not read
    /// messages may have forwarded the HTTP request.
    pub(super) fn merge(&mut self, request: &Request) {
        if let Some(version) = &request.version {
            self.inbound.protocol_version = known_version(version);
        }
        if let Some(client) = request.client() {
            self.inbound.client_info = Some(client);
        }
        self.inbound.request = Some(name(&request.id));
        let state = request.meta.text(meta::TRACESTATE);
        let parent = request.meta.text(meta::TRACEPARENT);
        // one that cannot be read is ignored
        let own = parent.and_then(|parent| TraceContext::parse(&parent, state.as_deref()).ok());
        if let Some(own) = own {
            let beside = self.trace.replace(own);
            self.inbound.beside = beside.filter(|beside| Some(beside) != self.trace.as_ref());
        }
        if let Some(own) = request.meta.text(meta::BAGGAGE) {
            self.baggage = Some(own);
        }
    }
}

fn name(id: &RequestId) -> RequestName {
    match id.as_u64() {
        Some(number) => RequestName::Number(number),
        None => {
            let raw = id.to_raw();
            let text = serde_json::from_str::<String>(&raw).unwrap_or_else(|_| raw.into_owned());
            RequestName::Text(text.chars().take(SHOWN_ID).collect())
        }
    }
}

fn http_version(version: Version) -> Option<&'static str> {
    Some(match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_11 => "1.1",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => return None,
    })
}

/// Returns a header that is a list, which may be spread over several lines.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values = headers.get_all(name).iter();
    let texts: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::server::request::method;

    const ONE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const TWO: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01";

    /// A request of this id and `_meta` that comes with these headers.
    fn arrived(headers: &[(&str, &str)], id: &str, meta: &str) -> Arrival {
        let mut http = http::Request::post("/mcp")
            .extension(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 4321))));
        for (name, value) in headers {
            http = http.header(*name, *value);
        }
        let (parts, ()) = http.body(()).unwrap().into_parts();
        let id = RequestId::from_raw(id).unwrap();
        let params = Bytes::from(format!(r#"{{"name":"x","_meta":{meta}}}"#));
        let request = Request::new(id, method::CALL_TOOL.to_owned(), Some(&params)).unwrap();
        let client = ClientInfo::from_json(br#"{"name":"session","version":"1"}"#).map(Arc::new);
        let mut arrival = Arrival::new(Era::Legacy, Caller::local(), Transport::Tcp, client);
        arrival.add_headers(&parts);
        arrival.merge(&request);
        arrival
    }

    #[test]
    fn the_context_in_meta_is_the_parent_and_that_of_http_a_link() {
        let http = [
            ("traceparent", TWO),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
        ];
        let (one, two) = (format!("{ONE} m=1"), format!("{TWO} a=1,b=2"));
        let own = format!(r#"{{"traceparent":"{ONE}","tracestate":"m=1"}}"#);
        let same = [("traceparent", ONE), ("tracestate", "m=1")];
        let twice = [("traceparent", ONE), ("traceparent", TWO)];
        for (headers, meta, parent, beside) in [
            (&http[..], &*own, Some(&*one), Some(&*two)),
            (&http, "{}", Some(&two), None),
            (&http, r#"{"traceparent":"00-nonsense"}"#, Some(&two), None),
            (&http, r#"{"traceparent":7}"#, Some(&two), None),
            (&same, &own, Some(&one), None),
            // two parents are none
            (&twice, "{}", None, None),
        ] {
            let reported = arrived(headers, "1", meta);
            let shown = |trace: Option<&TraceContext>| {
                trace.map(|trace| format!("{trace} {}", trace.state().unwrap_or_default()))
            };
            assert_eq!(shown(reported.trace.as_ref()).as_deref(), parent, "{meta}");
            let link = shown(reported.inbound.beside.as_ref());
            assert_eq!(link.as_deref(), beside, "{meta}");
        }
    }

    #[test]
    fn what_the_message_states_comes_before_headers_and_session() {
        let http = [
            ("mcp-protocol-version", "2025-06-18"),
            ("baggage", "a=1"),
            ("baggage", "b=2"),
        ];
        let own = r#"{"baggage":"c=3","io.modelcontextprotocol/clientInfo":{"name":"own"},
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let odd = r#"{"io.modelcontextprotocol/clientInfo":7}"#;
        for (meta, expected) in [
            ("{}", ["a=1,b=2", "session 1", "2025-06-18"]),
            (odd, ["a=1,b=2", "session 1", "2025-06-18"]),
            (own, ["c=3", "own", "2026-07-28"]),
        ] {
            let Arrival {
                inbound, baggage, ..
            } = arrived(&http, "1", meta);
            let client = inbound.client_info.unwrap().to_string();
            let version = inbound.protocol_version.unwrap();
            assert_eq!([&*baggage.unwrap(), &client, version], expected);
        }
    }

    #[test]
    fn the_connection_and_the_id_are_reported() {
        let inbound = arrived(&[], r#""a\"b""#, "{}").inbound;
        assert_eq!(inbound.http_version, Some("1.1"));
        assert_eq!(inbound.client.unwrap().port(), 4321);
        assert_eq!(inbound.request.unwrap().to_string(), "a\"b");
        let number = arrived(&[], "1", "{}").inbound.request;
        assert_eq!(number, Some(RequestName::Number(1)));
        let long = arrived(&[], &format!("\"{}\"", "x".repeat(10_000)), "{}");
        let shown = long.inbound.request.unwrap().to_string();
        assert_eq!(shown.len(), SHOWN_ID);
    }
}
