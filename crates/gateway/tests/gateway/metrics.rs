//! `/metrics`: text that Prometheus reads, with nothing in it that a caller made up, and the
//! dashboard over it.

use std::collections::{BTreeMap, BTreeSet};

use callward::telemetry::names::metric::{self, Kind, Metric};
use callward_testkit::collector::Collector;
use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scrape::{Labels, Scrape, family};
use crate::scripted::Script;
use crate::support::{CALLWARD, Gateway, Pipe, call, until, within};

/// What is in no scrape of this test, and why.
const NEVER: &[(Metric, &str)] = &[
    (
        metric::EXECUTE_TOOL_DURATION,
        "calls of a gateway come over MCP",
    ),
    (metric::LIMIT_WAIT_DURATION, "no call had to wait"),
    (metric::RETRY_BACKOFF_DURATION, "no call was repeated"),
];

/// A gateway with everything that is reported: an audit log, and a collector that does not run.
async fn sample() -> (Gateway, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let config = format!(
        "[audit]\npath = {log:?}\n[telemetry]\notlp_endpoint = \"http://127.0.0.1:9\"\n\
         [servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n"
    );
    (Gateway::configured(&config).await, folder)
}

async fn busy() -> (Gateway, TempDir) {
    let (gateway, folder) = sample().await;
    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    for _ in 0..2 {
        call(&legacy, "orders__get_order", json!({"order_id": 1})).await;
    }
    // its plan asks a person, and there is none to ask
    call(&legacy, "orders__delete_order", json!({"order_id": 2})).await;
    within("the end", legacy.cancel()).await.unwrap();
    (gateway, folder)
}

#[tokio::test]
async fn each_counter_is_there_from_the_start() {
    let (gateway, _folder) = sample().await;
    let scrape = Scrape::of(&gateway).await;
    let late = [metric::RETRY_BUDGET_REFUSALS];
    let counters = metric::ALL.iter().filter(|one| one.kind == Kind::Counter);
    for metric in counters.filter(|one| !late.contains(one)) {
        assert!(scrape.has(*metric), "{metric:?}");
    }
}

#[tokio::test]
async fn prometheus_can_read_each_metric_of_the_list_and_there_is_no_other() {
    let (gateway, _folder) = busy().await;
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
        let never = NEVER.iter().any(|(one, _)| one == metric);
        assert_eq!(scrape.has(*metric), !never, "{metric:?}");
    }
    let mut buckets: BTreeMap<(String, Labels), Vec<f64>> = BTreeMap::new();
    for (name, labels, value) in &scrape.samples {
        let (family, kind) = scrape.family(name).unwrap();
        assert_eq!(kind == "histogram", name != family, "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        if name.ends_with("_bucket") {
            let of = labels.iter().filter(|(name, _)| name != "le").cloned();
            let of = (family.to_owned(), of.collect());
            buckets.entry(of).or_default().push(*value);
        }
    }
    assert!(!buckets.is_empty());
    for ((family, labels), counts) in buckets {
        assert!(counts.is_sorted(), "{family} {labels:?} {counts:?}");
        let count = format!("{family}_count");
        let same = |(name, of, _): &&(String, Vec<_>, f64)| *name == count && *of == labels;
        let count = scrape.samples.iter().find(same).unwrap().2;
        assert_eq!(counts.last(), Some(&count), "{family} {labels:?}");
    }
}

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

/// A gateway whose calls had to wait, were repeated, refused and left out of every cache.
async fn troubled() -> (Gateway, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let began = folder.path().join("began");
    let once = Script {
        each: STARTS_WHEN_TOLD,
        call: ENDS_ONCE,
        argument: began.to_str().unwrap(),
        ..Script::of_one("get_current_time")
    };
    let config = format!(
        "{}instances = \"shared\"\n[servers.narrow]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\nmax_concurrent = 1\n\
         calls_per_minute = 60000\n\
         [servers.narrow.tools.add_note]\nrateLimitHint = 1\n",
        once.server("once")
    );
    let gateway = Gateway::fixed(&config).await;
    // the call waits for the server that it was lost with
    let answer = gateway.mcp("once__get_current_time", json!({}));
    let again = async {
        until("a server that is down", || async {
            let up = Scrape::of(&gateway).await.value(metric::SERVER_UP);
            (up < 2.0).then_some(())
        })
        .await;
        std::fs::write(folder.path().join("began.again"), "").unwrap();
    };
    let (answer, ()) = tokio::join!(answer, again);
    assert!(answer["result"].is_object(), "{answer}");
    // what a tool calls an error is not kept
    let missing = json!({"order_id": 999_999});
    gateway.mcp("narrow__get_order", missing).await;
    for _ in 0..2 {
        let note = json!({"order_id": 1, "text": "x"});
        gateway.mcp("narrow__add_note", note).await;
    }
    // two that run at the same time have one place
    let report = |delay: u32| {
        let arguments = json!({"region": "north", "delay_ms": delay});
        gateway.mcp("narrow__sales_report", arguments)
    };
    let (mut delay, of, report) = (20, &gateway, &report);
    until("a call that waits", || {
        delay += 2;
        let (one, other) = (report(delay), report(delay + 1));
        async move {
            tokio::join!(one, other);
            let scrape = Scrape::of(of).await;
            scrape.has(metric::LIMIT_WAIT_DURATION).then_some(())
        }
    })
    .await;
    (gateway, folder)
}

#[tokio::test]
async fn labels_are_those_of_the_list_and_each_of_the_list_is_used() {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (busy, _log) = busy().await;
    let (troubled, _began) = troubled().await;
    let scrape = Scrape::of(&troubled).await;
    for metric in [
        metric::LIMIT_WAIT_DURATION,
        metric::RETRY_BACKOFF_DURATION,
        metric::CLIENT_SESSION_DURATION,
    ] {
        let of = |end: &str| {
            let name = family(metric) + end;
            let values = scrape.samples.iter().filter(|(one, ..)| *one == name);
            values.map(|(.., value)| value).sum::<f64>()
        };
        assert!(of("_count") >= 1.0 && of("_sum") > 0.0, "{metric:?}");
    }
    assert!(scrape.value(metric::RETRY_REPEATS) >= 1.0);
    for gateway in [&busy, &troubled] {
        let scrape = Scrape::of(gateway).await;
        for (name, labels, _) in &scrape.samples {
            let (family, _) = scrape.family(name).unwrap();
            let labels = labels.iter().map(|(label, _)| label.clone());
            seen.entry(family.to_owned()).or_default().extend(labels);
        }
    }
    let as_prometheus = |label: &str| label.replace('.', "_");
    // the range of a histogram is Prometheus' own, and any series may stand for what is beyond a
    // limit
    let mut unseen = Vec::new();
    let of_all = ["le".to_owned(), as_prometheus(metric::label::OVERFLOW)];
    for metric in metric::ALL {
        let Some(seen) = seen.get(&family(*metric)) else {
            assert_eq!(*metric, metric::EXECUTE_TOOL_DURATION);
            continue;
        };
        let listed: BTreeSet<_> = metric
            .labels
            .iter()
            .map(|label| as_prometheus(label))
            .collect();
        for label in seen {
            assert!(
                listed.contains(label) || of_all.contains(label),
                "{metric:?}: {label}"
            );
        }
        for label in metric.labels {
            if !seen.contains(&as_prometheus(label)) {
                unseen.push((metric.name, *label));
            }
        }
    }
    assert_eq!(unseen, [], "on no series");
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

/// Metrics that are on no panel, and why.
const NOT_SHOWN: &[(Metric, &str)] = &[(
    metric::EXECUTE_TOOL_DURATION,
    "a gateway has none; an embedding shows it as it shows its own calls",
)];

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

#[tokio::test]
async fn the_dashboard_shows_what_there_is_and_all_of_it() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/grafana/callward.json"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    let shown: BTreeSet<_> = all.iter().flat_map(|one| named(one)).collect();
    assert!(shown.len() > 40, "{shown:?}");

    let (gateway, _folder) = busy().await;
    let scrape = Scrape::of(&gateway).await;
    let late: Vec<_> = NEVER.iter().map(|(metric, _)| family(*metric)).collect();
    for name in &shown {
        let is_late = late.iter().any(|family| name.starts_with(family.as_str()));
        assert!(
            is_late || scrape.family(name).is_some(),
            "{name} is nowhere"
        );
    }
    for metric in metric::ALL {
        let family = family(*metric);
        let is_shown = match metric.kind {
            Kind::Histogram => shown.iter().any(|name| name.starts_with(&family)),
            _ => shown.contains(family.as_str()),
        };
        let not = NOT_SHOWN.iter().any(|(one, _)| one == metric);
        assert_eq!(is_shown, !not, "{family}");
    }
}
