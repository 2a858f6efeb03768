//! One trace per call, from the client through one gateway or two to the server, in both eras of
//! the protocol and over both transports.

use callward_testkit::collector::{Collected, Collector, path_to};
use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::scripted::Script;
use crate::support::{CALLWARD, Gateway, Pipe, answer_of, call, http, within};

/// Answers each call with the `traceparent` that came with it.
const ECHO: &str = r#"
trace=none
case $line in *'"traceparent":"'*) trace=${line#*'"traceparent":"'}; trace=${trace%%'"'*} ;; esac
says "$trace"
"#;

fn echo() -> Script<'static> {
    Script {
        call: ECHO,
        ..Script::of_one("get_trace")
    }
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT: &str = "00f067aa0ba902b7";

fn meta() -> Value {
    json!({ "traceparent": format!("00-{TRACE}-{CLIENT}-01") })
}

/// The gateway's part of a config.
fn telemetry(collector: &Collector, service: &str) -> String {
    format!(
        "[telemetry]\notlp_endpoint = \"{}\"\nservice_name = \"{service}\"\n",
        collector.endpoint()
    )
}

/// A gateway before the server itself.
async fn inner(collector: &Collector) -> Gateway {
    let server = echo().server("echo") + "prefix = false\n";
    Gateway::configured(&(telemetry(collector, "inner") + &server)).await
}

/// A gateway before that one, which speaks this era to it.
async fn outer(collector: &Collector, inner: &Gateway, era: &str) -> Gateway {
    let server = format!(
        "[servers.inner]\nurl = \"{}\"\nera = \"{era}\"\nprefix = false\n",
        inner.url
    );
    Gateway::configured(&(telemetry(collector, "outer") + &server)).await
}

/// Calls as a client that records its trace, and returns what the server got.
async fn traced(gateway: &Gateway, mode: Option<ClientLifecycleMode>) -> String {
    let Some(mode) = mode else {
        let request = gateway.mcp_request_with("get_trace", &json!({}), &meta());
        let answer = within("the call", request.send()).await;
        let answer = answer_of(&answer.unwrap().text().await.unwrap());
        return answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned();
    };
    let client = gateway.connect(mode).await;
    let result = call(&client, "get_trace", json!({})).await;
    let received = serde_json::to_value(&result.content[0]).unwrap();
    received["text"].as_str().unwrap().to_owned()
}

/// Calls as a client of 2025 whose HTTP library traces its requests, and which puts nothing into
/// `_meta`. Returns what the server got.
async fn traced_by_its_header(gateway: &Gateway) -> String {
    let version = "2025-11-25";
    let http = http();
    let post = |session: &str, message: Value| {
        let request = crate::support::message(http.post(&gateway.url), &message);
        let request = request.header("traceparent", format!("00-{TRACE}-{CLIENT}-01"));
        let request = match session {
            "" => request,
            session => request
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", version),
        };
        within("an answer", request.send())
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    } });
    let welcome = post("", hello).await.unwrap();
    let session = welcome.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    welcome.text().await.unwrap();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert!(post(&session, ready).await.unwrap().status().is_success());
    let params = json!({ "name": "get_trace", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let answer = post(&session, call).await.unwrap().text().await.unwrap();
    let answer = answer_of(&answer);
    let received = answer["result"]["content"][0]["text"].as_str();
    received.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Reads the ids that a server got.
fn ids(traceparent: &str) -> (String, String) {
    let parts: Vec<_> = traceparent.split('-').collect();
    let [_, trace, id, "01"] = parts[..] else {
        panic!("no sampled trace: {traceparent:?}")
    };
    (trace.to_owned(), id.to_owned())
}

/// The services and kinds on the way to a span, and the spans.
fn way<'a>(spans: &'a [Collected], received: &str) -> Vec<&'a Collected> {
    let (trace, id) = ids(received);
    let path = path_to(spans, &trace, &id);
    let in_trace: Vec<_> = spans.iter().filter(|span| span.trace == trace).collect();
    assert_eq!(path.len(), in_trace.len(), "{in_trace:#?}");
    path
}

fn kinds<'a>(path: &[&'a Collected]) -> Vec<(&'a str, &'a str)> {
    path.iter()
        .map(|span| (span.service(), &*span.kind))
        .collect()
}

#[tokio::test]
async fn a_modern_clients_trace_goes_through_two_gateways_to_the_server() {
    for era in ["modern", "legacy"] {
        let collector = Collector::start().await;
        let inner = inner(&collector).await;
        let outer = outer(&collector, &inner, era).await;
        let received = traced(&outer, None).await;
        outer.stopped().await;
        inner.stopped().await;

        let spans = collector.spans();
        let path = way(&spans, &received);
        assert_eq!(
            kinds(&path),
            [
                ("outer", "Server"),
                ("outer", "Client"),
                ("inner", "Server"),
                ("inner", "Client")
            ],
            "{era}: {spans:#?}"
        );
        assert_eq!(ids(&received).0, TRACE);
        assert_eq!(path[0].parent.as_deref(), Some(CLIENT));
        assert!(path[0].parent_is_remote && path[2].parent_is_remote);
        let version = if era == "modern" {
            "2026-07-28"
        } else {
            "2025-11-25"
        };
        assert_eq!(path[1].attributes["mcp.protocol.version"], version);
        assert_eq!(path[2].attributes["mcp.protocol.version"], version);
    }
}

#[tokio::test]
async fn a_legacy_clients_own_header_is_the_parent_of_its_call() {
    let collector = Collector::start().await;
    let inner = inner(&collector).await;
    let outer = outer(&collector, &inner, "legacy").await;
    let received = traced_by_its_header(&outer).await;
    outer.stopped().await;
    inner.stopped().await;

    let spans = collector.spans();
    let path = way(&spans, &received);
    let kinds: Vec<_> = path.iter().map(|span| &*span.kind).collect();
    assert_eq!(kinds, ["Server", "Client", "Server", "Client"]);
    assert_eq!(ids(&received).0, TRACE);
    assert_eq!(path[0].parent.as_deref(), Some(CLIENT));
    assert!(path[0].parent_is_remote && path[2].parent_is_remote);
    for span in &path[..3] {
        assert_eq!(span.attributes["mcp.protocol.version"], "2025-11-25");
    }
}

#[tokio::test]
async fn a_client_without_a_trace_begins_one_at_the_gateway() {
    let collector = Collector::start().await;
    let inner = inner(&collector).await;
    let outer = outer(&collector, &inner, "auto").await;
    let received = traced(&outer, Some(ClientLifecycleMode::Initialize)).await;
    outer.stopped().await;
    inner.stopped().await;
    let spans = collector.spans();
    let path = way(&spans, &received);
    assert_eq!((path.len(), path[0].parent.as_ref()), (4, None));
}

#[tokio::test]
async fn over_pipes_alone_it_is_one_trace_too() {
    let collector = Collector::start().await;
    let server = echo().command();
    let gateways = [
        "run", "--prefix", "p", "--", CALLWARD, "run", "--prefix", "q", "--",
    ];
    let args: Vec<_> = gateways
        .into_iter()
        .chain(server.iter().map(String::as_str))
        .collect();
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint())];
    let mut pipe = Pipe::open_with(&args, &environment).await;
    let params = json!({ "name": "p__q__get_trace", "arguments": {}, "_meta": meta() });
    let answer = pipe.request("tools/call", params).await;
    let received = answer["result"]["content"][0]["text"].as_str();
    let received = received.unwrap_or_else(|| panic!("{answer}")).to_owned();
    assert!(pipe.close().await);

    let spans = collector.spans();
    let path = way(&spans, &received);
    let kinds: Vec<_> = path.iter().map(|span| &*span.kind).collect();
    assert_eq!(kinds, ["Server", "Client", "Server", "Client"]);
    assert_eq!(path[0].parent.as_deref(), Some(CLIENT));
    assert_eq!(ids(&received).0, TRACE);
}
