//! One trace per call, from the client through one gateway or two to the server, in both eras of
//! the protocol and over both transports; and that a faulty collector does not affect calls.

use callward::telemetry::names::metric;
use callward_testkit::collector::{Collected, Collector, Mood, path_to};
use serde_json::{Value, json};

use crate::scrape::Scrape;
use crate::scripted::Script;
use crate::support::{CALLWARD, Gateway, Legacy, Pipe, result, said, sample, serve};

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

fn traceparent() -> String {
    format!("00-{TRACE}-{CLIENT}-01")
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
    let url = &inner.url;
    let server = format!("[servers.inner]\nurl = \"{url}\"\nera = \"{era}\"\nprefix = false\n");
    let outer = Gateway::configured(&(telemetry(&collector, "outer") + &server)).await;
    let received = call(&outer).await;
    outer.stopped().await;
    inner.stopped().await;
    let way = way(&collector.spans(), &received);
    (received, way)
}

/// Calls as a modern client that records its trace.
async fn traced(gateway: &Gateway) -> String {
    let meta = json!({"traceparent": traceparent()});
    let answer = gateway.mcp_with("get_trace", &json!({}), &meta).await;
    said(&answer).to_owned()
}

/// Calls as a client of 2025 whose HTTP library traces its requests, and which puts nothing into
/// `_meta`.
async fn traced_by_its_header(gateway: &Gateway) -> String {
    let headers = vec![("traceparent", traceparent())];
    let client = Legacy::with(&gateway.url, headers).await.unwrap();
    client.call("get_trace", json!({})).await
}

/// Reads the ids that a server got.
fn ids(traceparent: &str) -> (&str, &str) {
    let parts: Vec<_> = traceparent.split('-').collect();
    let [_, trace, id, "01"] = parts[..] else {
        panic!("no sampled trace: {traceparent:?}")
    };
    (trace, id)
}

/// The spans on the way to the server; there are no others in the trace.
fn way(spans: &[Collected], received: &str) -> Vec<Collected> {
    let (trace, id) = ids(received);
    let path = path_to(spans, trace, id);
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
    // a client without a trace begins one at the gateway
    let untraced = async |gateway: &Gateway| {
        let answer = gateway.mcp("get_trace", json!({})).await;
        said(&answer).to_owned()
    };
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
    let server = server.iter().map(String::as_str);
    let args: Vec<_> = gateways.into_iter().chain(server).collect();
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint())];
    let mut pipe = Pipe::open_with(&args, &environment).await;
    let meta = json!({"traceparent": traceparent()});
    let params = json!({"name": "p__q__get_trace", "arguments": {}, "_meta": meta});
    let answer: Value = pipe.request("tools/call", params).await;
    assert!(pipe.close().await);
    let received = said(&answer);
    goes_on(received, &way(&collector.spans(), received));
}

#[tokio::test]
async fn a_collector_that_hangs_costs_no_call_and_what_it_lacks_is_said() {
    let collector = Collector::start().await;
    collector.behave(Mood::Hangs);
    let (mut command, file) = serve(&(telemetry(&collector, "edge") + &sample("shop")));
    command.env("OTEL_BSP_MAX_QUEUE_SIZE", "100");
    let gateway = Gateway::started(command, Some(file), None).await;
    for number in 0..1_000 {
        let order = json!({ "order_id": number % 3 + 1 });
        result(&gateway.call("shop__get_order", order).await);
    }
    let scrape = Scrape::of(&gateway).await;
    let counted = |result| {
        let labels = [("callward_result", result)];
        scrape.value_with(metric::TELEMETRY_SPANS, &labels)
    };
    assert!(counted("dropped") > 0.0, "{scrape:?}");
    assert_eq!(counted("exported"), 0.0, "{scrape:?}");
    let log = gateway.stopped().await;
    let lacking = "spans did not reach the collector";
    assert!(log.contains(lacking), "{log}");
}
