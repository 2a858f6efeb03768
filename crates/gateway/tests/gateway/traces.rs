//! One trace per call, from the client through one gateway or two to the server, in both eras of
//! the protocol and over both transports.

use callward_testkit::collector::{Collected, Collector, path_to};
use serde_json::{Value, json};

use crate::scripted::Script;
use crate::support::{CALLWARD, Gateway, Pipe, answer_of, http, within};

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

/// Makes a call through a gateway that speaks this era to another one, which is in front of the
/// server. Returns what the server got, and the spans on the way to it.
async fn through_two(
    era: &str,
    call: impl AsyncFnOnce(&Gateway) -> String,
) -> (String, Vec<Collected>) {
    let collector = Collector::start().await;
    let server = echo().server("echo") + "prefix = false\n";
    let inner = Gateway::configured(&(telemetry(&collector, "inner") + &server)).await;
    let server = format!(
        "[servers.inner]\nurl = \"{}\"\nera = \"{era}\"\nprefix = false\n",
        inner.url
    );
    let outer = Gateway::configured(&(telemetry(&collector, "outer") + &server)).await;
    let received = call(&outer).await;
    outer.stopped().await;
    inner.stopped().await;
    let way = way(&collector.spans(), &received);
    (received, way)
}

/// Calls as a modern client that records its trace.
async fn traced(gateway: &Gateway) -> String {
    let request = gateway.mcp_request_with("get_trace", &json!({}), &meta());
    let answer = within("the call", request.send()).await;
    text_of(&answer_of(&answer.unwrap().text().await.unwrap()))
}

/// What the server got of a call.
fn text_of(answer: &Value) -> String {
    let received = answer["result"]["content"][0]["text"].as_str();
    received.unwrap_or_else(|| panic!("{answer}")).to_owned()
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
    text_of(&answer_of(&answer))
}

/// Reads the ids that a server got.
fn ids(traceparent: &str) -> (String, String) {
    let parts: Vec<_> = traceparent.split('-').collect();
    let [_, trace, id, "01"] = parts[..] else {
        panic!("no sampled trace: {traceparent:?}")
    };
    (trace.to_owned(), id.to_owned())
}

/// The spans on the way to the server; there are no others in the trace.
fn way(spans: &[Collected], received: &str) -> Vec<Collected> {
    let (trace, id) = ids(received);
    let path = path_to(spans, &trace, &id);
    let in_trace: Vec<_> = spans.iter().filter(|span| span.trace == trace).collect();
    assert_eq!(path.len(), in_trace.len(), "{in_trace:#?}");
    path.into_iter().cloned().collect()
}

/// The trace of the client goes on, from one process to the next.
fn goes_on(received: &str, path: &[Collected]) {
    let kinds: Vec<_> = path.iter().map(|span| &*span.kind).collect();
    assert_eq!(kinds, ["Server", "Client", "Server", "Client"]);
    assert_eq!(ids(received).0, TRACE);
    assert_eq!(path[0].parent.as_deref(), Some(CLIENT));
    assert!(path[0].parent_is_remote && path[2].parent_is_remote);
}

#[tokio::test]
async fn a_clients_trace_goes_through_two_gateways_to_the_server() {
    for (era, version) in [("modern", "2026-07-28"), ("legacy", "2025-11-25")] {
        let (received, path) = through_two(era, traced).await;
        goes_on(&received, &path);
        let services: Vec<_> = path.iter().map(|span| span.service()).collect();
        assert_eq!(services, ["outer", "outer", "inner", "inner"]);
        for span in &path[1..3] {
            assert_eq!(span.attributes["mcp.protocol.version"], version);
        }
    }
    // the header of a legacy client is the parent of its call
    let (received, path) = through_two("legacy", traced_by_its_header).await;
    goes_on(&received, &path);
    for span in &path[..3] {
        assert_eq!(span.attributes["mcp.protocol.version"], "2025-11-25");
    }
}

#[tokio::test]
async fn a_client_without_a_trace_begins_one_at_the_gateway() {
    let untraced = async |gateway: &Gateway| text_of(&gateway.mcp("get_trace", json!({})).await);
    let (_, path) = through_two("auto", untraced).await;
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
    let received = text_of(&pipe.request("tools/call", params).await);
    assert!(pipe.close().await);
    goes_on(&received, &way(&collector.spans(), &received));
}
