//! Replies lost after the tool has run: how often does one intended call run?

use peers_upstream::{Counts, Fault};
use serde_json::json;

use crate::Outcome;
use crate::figures::Lost;
use crate::scenario::{Subject, all, failed, slowest};

/// The ways in which a reply is lost, and what they are called.
pub(crate) const WAYS: &[(Fault, &str)] = &[
    (Fault::Drop, "connection dropped"),
    (Fault::Unavailable, "HTTP 503"),
    (Fault::Rpc, "JSON-RPC -32603"),
];

/// The tools, and whether they write.
const TOOLS: &[(&str, bool)] = &[
    ("flaky_get", false),
    ("flaky_append", true),
    ("flaky_set", true),
    ("flaky_delete", true),
];

const SHARE: f64 = 0.3;
const CALLERS: usize = 8;

/// This many intended calls of each tool, all with keys of their own.
pub(crate) async fn run(
    subject: &dyn Subject,
    (fault, way): (Fault, &str),
    intended: usize,
) -> Outcome<Vec<Lost>> {
    let mut found = Vec::new();
    let names: Vec<_> = TOOLS.iter().map(|(tool, _)| *tool).collect();
    subject.reset().await?;
    subject.lose(&names, fault, SHARE).await?;
    for (tool, writes) in TOOLS {
        let keys: Vec<_> = (0..intended)
            .map(|key| format!("{way}-{tool}-{key}"))
            .collect();
        let calls = keys
            .iter()
            .map(|key| match *tool {
                "flaky_append" | "flaky_set" => (*tool, json!({ "key": key, "value": "v" })),
                _ => (*tool, json!({ "key": key })),
            })
            .collect();
        let answers = all(subject, CALLERS, calls).await?;
        let counts = subject.counts().await?;
        found.push(Lost {
            errors: failed(&answers),
            slowest_seconds: slowest(&answers),
            ..score(tool, *writes, way, &keys, &counts)
        });
    }
    Ok(found)
}

fn score(tool: &str, writes: bool, way: &str, keys: &[String], counts: &Counts) -> Lost {
    let mut lost = Lost {
        way: way.to_owned(),
        tool: tool.to_owned(),
        writes,
        intended: keys.len() as u64,
        ..Lost::default()
    };
    for key in keys {
        let runs = counts.of(tool, key);
        lost.executed += runs;
        lost.extra += runs.saturating_sub(1);
        lost.never += u64::from(runs == 0);
    }
    lost
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_second_run_of_one_call_does_not_make_up_for_none_of_another() {
        let runs = BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 1)]);
        let counts = Counts {
            by_key: BTreeMap::from([("t".to_owned(), runs)]),
            ..Counts::default()
        };
        let keys = ["a", "b", "c"].map(str::to_owned);
        let lost = score("t", true, "w", &keys, &counts);
        assert_eq!((lost.intended, lost.executed), (3, 4));
        assert_eq!((lost.extra, lost.never), (2, 1));
    }
}
