//! What a tool reads and writes, as an operator writes it beside the tool's hints.

use std::collections::{BTreeMap, BTreeSet};

use callward::ReplicaSetId;
use callward::cache::{ScopeTemplate, ToolScopes};

use super::ServerConfig;

/// The keys that are taken here.
pub(super) const KEYS: [&str; 2] = ["reads", "writes"];

/// Takes `reads` and `writes` out of a tool's table, and tells `fault` of each key that cannot be
/// used, by its path. Elements of a list are counted from 1.
pub(super) fn take(
    written: &mut BTreeMap<String, toml::Value>,
    mut fault: impl FnMut(&[&str], String),
) -> ToolScopes {
    let mut scopes = ToolScopes::default();
    for (key, place) in KEYS
        .into_iter()
        .zip([&mut scopes.reads, &mut scopes.writes])
    {
        let Some(list) = written.remove(key) else {
            continue;
        };
        *place = Some(read(&list, |path, message| {
            fault(&[&[key], path].concat(), message);
        }));
    }
    scopes
}

fn read(written: &toml::Value, mut fault: impl FnMut(&[&str], String)) -> Vec<ScopeTemplate> {
    const EXPECTED: &str = "expected a list of scopes, such as [\"order:{id}\", \"@billing\"]";
    let Some(list) = written.as_array() else {
        fault(&[], EXPECTED.into());
        return Vec::new();
    };
    let mut scopes = Vec::new();
    for (number, written) in (1_usize..).zip(list) {
        let parsed = match written.as_str() {
            Some(text) => text.parse().map_err(|error| format!("{error}")),
            None => Err("expected a scope as a string, such as \"order:{id}\"".to_owned()),
        };
        match parsed {
            Ok(scope) => scopes.push(scope),
            Err::<_, String>(message) => fault(&[&number.to_string()], message),
        }
    }
    scopes
}

/// Tells `fault` of each scope of a replica set that no server is in, by the keys on the way to it.
pub(super) fn check_sets(servers: &[ServerConfig], mut fault: impl FnMut(&[&str], String)) {
    let sets: BTreeSet<&ReplicaSetId> = servers.iter().map(|server| &server.set).collect();
    for server in servers {
        for (tool, said) in &server.tools {
            for (key, scopes) in KEYS
                .into_iter()
                .zip([&said.scopes.reads, &said.scopes.writes])
            {
                for (number, scope) in (1_usize..).zip(scopes.iter().flatten()) {
                    let Some(set) = scope.set().filter(|set| !sets.contains(set)) else {
                        continue;
                    };
                    let known = sets.iter().map(|set| set.as_str());
                    let hint = crate::similar::hint(set.as_str(), known, "sets");
                    let number = number.to_string();
                    let path = [
                        "servers",
                        server.id.as_str(),
                        "tools",
                        tool.as_str(),
                        key,
                        &number,
                    ];
                    fault(
                        &path,
                        format!("no server is in set {:?}: {hint}", set.as_str()),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(text: &str) -> (ToolScopes, Vec<(String, String)>) {
        let mut faults = Vec::new();
        let scopes = take(&mut toml::from_str(text).unwrap(), |path, message| {
            faults.push((path.join("."), message));
        });
        (scopes, faults)
    }

    #[test]
    fn what_is_said_is_read_and_what_is_not_is_everything() {
        let (scopes, faults) = take_all("reads = [\"order:{id}\", \"@billing\"]\nwrites = []");
        assert_eq!(faults, []);
        let expected = ToolScopes::reading(["order:{id}", "@billing"]).unwrap();
        assert_eq!(scopes.reads, expected.reads);
        assert_eq!(scopes.writes, Some(Vec::new()));
        assert_eq!(take_all("readOnlyHint = true").0, ToolScopes::default());
    }

    #[test]
    fn each_fault_names_its_key() {
        for (text, key, expected) in [
            ("reads = \"order\"", "reads", "a list"),
            ("writes = [\"a\", \"b{\"]", "writes.2", "not closed"),
            ("writes = [\"\"]", "writes.1", "is empty"),
            ("reads = [1]", "reads.1", "as a string"),
            ("reads = [\"@a b\"]", "reads.1", "is not a scope"),
        ] {
            let (_, faults) = take_all(text);
            let [(found, message)] = &faults[..] else {
                panic!("one fault expected in {text:?}: {faults:?}");
            };
            assert_eq!(found, key);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
