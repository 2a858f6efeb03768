//! `/metrics`: text that Prometheus reads, with nothing in it that a caller made up, and the dashboard
//! over it.

use std::collections::{BTreeMap, BTreeSet};

use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate::telemetry::names::metric::{self, Kind, Metric};

use crate::support::{Gateway, call, within};

/// Names and values.
type Labels = Vec<(String, String)>;

/// What a scrape says, read as strictly as Prometheus does.
#[derive(Debug, Default)]
struct Scrape {
    kinds: BTreeMap<String, String>,
    /// Name, labels, value.
    samples: Vec<(String, Labels, f64)>,
}

impl Scrape {
    async fn of(gateway: &Gateway) -> Self {
        let answer = crate::support::http().get(gateway.at("/metrics")).send();
        let answer = within("the scrape", answer).await.unwrap();
        assert_eq!(
            answer.headers()["content-type"],
            "text/plain; version=0.0.4"
        );
        let text = within("the text", answer.text()).await.unwrap();
        Self::read(&text)
    }

    fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        let (mut helped, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert!(helped.contains(name), "no help: {line}");
                let before = scrape.kinds.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{line}");
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(seen.insert(series.to_owned()), "twice: {line}");
                let (name, labels) = match series.split_once('{') {
                    Some((name, labels)) => (name, read_labels(labels)),
                    None => (series, Vec::new()),
                };
                assert!(scrape.family(name).is_some(), "no type: {line}");
                let value = value.parse().unwrap();
                scrape.samples.push((name.to_owned(), labels, value));
            }
        }
        scrape
    }

    /// Returns the family of a sample, and its kind.
    fn family<'a>(&'a self, sample: &'a str) -> Option<(&'a str, &'a str)> {
        let suffixes = ["", "_bucket", "_sum", "_count"];
        let names = suffixes.iter().filter_map(|end| sample.strip_suffix(end));
        let mut known = names.filter_map(|name| Some((name, self.kinds.get(name)?.as_str())));
        known.next()
    }

    fn has(&self, metric: Metric) -> bool {
        let kind = self.kinds.get(&family(metric));
        if let Some(kind) = kind {
            assert_eq!(kind, metric.kind.as_str(), "{metric:?}");
        }
        kind.is_some()
    }
}

fn read_labels(labels: &str) -> Vec<(String, String)> {
    let mut rest = labels.strip_suffix('}').unwrap();
    let mut read = Vec::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").unwrap();
        let (value, after) = value.split_once('"').unwrap();
        read.push((name.to_owned(), value.to_owned()));
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    read
}

/// Returns the name under which Prometheus knows a metric.
fn family(metric: Metric) -> String {
    let unit = match metric.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let total = match metric.kind {
        Kind::Counter => "_total",
        _ => "",
    };
    format!("{}{unit}{total}", metric.name.replace('.', "_"))
}

/// What is in no scrape of this test, and why.
const NEVER: &[(Metric, &str)] = &[
    (
        metric::EXECUTE_TOOL_DURATION,
        "calls of a gateway come over MCP",
    ),
    (metric::LIMIT_WAIT_DURATION, "no call had to wait"),
    (metric::RETRY_BACKOFF_DURATION, "no call was repeated"),
    (
        metric::CLIENT_SESSION_DURATION,
        "the sample's servers are modern",
    ),
];

/// A gateway with all there is to tell of: an audit log, and a collector that nobody runs.
async fn sample() -> (Gateway, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let config = format!(
        "[audit]\npath = {log:?}\n[telemetry]\notlp_endpoint = \"http://127.0.0.1:9\"\n\
         [servers.orders]\ncommand = \"TOLLGATE\"\nargs = [\"sample\"]\n"
    );
    (Gateway::configured(&config).await, folder)
}

async fn busy() -> (Gateway, TempDir) {
    let (gateway, folder) = sample().await;
    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    for _ in 0..2 {
        call(&legacy, "orders__get_order", json!({"order_id": 1})).await;
    }
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
async fn prometheus_can_read_what_it_scrapes() {
    let (gateway, _folder) = busy().await;
    let scrape = Scrape::of(&gateway).await;
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

#[tokio::test]
async fn all_metrics_are_of_the_list_and_all_of_the_list_are_there() {
    let (gateway, _folder) = busy().await;
    let scrape = Scrape::of(&gateway).await;
    let listed: BTreeSet<_> = metric::ALL.iter().map(|metric| family(*metric)).collect();
    for name in scrape.kinds.keys() {
        assert!(listed.contains(name), "{name} is in no list");
    }
    for metric in metric::ALL {
        let never = NEVER.iter().any(|(one, _)| one == metric);
        assert_eq!(scrape.has(*metric), !never, "{metric:?}");
    }
}

#[tokio::test]
async fn names_that_callers_make_up_are_in_no_label() {
    let (gateway, _folder) = busy().await;
    let before = Scrape::of(&gateway).await.samples.len();
    for n in 0..500 {
        let answer = gateway.mcp(&format!("made_up_{n}"), json!({})).await;
        assert!(answer["error"].is_object(), "{answer}");
    }
    let scrape = Scrape::of(&gateway).await;
    let labels = || scrape.samples.iter().flat_map(|(_, labels, _)| labels);
    assert!(labels().all(|(_, value)| !value.contains("made_up")));
    let refused = scrape.samples.iter().find(|(name, labels, _)| {
        name == "mcp_server_operation_duration_seconds_count"
            && labels.iter().any(|(_, value)| value == "unknown_tool")
    });
    assert_eq!(refused.unwrap().2, 500.0);
    // one series more of a histogram: its buckets, its sum and its count
    assert!(scrape.samples.len() <= before + 20, "{before}");
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

/// Returns the names of metrics in a PromQL expression: words before `{` or `[`, or that begin as all
/// of ours do.
fn named(expression: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut named = BTreeSet::new();
    let mut in_labels = 0_i32;
    let mut by = false;
    for piece in expression.split_inclusive(|c: char| !is_word(c)) {
        let word = piece.trim_end_matches(|c: char| !is_word(c));
        let is_ours = ["tollgate_", "mcp_", "gen_ai_"]
            .iter()
            .any(|start| word.starts_with(start));
        if is_ours && in_labels == 0 && !by {
            named.insert(word);
        }
        match piece.chars().last() {
            Some('{') => in_labels += 1,
            Some('}') => in_labels -= 1,
            Some(')') => by = false,
            _ => {}
        }
        by = by || word == "by";
    }
    named
}

#[tokio::test]
async fn the_dashboard_shows_what_there_is_and_all_of_it() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/grafana/tollgate.json"
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
