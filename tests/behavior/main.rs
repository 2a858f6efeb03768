//! Compares the tables of `docs/behavior.md` and `docs/errors.md` with the code, row by row, both
//! ways. `CALLWARD_WRITE_PAGES=1 cargo test --test behavior` writes them.
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
            match of_unsent && of(kind).contains(&Delivery::NotSent) {
                true => "safe, cursors",
                false if safe.contains(&true) => "safe",
                false => "no",
            }
            .to_owned(),
        ]
    });
    table(&["kind", "means", "delivery", "retried"], rows)
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
    ];
    holds(&root().join("docs/behavior.md"), "code: ", &made);
    let errors = [("code: errors", errors())];
    holds(&root().join("docs/errors.md"), "code: ", &errors);
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

/// The text of a section of the page of errors.
fn of_errors(title: &str) -> String {
    let page = source("docs/errors.md");
    let (_, section) = page.split_once(&format!("## {title}\n")).unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

/// What is in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The numbers that rows of a section, or items of its list, begin with.
fn numbers(section: &str) -> BTreeSet<i64> {
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix(['|', '-'])?.strip_prefix(' '));
    rows.filter_map(|row| row.split([' ', ':']).next()?.parse().ok())
        .collect()
}

#[test]
fn each_code_is_on_the_page_and_ours_is_in_no_reserved_range() {
    let text = source("crates/mcp/src/wire/error.rs");
    let constants = text.lines().filter_map(|line| {
        let (_, value) = line.split_once(": i64 = ")?;
        value.trim_end_matches(';').parse().ok()
    });
    let mut used: BTreeSet<i64> = constants.collect();
    // no code of that crate makes the last one: it is passed on from a server
    used.extend([ToolError::RUNTIME_CODE, -32603]);
    assert_eq!(numbers(&of_errors("Codes")), used);
    assert!(!(-32768..=-32000).contains(&ToolError::RUNTIME_CODE));
}

#[test]
fn each_kind_has_advice_and_each_member_of_data_is_described() {
    let kinds = of_errors("Kinds");
    let (_, advice) = kinds.split_once("What to do:").unwrap();
    let heads = advice
        .split("\n- ")
        .filter_map(|item| item.split(": ").next());
    let mut advised: Vec<_> = heads.flat_map(quoted).collect();
    let mut known: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    advised.sort_unstable();
    known.sort_unstable();
    assert_eq!(advised, known);
    let (before, _) = kinds.split_once(" count against").unwrap();
    let of_blamed = before.rsplit(". ").next().unwrap();
    let blamed = ErrorKind::ALL.iter().filter(|kind| kind.blames_server());
    let blamed: Vec<_> = blamed.map(|kind| kind.as_str()).collect();
    assert_eq!(quoted(of_blamed).collect::<Vec<_>>(), blamed);
    let (data, text) = (of_errors("Data"), source("crates/mcp/src/server/error.rs"));
    let (_, ours) = text.split_once("const OURS: &str =").unwrap();
    let ours = ours.split('"').nth(1).unwrap().replace('\\', "");
    for member in ours.split_whitespace() {
        assert!(data.contains(&code(member)), "{member}");
    }
}

#[test]
fn each_http_status_is_on_the_page_and_no_other() {
    let constant = |status| {
        let status = u16::try_from(status).unwrap();
        let reason = StatusCode::from_u16(status).unwrap().canonical_reason();
        let name = reason.unwrap().replace([' ', '-'], "_").to_uppercase();
        format!("StatusCode::{name}")
    };
    let said: BTreeSet<_> = numbers(&of_errors("HTTP"))
        .into_iter()
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
