//! `/metrics`: text that Prometheus reads, with nothing in it that a caller made up, and the
//! dashboard over it.

use std::collections::BTreeSet;

use callward::telemetry::names::metric::{self, Kind, Metric};
use callward_testkit::collector::Collector;
use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scrape::{Scrape, family};
use crate::scripted::Script;
use crate::support::{CALLWARD, Gateway, Pipe, call, result, sample, until, within};

/// The only metric that is on no panel: an embedding shows it as it shows its own calls.
const NOT_SHOWN: Metric = metric::EXECUTE_TOOL_DURATION;

/// Ends in the middle of the first call it gets, and answers those after its new start. The
/// argument is a file that tells the two apart.
const ENDS_ONCE: &str = r#"
if [ ! -e "$argument" ]; then : > "$argument"; exit 1; fi
says here
"#;

/// After its end it starts again once there is another file.
const STARTS_WHEN_TOLD: &str = r#"
while [ -e "$argument" ] && [ ! -e "$argument.again" ]; do sleep 0.02; done
"#;

/// Starts a gateway with everything that is reported: an audit log, a collector that does not run,
/// and servers that are slow, limited or end.
async fn started(folder: &TempDir) -> Gateway {
    let log = folder.path().join("audit.jsonl");
    let began = folder.path().join("began");
    let once = Script {
        each: STARTS_WHEN_TOLD,
        call: ENDS_ONCE,
        argument: began.to_str().unwrap(),
        ..Script::of_one("get_current_time")
    };
    let config = format!(
        "[audit]\npath = {log:?}\n[telemetry]\notlp_endpoint = \"http://127.0.0.1:9\"\n\
         [principals]\nlists_per_minute = 100000\n\
         {}{}instances = \"shared\"\n\
         {}max_concurrent = 1\ncalls_per_minute = 60000\nttl = \"5m\"\n\
         [servers.narrow.tools.add_note]\nrateLimitHint = 1\n",
        sample("orders"),
        once.server("once"),
        sample("narrow"),
    );
    Gateway::configured(&config).await
}

/// Makes calls that are answered, wait, are repeated, refused and left out of every cache.
async fn used(gateway: &Gateway, folder: &TempDir) {
    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    for _ in 0..2 {
        call(&legacy, "orders__get_order", json!({"order_id": 1})).await;
    }
    // its plan asks a person, and there is none to ask
    call(&legacy, "orders__delete_order", json!({"order_id": 2})).await;
    within("the end", legacy.cancel()).await.unwrap();
    // the call waits for the server that it was lost with
    let servers = Scrape::of(gateway).await.value(metric::SERVER_UP);
    let answer = gateway.mcp("once__get_current_time", json!({}));
    let again = async {
        until("a server that is down", || async {
            let up = Scrape::of(gateway).await.value(metric::SERVER_UP);
            (up < servers).then_some(())
        })
        .await;
        std::fs::write(folder.path().join("began.again"), "").unwrap();
    };
    let (answer, ()) = tokio::join!(answer, again);
    result(&answer);
    // an operator's call for one server does not look into the cache
    let pinned = "/api/tools/narrow__get_order/call?server=narrow";
    let missing = r#"{"order_id": 999999}"#;
    gateway.post(pinned, "application/json", missing).await;
    // what a tool calls an error is not kept
    let missing = json!({"order_id": 999_999});
    gateway.mcp("narrow__get_order", missing).await;
    for _ in 0..2 {
        let note = json!({"order_id": 1, "text": "x"});
        gateway.mcp("narrow__add_note", note).await;
    }
    // two that run at the same time have one place
    let mut delay = 20;
    until("a call that waits", || {
        delay += 2;
        let report = |delay: u32| {
            let arguments = json!({"region": "north", "delay_ms": delay});
            gateway.mcp("narrow__sales_report", arguments)
        };
        let both = (report(delay), report(delay + 1));
        async move {
            tokio::join!(both.0, both.1);
            let scrape = Scrape::of(gateway).await;
            scrape.has(metric::LIMIT_WAIT_DURATION).then_some(())
        }
    })
    .await;
}

#[tokio::test]
async fn prometheus_reads_each_metric_of_the_list_and_the_dashboard_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = started(&folder).await;
    let scrape = Scrape::of(&gateway).await;
    for metric in metric::ALL {
        let is_late = *metric == metric::RETRY_BUDGET_REFUSALS;
        let is_there = metric.kind != Kind::Counter || is_late || scrape.has(*metric);
        assert!(is_there, "{metric:?} is not there from the start");
    }
    used(&gateway, &folder).await;
    let scrape = until("the end of the session with the server", || async {
        let scrape = Scrape::of(&gateway).await;
        scrape
            .has(metric::CLIENT_SESSION_DURATION)
            .then_some(scrape)
    })
    .await;
    let listed: BTreeSet<_> = metric::ALL.iter().map(|metric| family(*metric)).collect();
    for name in scrape.kinds.keys() {
        assert!(listed.contains(name), "{name} is in no list");
    }
    for metric in metric::ALL {
        assert!(scrape.has(*metric), "{metric:?}");
    }
    for metric in [
        metric::LIMIT_WAIT_DURATION,
        metric::RETRY_BACKOFF_DURATION,
        metric::CLIENT_SESSION_DURATION,
    ] {
        let of = |end: &str| scrape.sum(&(family(metric) + end), &[]);
        assert!(of("_count") >= 1.0 && of("_sum") > 0.0, "{metric:?}");
    }
    assert!(scrape.value(metric::RETRY_REPEATS) >= 1.0);
    labels_are_listed(&scrape);
    dashboard_shows(&scrape);
}

/// Labels are those of the list, and each of the list is on some series.
fn labels_are_listed(scrape: &Scrape) {
    let as_prometheus = |label: &str| label.replace('.', "_");
    let mut wrong = Vec::new();
    for metric in metric::ALL {
        let of_it = scrape
            .samples
            .iter()
            .filter(|(name, ..)| scrape.family(name) == Some(&*family(*metric)));
        let mut seen: BTreeSet<_> = of_it
            .flat_map(|(_, labels, _)| labels.iter().map(|(label, _)| label.clone()))
            .collect();
        // the range of a histogram is Prometheus' own, and any series may stand for what is beyond
        // a limit
        seen.remove("le");
        seen.remove(&as_prometheus(metric::label::OVERFLOW));
        let listed = metric.labels.iter().map(|label| as_prometheus(label));
        if seen != listed.collect() {
            wrong.push((metric.name, metric.labels, seen));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn expressions(panel: &Value, into: &mut Vec<String>) {
    for target in panel["targets"].as_array().into_iter().flatten() {
        into.push(target["expr"].as_str().unwrap().to_owned());
    }
    for inner in panel["panels"].as_array().into_iter().flatten() {
        expressions(inner, into);
    }
}

/// Returns the names of metrics in a PromQL expression: the words that begin as all of ours do,
/// those of labels left out.
fn named(expression: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // labels stand in braces, and after `by` in parentheses
    let outside = expression.split('{').flat_map(|part| {
        let after = part.split_once('}').map_or(part, |(_, after)| after);
        let mut parts = after.split("by (");
        let first = parts.next().into_iter();
        first.chain(parts.filter_map(|part| Some(part.split_once(')')?.1)))
    });
    let words = outside.flat_map(|part| part.split(move |c| !is_word(c)));
    let starts = ["callward_", "mcp_", "gen_ai_"];
    words
        .filter(|word| starts.iter().any(|start| word.starts_with(start)))
        .collect()
}

/// The dashboard shows what there is, and all of it.
fn dashboard_shows(scrape: &Scrape) {
    let root = env!("CARGO_MANIFEST_DIR");
    let text = std::fs::read_to_string(format!("{root}/../../docs/grafana/callward.json"));
    let dashboard: Value = serde_json::from_str(&text.unwrap()).unwrap();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    let shown: BTreeSet<_> = all.iter().flat_map(|one| named(one)).collect();
    assert!(shown.len() > 40, "{shown:?}");
    for name in &shown {
        assert!(scrape.family(name).is_some(), "{name} is nowhere");
    }
    for metric in metric::ALL {
        let family = family(*metric);
        let is_shown = match metric.kind {
            Kind::Histogram => shown.iter().any(|name| name.starts_with(&family)),
            _ => shown.contains(family.as_str()),
        };
        assert_eq!(is_shown, *metric != NOT_SHOWN, "{family}");
    }
}

#[tokio::test]
async fn no_label_has_characters_that_disguise_a_name() {
    let gateway = Gateway::configured(&Script::of_one("gnp\u{202e}exe").server("odd")).await;
    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    call(&legacy, "odd__gnp\u{202e}exe", json!({})).await;
    let (_, text) = gateway.get("/metrics").await;
    let is_written_out = text.contains(r#""gnp\\u{202e}exe""#);
    assert!(is_written_out && !text.contains('\u{202e}'), "{text}");
}

#[tokio::test]
async fn a_hundred_thousand_made_up_names_make_no_series() {
    let collector = Collector::start().await;
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint())];
    let mut pipe = Pipe::open_with(&["run", "--", CALLWARD, "sample"], &environment).await;
    for round in 0..200 {
        let mut sent = Vec::new();
        for n in 0..500 {
            let params = json!({"name": format!("made_up_{round}_{n}"), "arguments": {}});
            sent.push(pipe.send("tools/call", params).await);
        }
        for id in sent {
            let answer = pipe.answer(id).await;
            assert!(answer.contains("\"error\""), "{answer}");
        }
    }
    assert!(pipe.close().await);
    let mut refused = 0.0;
    for name in collector.metrics() {
        let series = collector.metric(&name);
        assert!(series.len() < 50, "{name}: {}", series.len());
        for one in series {
            let reported = format!("{:?}", one.attributes);
            assert!(!reported.contains("made_up"), "{name}: {reported}");
            if name == metric::SERVER_OPERATION_DURATION.name && reported.contains("unknown_tool") {
                refused += one.value;
            }
        }
    }
    assert_eq!(refused, 100_000.0);
}
