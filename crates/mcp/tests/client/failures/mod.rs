//! The table in the module's documentation, row by row: each failure is brought about.

mod answered;
mod unsent;

use callward_core::{ToolError, ToolServer};
use callward_mcp::client::Upstream;

use crate::script::{call, id};

/// The rows of the documentation: failure, kind, delivery.
fn rows() -> Vec<[&'static str; 3]> {
    let docs = include_str!("../../../src/client/details.md");
    let lines = docs.lines().filter_map(|line| line.strip_prefix("| "));
    // after the head of the table, and the line under it
    let rows = lines.skip(2).map(|line| {
        let cells: Vec<_> = line.trim_end_matches(" |").split(" | ").collect();
        let [failure, kind, delivery] = cells[..] else {
            panic!("three cells: {line}");
        };
        [failure, kind.trim_matches('`'), delivery.trim_matches('`')]
    });
    rows.collect()
}

/// Holds what came of a failure to what the documentation says of it. The failure is named by the
/// beginning of its row.
pub(crate) fn assert_documented(failure: &str, error: &ToolError) {
    let rows = rows();
    let mut found = rows.iter().filter(|[row, ..]| row.starts_with(failure));
    let (Some([row, kind, delivery]), None) = (found.next(), found.next()) else {
        panic!("not one row for {failure:?} in {rows:?}");
    };
    let seen = [format!("{:?}", error.kind), format!("{:?}", error.delivery)];
    assert_eq!(seen, [*kind, *delivery], "{row}: {error}");
    assert_eq!(error.server.as_ref(), Some(&id()), "{error}");
}

#[test]
fn every_row_is_brought_about_by_a_test() {
    let tests = [
        include_str!("answered.rs"),
        include_str!("unsent.rs"),
        include_str!("../boundary/http_requests.rs"),
        include_str!("../http.rs"),
        include_str!("../pipe.rs"),
        include_str!("../pipe_faults.rs"),
    ]
    .concat();
    let rows = rows();
    assert!(rows.len() > 20, "{rows:?}");
    for [row, ..] in rows {
        // a test names the failure it brings about by the beginning of its row
        let is_named = tests
            .split('"')
            .any(|text| text.len() >= 8 && row.starts_with(text));
        assert!(is_named, "{row}");
    }
}

/// Fails a call on an upstream that has not been greeted yet.
async fn first_call(upstream: &Upstream) -> ToolError {
    upstream.call(call("x", "{}")).await.unwrap_err()
}
