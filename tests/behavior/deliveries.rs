//! How far calls get that fail so, read off the places where failures are made.

use std::collections::BTreeSet;

use callward::core::{Delivery, ErrorKind};

use crate::sources::{root, sources};
use crate::{DELIVERIES, words};

/// What makes failures of calls on their way through the runtime, besides the facade.
const CRATES: &str = "audit auth breaker cache core gateway limit loopguard mcp registry retry \
    router telemetry";

/// Files there that are left out: servers to try the runtime on, and a client without it.
const OUTSIDE: &[&str] = &[
    "crates/gateway/src/sample",
    "crates/gateway/src/commands/demo",
    "crates/retry/src/backoff.rs",
];

/// The one place where a failure turns into another kind. Its delivery is `unknown` there:
/// `retry::failure` asks before it does so.
const TURNED: (&str, ErrorKind, Delivery) = (
    "crates/core/src/error.rs",
    ErrorKind::OutcomeUnknown,
    Delivery::Unknown,
);

/// Where a failure is given the delivery of the whole call, once it was attempted more than once.
const OF_ALL_ATTEMPTS: &str = "crates/retry/src/attempts.rs";

/// Every failure that any place makes.
pub(crate) fn made() -> Vec<(ErrorKind, Delivery)> {
    let mut made = vec![(TURNED.1, TURNED.2)];
    let (mut turned, mut moved) = (BTreeSet::new(), BTreeSet::new());
    for (path, text) in code() {
        for place in text.match_indices("ToolError::new(").map(|(at, _)| at) {
            made.extend(made_at(&path, &text, place));
        }
        if text.contains(".into_kind(ErrorKind::") {
            turned.insert(path.clone());
        }
        if text.contains("error.delivery = ") {
            moved.insert(path);
        }
    }
    assert_eq!(turned, BTreeSet::from([TURNED.0.to_owned()]));
    assert_eq!(moved, BTreeSet::from([OF_ALL_ATTEMPTS.to_owned()]));
    made
}

/// The code of each file as it runs: without comments, and without tests.
fn code() -> Vec<(String, String)> {
    let folders = CRATES.split(' ').map(|of| format!("crates/{of}/src"));
    let folders = folders.chain(["src".to_owned()]);
    let all = folders.flat_map(|folder| sources(&root().join(folder), "rs").unwrap());
    let mut found = Vec::new();
    for (file, text) in all {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap();
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        if is_test || OUTSIDE.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        // tests are the last of a file
        let code = text.split("mod tests {").next().unwrap();
        let lines = code.lines().filter(|line| !line.trim().starts_with("//"));
        found.push((path.to_owned(), lines.collect::<Vec<_>>().join("\n")));
    }
    found
}

/// What is made at one place: where a name stands for the kind, all kinds that its function names.
fn made_at(path: &str, text: &str, place: usize) -> Vec<(ErrorKind, Delivery)> {
    let (before, call) = text.split_at(place);
    let (_, arguments) = call.split_once('(').unwrap();
    let mut arguments = arguments.split(',').map(str::trim);
    let (kind, delivery) = (arguments.next().unwrap(), arguments.next().unwrap());
    let delivery = DELIVERIES
        .iter()
        .find(|known| delivery == format!("Delivery::{known:?}"));
    let delivery = *delivery.unwrap_or_else(|| panic!("{path}: what is the delivery of {kind}?"));
    let start = before.rfind("fn ").unwrap_or_default();
    let end = call.find("fn ").map_or(text.len(), |at| place + at);
    let function = &text[start..end];
    let named = match kind {
        "kind" => function,
        literal => literal,
    };
    let named: BTreeSet<_> = words(named, "ErrorKind::").collect();
    let kinds = ErrorKind::ALL
        .iter()
        .filter(|known| named.contains(&format!("ErrorKind::{known:?}")));
    let made: Vec<_> = kinds.map(|kind| (*kind, delivery)).collect();
    assert!(!made.is_empty(), "{path}: what kind is `{kind}`?");
    made
}
