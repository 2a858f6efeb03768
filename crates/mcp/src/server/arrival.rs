//! The context of a request, besides its message.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::ConnectInfo;
use callward_core::{ClientInfo, Inbound, RequestName, SessionId, TraceContext, Transport};
use http::request::Parts;
use http::{HeaderMap, Version};

use super::request::Request;
use crate::wire::{RequestId, header, known_version, meta};

/// How long the id of a request may be where it is shown, in characters.
const SHOWN_ID: usize = 128;

/// The context of a request.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) inbound: Inbound,
    /// The trace context of a call.
    pub(super) trace: Option<TraceContext>,
    /// As it came: nothing of it may be passed on unless it is listed.
    pub(super) baggage: Option<String>,
}

impl Arrival {
    /// It came over a pair of pipes, from a client that agreed on this revision and introduced
    /// itself so, if it did either.
    pub(super) fn by_pipe(agreed: Option<&'static str>, client: Option<Arc<ClientInfo>>) -> Self {
        let mut inbound = Inbound::new(Transport::Pipe);
        inbound.protocol_version = agreed;
        inbound.client_info = client;
        Self {
            inbound,
            trace: None,
            baggage: None,
        }
    }

    /// It came by HTTP, in this session, from a client that introduced itself so when it opened it.
    pub(super) fn by_http(
        parts: &Parts,
        session: Option<&SessionId>,
        client: Option<Arc<ClientInfo>>,
    ) -> Self {
        let headers = &parts.headers;
        let mut inbound = Inbound::new(Transport::Tcp);
        inbound.protocol_version = text(headers, header::PROTOCOL_VERSION).and_then(known_version);
        inbound.session = session.cloned();
        inbound.client_info = client;
        inbound.http_version = http_version(parts.version);
        inbound.client = parts
            .extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map(|ConnectInfo(client)| *client);
        let state = joined(headers, header::TRACESTATE);
        Self {
            inbound,
            trace: header::single(headers, header::TRACEPARENT)
                .ok()
                .flatten()
                .and_then(|parent| TraceContext::parse(parent, state.as_deref()).ok()),
            baggage: joined(headers, header::BAGGAGE),
        }
    }

    /// Merges it with the message's own context, which takes precedence: a hop that does not read
    /// messages may have forwarded the HTTP request.
    pub(super) fn of(mut self, request: &Request) -> Self {
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
            self.inbound.beside = self.trace.filter(|beside| *beside != own);
            self.trace = Some(own);
        }
        self.baggage = request.meta.text(meta::BAGGAGE).or(self.baggage);
        self
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

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns a header that is a list, which may be spread over several lines.
fn joined(headers: &HeaderMap, name: &str) -> Option<String> {
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

    fn request(id: &str, meta: &str) -> Request {
        let id = RequestId::from_raw(id).unwrap();
        let params = Bytes::from(format!(r#"{{"name":"x","_meta":{meta}}}"#));
        Request::new(id, method::CALL_TOOL.to_owned(), Some(&params)).unwrap()
    }

    /// A request that comes with these headers and this `_meta`.
    fn arrived(headers: &[(&str, &str)], meta: &str) -> Arrival {
        Arrival::by_http(&parts(headers), None, None).of(&request("1", meta))
    }

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::post("/mcp")
            .extension(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 4321))));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn parent(reported: &Arrival) -> Option<String> {
        reported.trace.as_ref().map(ToString::to_string)
    }

    #[test]
    fn the_context_in_meta_is_the_parent_and_that_of_http_a_link() {
        let http = [
            ("traceparent", TWO),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
        ];
        let own = format!(r#"{{"traceparent":"{ONE}","tracestate":"m=1"}}"#);
        let same = format!(r#"{{"traceparent":"{ONE}"}}"#);
        let reported = arrived(&http, &own);
        assert_eq!(parent(&reported).as_deref(), Some(ONE));
        assert_eq!(reported.trace.unwrap().state(), Some("m=1"));
        let beside = reported.inbound.beside.unwrap();
        assert_eq!(beside.to_string(), TWO);
        assert_eq!(beside.state(), Some("a=1,b=2"));

        for (headers, meta, expected) in [
            (&http[..], "{}", Some(TWO)),
            (&http, r#"{"traceparent":"00-nonsense"}"#, Some(TWO)),
            (&http, r#"{"traceparent":7}"#, Some(TWO)),
            // it is the same one
            (&[("traceparent", ONE)], &same, Some(ONE)),
            // two parents are none
            (&[("traceparent", ONE), ("traceparent", TWO)], "{}", None),
        ] {
            let reported = arrived(headers, meta);
            assert_eq!(parent(&reported).as_deref(), expected, "{meta}");
            assert_eq!(reported.inbound.beside, None, "{meta}");
        }
    }

    #[test]
    fn baggage_of_the_message_comes_before_that_of_http() {
        let http = [("baggage", "a=1"), ("baggage", "b=2")];
        for (meta, expected) in [("{}", "a=1,b=2"), (r#"{"baggage":"c=3"}"#, "c=3")] {
            assert_eq!(arrived(&http, meta).baggage.as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_the_transport_knows_is_told() {
        let http = parts(&[("mcp-protocol-version", "2025-06-18")]);
        let session = SessionId::new("s");
        let arrival = Arrival::by_http(&http, Some(&session), None);
        let reported = arrival.of(&request(r#""a\"b""#, "{}"));
        let inbound = reported.inbound;
        assert_eq!(inbound.transport, Transport::Tcp);
        assert_eq!(inbound.protocol_version, Some("2025-06-18"));
        assert_eq!(inbound.session, Some(session));
        assert_eq!(inbound.http_version, Some("1.1"));
        assert_eq!(inbound.client.unwrap().port(), 4321);
        assert_eq!(inbound.request.unwrap().to_string(), "a\"b");

        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let modern = request("1", meta);
        let reported = Arrival::by_pipe(Some("2024-11-05"), None).of(&modern);
        assert_eq!(reported.inbound.protocol_version, Some("2026-07-28"));
        assert_eq!(reported.inbound.request, Some(RequestName::Number(1)));
        assert_eq!(reported.inbound.transport, Transport::Pipe);
        let long = request(&format!("\"{}\"", "x".repeat(10_000)), "{}");
        let shown = Arrival::by_pipe(None, None).of(&long).inbound.request;
        assert_eq!(shown.unwrap().to_string().len(), SHOWN_ID);
    }

    #[test]
    fn the_client_is_that_of_the_message_or_else_that_of_the_session() {
        let http = parts(&[]);
        let said = ClientInfo::from_json(br#"{"name":"session","version":"1"}"#).map(Arc::new);
        for (meta, expected) in [
            ("{}", "session 1"),
            (
                r#"{"io.modelcontextprotocol/clientInfo":{"name":"own"}}"#,
                "own",
            ),
            (r#"{"io.modelcontextprotocol/clientInfo":7}"#, "session 1"),
        ] {
            let arrival = Arrival::by_http(&http, None, said.clone());
            let client = arrival.of(&request("1", meta)).inbound.client_info;
            assert_eq!(client.unwrap().to_string(), expected);
        }
    }
}
