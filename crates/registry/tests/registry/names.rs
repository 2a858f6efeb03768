//! A name, once given to a tool, never leads to another one.

use std::collections::HashMap;

use callward_registry::{Changes, KeptName, SetOptions};
use proptest::prelude::*;

use crate::bed::{Bed, name, prefixed, server, set};

const SETS: [&str; 4] = ["a", "b", "c", "d"];
/// Some read as tools of other sets.
const TOOLS: [&str; 8] = [
    "get", "put", "a__get", "b.get", "c__get", "c__get", "d::put", "files",
];

fn without_prefixes() -> Bed {
    Bed::with(SETS.map(|set| (set, SetOptions::default())))
}

fn set_of(bed: &Bed, name: &str) -> Option<String> {
    Some(bed.owner(name)?.0)
}

/// Returns which tool is behind each name that clients see.
fn owners(bed: &Bed) -> HashMap<String, (String, String)> {
    let catalogue = bed.catalogue();
    let names = catalogue.entries().iter().map(|entry| entry.client_name());
    let owned = |name: &str| (name.to_owned(), bed.owner(name).unwrap());
    names.map(owned).collect()
}

#[test]
fn a_server_cannot_take_the_name_of_another() {
    let bed = without_prefixes();
    bed.change_options(&set("b"), prefixed("b"));
    bed.names("d", &["get"]);
    bed.names("b", &["put"]);
    // alphabetically before the first one, and with names that read as those of others
    bed.names("a", &["get", "b__put", "b.other", "d__get"]);
    let owners = owners(&bed);
    let owner = |name: &str| owners.get(name).map(|(set, tool)| (&set[..], &tool[..]));
    assert_eq!(owner("get"), Some(("d", "get")));
    assert_eq!(owner("b__put"), Some(("b", "put")));
    assert_eq!(owner("a__get"), Some(("a", "get")));
    assert_eq!(owner("a__b__put"), Some(("a", "b__put")));
    assert_eq!(owner("b.other"), None);
    assert_eq!(owner("d__get"), None);
    // also while its owner does not list it
    bed.names("d", &[]);
    bed.names("a", &[]);
    bed.names("a", &["get"]);
    assert_eq!(set_of(&bed, "get"), None);
    bed.names("d", &["get"]);
    assert_eq!(set_of(&bed, "get").as_deref(), Some("d"));
    // names of a set that is gone are free
    bed.forget(&set("d"));
    bed.names("c", &["get"]);
    assert_eq!(set_of(&bed, "get").as_deref(), Some("c"));
}

#[test]
fn names_wait_for_servers_of_earlier_sets() {
    let expecting = || {
        let plain = SetOptions::default;
        let bed = Bed::with([("d", plain()), ("a", plain()), ("b", prefixed("b"))]);
        for name in ["d", "a", "b"] {
            bed.expect(&set(name), &server(name));
        }
        bed
    };
    // in any order of listing
    let bed = expecting();
    bed.names("a", &["get", "put"]);
    bed.names("b", &["get"]);
    assert_eq!(bed.catalogue().entries().len(), 1);
    let changes = bed.names("d", &["get"]);
    assert!(changes.named);
    for (name, owner) in [("get", "d"), ("a__get", "a"), ("put", "a")] {
        assert_eq!(set_of(&bed, name).as_deref(), Some(owner), "{name}");
    }
    // names do not wait for a failed server, and tools with names do not wait
    let bed = expecting();
    bed.keep_names([KeptName::new(set("a"), name("put"), "put")]);
    bed.names("a", &["get", "put"]);
    assert_eq!(set_of(&bed, "put").as_deref(), Some("a"));
    assert_eq!(set_of(&bed, "get"), None);
    let changes = bed.unexpect(&set("d"), &server("d"));
    assert!(!changes.is_empty());
    assert_eq!(set_of(&bed, "get").as_deref(), Some("a"));
    // the set that was mentioned first chooses first, whenever it lists
    let bed = Bed::with([("d", SetOptions::default()), ("a", prefixed("x"))]);
    bed.names("a", &["get"]);
    bed.names("d", &["get"]);
    bed.change_options(&set("a"), SetOptions::default());
    for (name, owner) in [("get", "d"), ("a__get", "a")] {
        assert_eq!(set_of(&bed, name).as_deref(), Some(owner));
    }
}

#[test]
fn an_alias_names_no_tool_of_another_set() {
    let bed = Bed::with([("a", prefixed("x")), ("b", prefixed("a"))]);
    bed.names("a", &["get"]);
    assert_eq!(bed.owner("a__get"), None);
    bed.names("b", &["get"]);
    let found = bed.owner("a__get");
    assert_eq!(found, Some(("b".into(), "get".into())));
}

proptest! {
    #[test]
    fn a_name_stays_with_its_tool(
        with_prefixes in prop::array::uniform4(any::<bool>()),
        steps in prop::collection::vec((0..4_usize, prop::sample::subsequence(&TOOLS[..], 0..8), 0..8_u8), 1..40),
    ) {
        let started = |kept: Vec<KeptName>| {
            let bed = Bed::default();
            bed.keep_names(kept);
            for (name, with_prefix) in SETS.into_iter().zip(with_prefixes) {
                let options = if with_prefix { prefixed(name) } else { SetOptions::default() };
                bed.change_options(&set(name), options);
            }
            bed
        };
        let mut bed = started(Vec::new());
        let mut known: HashMap<String, (String, String)> = HashMap::new();
        let mut owners_of: HashMap<String, String> = HashMap::new();
        for (number, tools, restart) in steps {
            if restart == 0 {
                // a later run
                bed = started(bed.kept_names());
            }
            bed.names(SETS[number], &tools);
            known.extend(owners(&bed));
            for (name, first) in &known {
                let owner = bed.owner(name);
                prop_assert!(owner.is_none() || owner.as_ref() == Some(first), "{}: {:?}", name, owner);
            }
            // an alias leads to at most one set
            let ways = SETS.iter().flat_map(|set| TOOLS.map(|tool| [".", "::", "__"].map(|mark| {
                format!("{set}{mark}{tool}")
            })));
            for name in ways.flatten() {
                if let Some(set) = set_of(&bed, &name) {
                    let first = owners_of.entry(name.clone()).or_insert_with(|| set.clone());
                    prop_assert_eq!(&*first, &set, "{}", name);
                }
            }
        }
    }
}

#[test]
fn a_refusal_and_a_new_name_are_reported_once() {
    let bed = without_prefixes();
    bed.names("a", &["get"]);
    let reported = |names: &[&str]| {
        let Changes {
            refused, renamed, ..
        } = bed.names("b", names);
        let refused = refused.iter().map(|refused| refused.tool.to_string());
        let renamed = renamed.iter().map(|renamed| renamed.name.to_string());
        refused.chain(renamed).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    let all = ["get", "a__put", "put", "put"];
    assert_eq!(reported(&all), ["put", "b__get", "b__a__put"]);
    assert_eq!(reported(&all), none);
    assert_eq!(reported(&["get", "put"]), none);
    // and again when it comes back
    assert_eq!(reported(&["get", "put", "put"]), ["put"]);
}
