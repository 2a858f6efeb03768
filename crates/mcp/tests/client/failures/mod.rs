//! The table in the module's documentation, row by row: each failure is brought about.

mod answered;
mod lost;
mod unsent;

use callward_core::{Delivery, ErrorKind, ToolError, ToolServer};
use callward_mcp::client::{EraChoice, HttpSpec, Target, Upstream, UpstreamBuilder};

use crate::script::{call, id};

/// A row of the documentation.
#[derive(Debug)]
struct Row {
    failure: String,
    kind: String,
    delivery: String,
}

fn rows() -> Vec<Row> {
    let docs = include_str!("../../../src/client/details.md");
    docs.lines()
        .filter_map(|line| line.strip_prefix("| "))
        .skip(2) // the head of the table, and the line under it
        .map(|line| {
            let cells: Vec<_> = line.trim_end_matches(" |").split(" | ").collect();
            let [failure, kind, delivery] = cells[..] else {
                panic!("three cells: {line}");
            };
            Row {
                failure: failure.to_owned(),
                kind: kind.trim_matches('`').to_owned(),
                delivery: delivery.trim_matches('`').to_owned(),
            }
        })
        .collect()
}

/// Holds what came of a failure to what the documentation says of it. The failure is named by the
/// beginning of its row.
fn assert_documented(failure: &str, error: &ToolError) {
    let rows = rows();
    let mut found = rows.iter().filter(|row| row.failure.starts_with(failure));
    let (Some(row), None) = (found.next(), found.next()) else {
        panic!("not one row for {failure:?} in {rows:?}");
    };
    let seen = [
        format!("{:?}", error.kind()),
        format!("{:?}", error.delivery()),
    ];
    let documented = [row.kind.clone(), row.delivery.clone()];
    assert_eq!(seen, documented, "{}: {error}", row.failure);
    assert_eq!(error.server(), Some(&id()), "{error}");
}

#[test]
fn every_row_is_brought_about_by_a_test() {
    let tests = [
        include_str!("answered.rs"),
        include_str!("lost.rs"),
        include_str!("unsent.rs"),
    ]
    .concat();
    let rows = rows();
    assert!(rows.len() > 20, "{rows:?}");
    for row in rows {
        // a test names the failure it brings about by the beginning of its row
        let is_named = tests
            .split('"')
            .any(|text| text.len() >= 8 && row.failure.starts_with(text));
        assert!(is_named, "{row:?}");
    }
}

/// Fails a call on an upstream that has not been greeted yet.
async fn first_call(upstream: &Upstream) -> ToolError {
    upstream.call(call("x", "{}")).await.unwrap_err()
}

fn at(url: &str) -> UpstreamBuilder {
    let spec = HttpSpec::new(url).unwrap();
    Upstream::builder(id(), Target::Http(spec)).era(EraChoice::Legacy)
}

#[test]
fn the_words_of_the_documentation_are_those_of_the_types() {
    for row in rows() {
        let kind = format!("\"{}\"", snake(&row.kind));
        assert!(serde_json::from_str::<ErrorKind>(&kind).is_ok(), "{row:?}");
        let delivery = format!("\"{}\"", snake(&row.delivery));
        assert!(
            serde_json::from_str::<Delivery>(&delivery).is_ok(),
            "{row:?}"
        );
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
