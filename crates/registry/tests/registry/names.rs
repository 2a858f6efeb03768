//! A name, once given to a tool, never leads to another one.

use std::collections::HashMap;

use callward_core::{ReplicaSetId, ServerId, ToolDefinition, ToolName};
use callward_registry::{Changes, KeptName, Registry, SetOptions};
use proptest::prelude::*;
use serde_json::json;

const SETS: [&str; 4] = ["a", "b", "c", "d"];
/// Some read as tools of other sets.
const TOOLS: [&str; 8] = [
    "get", "put", "a__get", "b.get", "c__get", "c__get", "d::put", "files",
];

fn set(number: usize) -> ReplicaSetId {
    ReplicaSetId::new(SETS[number]).unwrap()
}

fn register(registry: &Registry, number: usize, tools: &[&str]) -> Changes {
    let definitions = tools.iter().map(|tool| {
        let raw = json!({"name": tool, "inputSchema": {"type": "object"}}).to_string();
        ToolDefinition::from_json(raw).unwrap()
    });
    let server = ServerId::new(SETS[number]).unwrap();
    registry.register(&set(number), &server, definitions.collect())
}

/// Returns the set and the tool that a name leads to.
fn owner(registry: &Registry, name: &str) -> Option<(String, String)> {
    let catalogue = registry.catalogue();
    let tool = catalogue.find(name)?.tool();
    Some((tool.set().to_string(), tool.name().to_string()))
}

/// Returns which tool is behind each name that clients see.
fn owners(registry: &Registry) -> HashMap<String, (String, String)> {
    let catalogue = registry.catalogue();
    let names = catalogue.entries().iter().map(|entry| entry.client_name());
    let owned = |name: &str| (name.to_owned(), owner(registry, name).unwrap());
    names.map(owned).collect()
}

#[test]
fn a_server_cannot_take_the_name_of_another() {
    let registry = Registry::new();
    for number in 0..4 {
        registry.set_options(set(number), SetOptions::default());
    }
    registry.set_options(set(1), SetOptions::default().with_prefix("b"));
    register(&registry, 3, &["get"]);
    register(&registry, 1, &["put"]);
    // alphabetically before the first one, and with names that read as those of others
    register(&registry, 0, &["get", "b__put", "b.other", "d__get"]);
    let owners = owners(&registry);
    let owner = |name: &str| owners.get(name).map(|(set, tool)| (&set[..], &tool[..]));
    assert_eq!(owner("get"), Some(("d", "get")));
    assert_eq!(owner("b__put"), Some(("b", "put")));
    assert_eq!(owner("a__get"), Some(("a", "get")));
    assert_eq!(owner("a__b__put"), Some(("a", "b__put")));
    assert_eq!(owner("b.other"), None);
    assert_eq!(owner("d__get"), None);
    // also while its owner does not list it
    register(&registry, 3, &[]);
    register(&registry, 0, &[]);
    register(&registry, 0, &["get"]);
    assert!(registry.catalogue().find("get").is_none());
    register(&registry, 3, &["get"]);
    assert_eq!(
        registry.catalogue().find("get").unwrap().tool().set(),
        &set(3)
    );
    // names of a set that is gone are free
    registry.forget(&set(3));
    register(&registry, 2, &["get"]);
    assert_eq!(
        registry.catalogue().find("get").unwrap().tool().set(),
        &set(2)
    );
}

#[test]
fn a_name_stays_with_its_tool_across_runs() {
    let before = Registry::new();
    for number in 0..4 {
        before.set_options(set(number), SetOptions::default());
    }
    register(&before, 3, &["get"]);
    register(&before, 0, &["get"]);
    let after = Registry::new();
    after.keep_names(before.kept_names());
    for number in 0..4 {
        after.set_options(set(number), SetOptions::default());
    }
    register(&after, 0, &["get"]);
    assert!(after.catalogue().find("get").is_none());
    register(&after, 3, &["get"]);
    assert_eq!(owners(&after), owners(&before));
}

#[test]
fn the_first_mentioned_set_chooses_first() {
    let registry = Registry::new();
    registry.set_options(set(3), SetOptions::default());
    registry.set_options(set(0), SetOptions::default().with_prefix("x"));
    register(&registry, 0, &["get"]);
    register(&registry, 3, &["get"]);
    registry.change_options(&set(0), SetOptions::default());
    let catalogue = registry.catalogue();
    assert_eq!(catalogue.find("get").unwrap().tool().set(), &set(3));
    assert_eq!(catalogue.find("a__get").unwrap().tool().set(), &set(0));
}

#[test]
fn names_wait_for_servers_of_earlier_sets() {
    let expecting = || {
        let registry = Registry::new();
        for number in [3, 0, 1] {
            let options = SetOptions::default();
            let options = match number {
                1 => options.with_prefix("b"),
                _ => options,
            };
            registry.set_options(set(number), options);
            let server = ServerId::new(SETS[number]).unwrap();
            registry.expect(&set(number), &server);
        }
        registry
    };
    // in any order of listing
    let registry = expecting();
    register(&registry, 0, &["get", "put"]);
    register(&registry, 1, &["get"]);
    assert_eq!(registry.catalogue().entries().len(), 1);
    let changes = register(&registry, 3, &["get"]);
    assert!(changes.named);
    let owner_of = |registry: &Registry, name: &str| owner(registry, name).map(|(set, _)| set);
    assert_eq!(owner_of(&registry, "get").as_deref(), Some("d"));
    assert_eq!(owner_of(&registry, "a__get").as_deref(), Some("a"));
    assert_eq!(owner_of(&registry, "put").as_deref(), Some("a"));
    // names do not wait for a failed server, and tools with names do not wait
    let registry = expecting();
    registry.keep_names([KeptName::new(set(0), ToolName::new("put").unwrap(), "put")]);
    register(&registry, 0, &["get", "put"]);
    assert_eq!(owner_of(&registry, "put").as_deref(), Some("a"));
    assert_eq!(owner_of(&registry, "get"), None);
    let changes = registry.unexpect(&set(3), &ServerId::new("d").unwrap());
    assert!(!changes.is_empty());
    assert_eq!(owner_of(&registry, "get").as_deref(), Some("a"));
}

#[test]
fn the_name_of_an_unlisted_tool_is_not_an_alias() {
    let registry = Registry::new();
    registry.set_options(set(0), SetOptions::default());
    register(&registry, 0, &["get", "a__get"]);
    register(&registry, 0, &["get"]);
    assert_eq!(owner(&registry, "a__get"), None);
    let found = owner(&registry, "a::get");
    assert_eq!(found, Some(("a".into(), "get".into())));
}

#[test]
fn an_alias_never_names_a_tool_of_another_set() {
    let registry = Registry::new();
    registry.set_options(set(0), SetOptions::default().with_prefix("x"));
    registry.set_options(set(1), SetOptions::default().with_prefix("a"));
    register(&registry, 0, &["get"]);
    assert_eq!(owner(&registry, "a__get"), None);
    register(&registry, 1, &["get"]);
    let found = owner(&registry, "a__get");
    assert_eq!(found, Some(("b".into(), "get".into())));
}

proptest! {
    #[test]
    fn a_name_stays_with_its_tool(
        prefixed in prop::array::uniform4(any::<bool>()),
        steps in prop::collection::vec((0..4_usize, prop::sample::subsequence(&TOOLS[..], 0..8)), 1..40),
    ) {
        let registry = Registry::new();
        for (number, prefixed) in prefixed.into_iter().enumerate() {
            let options = SetOptions::default();
            let options = match prefixed {
                true => options.with_prefix(SETS[number]),
                false => options,
            };
            registry.set_options(set(number), options);
        }
        let mut known: HashMap<String, (String, String)> = HashMap::new();
        let mut owners_of: HashMap<String, String> = HashMap::new();
        for (number, tools) in steps {
            register(&registry, number, &tools);
            known.extend(owners(&registry));
            for (name, first) in &known {
                let owner = owner(&registry, name);
                prop_assert!(owner.is_none() || owner.as_ref() == Some(first), "{}: {:?}", name, owner);
            }
            // an alias leads to at most one set
            let ways = SETS.iter().flat_map(|set| TOOLS.map(|tool| [".", "::", "__"].map(|mark| {
                format!("{set}{mark}{tool}")
            })));
            for name in ways.flatten() {
                if let Some((set, _)) = owner(&registry, &name) {
                    let first = owners_of.entry(name.clone()).or_insert_with(|| set.clone());
                    prop_assert_eq!(&*first, &set, "{}", name);
                }
            }
        }
    }
}

#[test]
fn a_refusal_and_a_new_name_are_reported_once() {
    let registry = Registry::new();
    for number in 0..2 {
        registry.set_options(set(number), SetOptions::default());
    }
    register(&registry, 0, &["get"]);
    let changes = register(&registry, 1, &["get", "a__put", "put", "put"]);
    let reported = |changes: &Changes| {
        let refused = changes
            .refused
            .iter()
            .map(|refused| refused.tool.to_string());
        let renamed = changes
            .renamed
            .iter()
            .map(|renamed| renamed.name.to_string());
        (refused.collect::<Vec<_>>(), renamed.collect::<Vec<_>>())
    };
    let refused = vec!["put".to_owned()];
    let renamed = vec!["b__get".to_owned(), "b__a__put".to_owned()];
    assert_eq!(reported(&changes), (refused, renamed));
    let changes = register(&registry, 1, &["get", "a__put", "put", "put"]);
    assert_eq!(reported(&changes), (Vec::new(), Vec::new()));
    let changes = register(&registry, 1, &["get", "put"]);
    assert_eq!(reported(&changes), (Vec::new(), Vec::new()));
    // and again when it comes back
    let changes = register(&registry, 1, &["get", "put", "put"]);
    assert_eq!(reported(&changes).0, ["put"]);
}
