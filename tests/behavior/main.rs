//! Compares the tables of `docs/behavior.md` with the code, row by row, in both directions.
//! `CALLWARD_WRITE_PAGES=1 cargo test --test behavior` writes them.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod deliveries;
#[path = "../workspace/sources.rs"]
mod sources;

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::StatusCode;
use callward::ToolError;
use callward::core::{Delivery, ErrorKind, RetryRule};
use callward::retry::{RetryDecision, classify};
use callward::telemetry::names;
use callward::telemetry::names::metric::{self, label};
use callward_testkit::page::{holds, table};

use crate::sources::{root, sources};

fn source(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

fn codes<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| code(word.as_ref())).collect();
    words.join(", ")
}

fn spans() -> String {
    let rows = names::SPANS
        .iter()
        .map(|span| [code(span.name), codes(span.kinds), span.meaning.to_owned()]);
    table(&["span", "kind", "when"], rows)
}

fn attributes() -> String {
    let rows = names::ALL.iter().map(|field| {
        let spans = match field.spans.len() == names::SPANS.len() {
            true => "all".to_owned(),
            false => codes(field.spans),
        };
        [code(field.name), spans, field.meaning.to_owned()]
    });
    table(&["attribute", "spans", "meaning"], rows)
}

fn metrics(kind: metric::Kind) -> String {
    let metrics = metric::ALL.iter().filter(|metric| metric.kind == kind);
    let rows = metrics.map(|metric| {
        let unit = match metric.unit {
            "s" => ", in seconds",
            "By" => ", in bytes",
            _ => "",
        };
        let says = format!("{}{unit}", metric.description);
        [code(metric.name), codes(metric.labels), says]
    });
    table(&["metric", "labels", "description"], rows)
}

fn labels() -> String {
    let row = |(name, says): &(&str, &str)| [code(name), (*says).to_owned()];
    table(&["label", "meaning"], label::ALL.iter().map(row))
}

fn buckets() -> String {
    let row = |whose: &str, bounds: &[f64]| {
        let bounds: Vec<_> = bounds.iter().map(ToString::to_string).collect();
        [whose.to_owned(), bounds.join(", ")]
    };
    let rows = [
        row("operations and sessions", &metric::OPERATION_BUCKETS),
        row(
            "what the runtime adds, waits and pauses",
            &metric::OWN_BUCKETS,
        ),
    ];
    table(&["histograms of", "upper bounds, in seconds"], rows)
}

const DELIVERIES: [Delivery; 3] = [Delivery::NotSent, Delivery::Answered, Delivery::Unknown];

fn errors() -> String {
    let made = deliveries::made();
    let of = |kind: ErrorKind| {
        let far = DELIVERIES.into_iter();
        far.filter(|far| made.contains(&(kind, *far)))
            .collect::<Vec<_>>()
    };
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let retried = |rule, kind, delivery| {
        let error = ToolError::new(kind, delivery, "x").with_retry_after(Duration::ZERO);
        classify(rule, &error) != RetryDecision::Fail
    };
    let rows = ErrorKind::ALL.iter().map(|&kind| {
        let safe = DELIVERIES.map(|far| retried(RetryRule::Safe, kind, far));
        let of_unsent = retried(RetryRule::OnlyUnsent, kind, Delivery::NotSent);
        [
            code(kind.as_str()),
            kind.meaning().to_owned(),
            codes(of(kind).iter().map(|far| far.as_str())),
            yes(safe.contains(&true)),
            match of_unsent && of(kind).contains(&Delivery::NotSent) {
                true => "if `not_sent`".to_owned(),
                false => "no".to_owned(),
            },
            yes(kind.blames_server()),
        ]
    });
    let columns = [
        "kind",
        "means",
        "delivery",
        "safe tools retried",
        "cursors retried",
        "counts against the server",
    ];
    table(&columns, rows)
}

/// The lines of documentation before each line of a file that `name` makes something of.
fn documented(text: &str, name: impl Fn(&str) -> Option<String>) -> Vec<[String; 2]> {
    let (mut found, mut said) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(more) = line.strip_prefix("/// ") {
            said.push(more);
        } else if let Some(name) = name(line) {
            found.push([name, said.join(" ")]);
            said.clear();
        } else if !line.starts_with("#[") {
            said.clear();
        }
    }
    found
}

fn rpc_codes() -> String {
    let mut rows = documented(&source("crates/mcp/src/wire/error.rs"), |line| {
        let (_, value) = line
            .strip_prefix("pub(crate) const ")?
            .split_once(": i64 = ")?;
        Some(value.trim_end_matches(';').to_owned())
    });
    let ours = "Any other failure: see `data.kind`.".to_owned();
    rows.push([ToolError::RUNTIME_CODE.to_string(), ours]);
    // No code of this crate makes this one: it is passed on from a server.
    rows.push(["-32603".to_owned(), "A fault of the server.".to_owned()]);
    rows.sort_by_key(|[code, _]| code.parse::<i64>().unwrap());
    table(&["code", "means"], rows)
}

#[test]
fn the_page_says_what_the_code_does() {
    let made = [
        ("code: spans", spans()),
        ("code: attributes", attributes()),
        ("code: counters", metrics(metric::Kind::Counter)),
        ("code: gauges", metrics(metric::Kind::Gauge)),
        ("code: histograms", metrics(metric::Kind::Histogram)),
        ("code: labels", labels()),
        ("code: buckets", buckets()),
        ("code: errors", errors()),
        ("code: JSON-RPC", rpc_codes()),
    ];
    holds(&root().join("docs/behavior.md"), "code: ", &made);
}

#[test]
fn each_metric_has_labels_that_are_known() {
    let fields = names::ALL.iter().map(|field| field.name);
    let own = label::ALL.iter().map(|(name, _)| *name);
    let known: BTreeSet<_> = fields.chain(own).collect();
    for metric in metric::ALL {
        let labels: BTreeSet<_> = metric.labels.iter().copied().collect();
        assert!(labels.is_subset(&known), "{metric:?}");
        assert_eq!(labels.len(), metric.labels.len(), "{metric:?}");
    }
}

/// Returns every word of the text that begins so.
fn words<'a>(text: &'a str, begins: &'a str) -> impl Iterator<Item = String> + 'a {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "./_".contains(c);
    text.match_indices(begins).map(move |(at, _)| {
        let word = &text[at..];
        let (_, rest) = word.split_at(begins.len());
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        format!("{begins}{}", &rest[..end])
    })
}

/// The words that begin so, in the lines with all these parts of the code below some folders.
fn used(folders: &[&str], begins: &str, parts: &[&str]) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (_, text) in folders
        .iter()
        .flat_map(|folder| sources(&root().join(folder), "rs").unwrap())
    {
        let code = text.split("#[cfg(test)]").next().unwrap().lines();
        let lines = code.filter(|line| parts.iter().all(|part| line.contains(part)));
        used.extend(lines.flat_map(|line| words(line, begins)));
    }
    used
}

#[test]
fn each_key_of_meta_is_on_the_page_and_no_other() {
    let folders = [
        "src",
        "crates/core/src",
        "crates/mcp/src",
        "crates/gateway/src",
    ];
    let used = used(&folders, "io.callward/", &["const ", "&str"]);
    let page = source("docs/behavior.md");
    let said: BTreeSet<_> = words(&page, "io.callward/").collect();
    assert_eq!(said, used);
}

#[test]
fn each_http_status_is_on_the_page_and_no_other() {
    let page = source("docs/behavior.md");
    let (_, section) = page.split_once("### HTTP\n").unwrap();
    let section = section.split("\n##").next().unwrap();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let constant = |status| {
        let reason = StatusCode::from_u16(status).unwrap().canonical_reason();
        let name = reason.unwrap().replace([' ', '-'], "_").to_uppercase();
        format!("StatusCode::{name}")
    };
    let said: BTreeSet<_> = rows
        .filter_map(|row| row.parse().ok())
        .map(constant)
        .collect();
    let mut used = used(
        &["crates/mcp/src/server", "crates/gateway/src"],
        "StatusCode::",
        &[],
    );
    // constants, and no functions
    used.retain(|name| !name["StatusCode::".len()..].contains(char::is_lowercase));
    assert_eq!(said, used);
}
