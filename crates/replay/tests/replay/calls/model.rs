//! A second opinion on a recording, written without the crate's own reading and replaying.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

/// What a cache would do that forgets everything of a session at each write to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flush {
    pub(crate) hits: u64,
    pub(crate) stale: u64,
    /// Of the hits, those with no failed write of the session before them.
    pub(crate) hits_without_failed_write: u64,
    /// Whether any result was recorded.
    pub(crate) has_results: bool,
}

/// Counts what flushing a session at each write gives. Nothing ends by time.
pub(crate) fn flush(lines: impl Iterator<Item = String>) -> Flush {
    let mut kept: HashMap<String, BTreeMap<String, Value>> = HashMap::new();
    let mut failed: HashSet<String> = HashSet::new();
    let mut found = Flush::default();
    for line in lines {
        let call: Value = serde_json::from_str(&line).unwrap();
        let name = format!("{} {}", call["trace"], call["session"]);
        let session = kept.entry(name.clone()).or_default();
        found.has_results |= call["result_sha1"].is_string();
        if call["write"] == true {
            session.clear();
            if call["error"] == true {
                failed.insert(name);
            }
            continue;
        }
        // the map of a parsed object is sorted: its text is canonical
        let key = format!("{} {}", call["tool"], call["args"]);
        match session.get(&key) {
            Some(result) => {
                found.hits += 1;
                found.hits_without_failed_write += u64::from(!failed.contains(&name));
                found.stale += u64::from(*result != call["result_sha1"]);
            }
            None if call["error"] == true => {}
            None => {
                session.insert(key, call["result_sha1"].clone());
            }
        }
    }
    found
}
