//! Searches: what matches, in which order, and what a filter hides.

use std::time::Duration;

use callward_core::Trust;
use callward_registry::{Catalogue, Query, SetOptions, Shown};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bed::{Bed, name, prefixed, set};

fn query(fields: &str) -> Query {
    let mut query = Query::default();
    let fields = fields.split('&').filter_map(|field| field.split_once('='));
    fields.for_each(|(name, value)| query.set(name, value).unwrap());
    query
}

/// Two servers; the second one, `git`, is down.
fn bed() -> Bed {
    let mut trusted = SetOptions::default();
    trusted.trust = Trust::Trusted;
    let bed = Bed::with([("files", trusted), ("git", prefixed("git"))]);
    let tool = |name: &str, description: &str, hints: Value| {
        let schema = json!({"type": "object", "properties": {"folderPath": {}}});
        json!({
            "name": name, "description": description, "inputSchema": schema, "annotations": hints,
        })
    };
    let files = [
        tool(
            "readFile",
            "Reads a text",
            json!({"readOnlyHint": true, "tags": ["fast"]}),
        ),
        tool(
            "delete_file",
            "Removes it",
            json!({"destructiveHint": true}),
        ),
        tool(
            "wait",
            "Deprecated: waits for files",
            json!({"readOnlyHint": true}),
        ),
    ];
    bed.list("files", files);
    let odd = json!({"readOnlyHint": true, "destructiveHint": true});
    let git = [
        json!({"name": "create_branch", "description": "Creates a branch from a file"}),
        json!({"name": "odd", "annotations": odd}),
    ];
    bed.list("git", git);
    bed
}

fn found(catalogue: &Catalogue, fields: &str) -> String {
    let found = catalogue.search(&query(fields), |_| true, |server| server.as_str() != "git");
    let names = found.tools.iter().map(|entry| entry.client_name());
    assert!(found.total >= found.tools.len());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn each_condition_and_order_of_a_query() {
    let bed = bed();
    let calls = |tool: &str, millis, failed| {
        let stats = bed.tool(tool).stats.clone().unwrap();
        stats.count(Duration::from_millis(millis), failed);
    };
    calls("wait", 5, false);
    calls("readFile", 9, true);
    calls("readFile", 9, false);
    let catalogue = bed.catalogue();
    for (fields, expected) in [
        ("", "readFile delete_file wait git__create_branch"),
        ("desc=true", "git__create_branch wait delete_file readFile"),
        ("name=FILE", "readFile delete_file"),
        ("name=git__", "git__create_branch"),
        // in the name, and in descriptions, of which the shorter name does not count
        ("text=files", "readFile delete_file wait git__create_branch"),
        ("text=removing branches", "git__create_branch"),
        ("text=folder path", "readFile delete_file wait"),
        ("text=nothing", ""),
        ("text=file&name=e_", "delete_file git__create_branch"),
        ("server=git", "git__create_branch"),
        (
            "server=files&server=git&limit=1&offset=3",
            "git__create_branch",
        ),
        ("category=version-control", "git__create_branch"),
        ("category=delete", "delete_file"),
        ("category=file-system&safety=safe", "readFile wait"),
        ("tag=fast&tag=slow", "readFile"),
        ("readOnly=true", "readFile wait"),
        ("destructive=true", "delete_file"),
        ("tags=fast", "readFile"),
        ("safety=dangerous", "delete_file"),
        ("confirm=true", "delete_file"),
        ("available=true", "readFile delete_file wait"),
        ("available=false", "git__create_branch"),
        ("sort=name", "delete_file git__create_branch readFile wait"),
        ("sort=name&desc=true&limit=2", "wait readFile"),
        (
            "sort=calls&desc=true",
            "readFile wait delete_file git__create_branch",
        ),
        // those without a call are last in both directions
        (
            "sort=success-rate",
            "readFile wait delete_file git__create_branch",
        ),
        (
            "sort=duration&desc=true",
            "readFile wait delete_file git__create_branch",
        ),
        (
            "sort=duration",
            "wait readFile delete_file git__create_branch",
        ),
        ("limit=0", ""),
        ("offset=9", ""),
    ] {
        assert_eq!(found(&catalogue, fields), expected, "{fields}");
    }
}

#[test]
fn a_wrong_field_names_what_is_expected() {
    for (field, value, expected) in [
        (
            "sort",
            "size",
            "sort is `size`: expected one of relevance, name",
        ),
        ("limit", "-1", "limit is `-1`: expected a whole number"),
        (
            "category",
            "x",
            "category is `x`: expected one of version-control",
        ),
        ("colour", "red", "there is no hint `colour`"),
    ] {
        let error = Query::default().set(field, value).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn the_counts_of_a_catalogue() {
    let bed = bed();
    let stats = serde_json::to_value(bed.catalogue().stats()).unwrap();
    let expected = json!({
        "total": 4,
        "by_server": {"files": 3, "git": 1},
        "by_set": {"files": 3, "git": 1},
        "by_category": {"version-control": 1, "file-system": 3},
        "by_safety_level": {"safe": 2, "moderate": 1, "dangerous": 1},
        "annotated": 3,
        "deprecated": 1,
        "refused": 1,
    });
    assert_eq!(stats, expected);

    // a hidden tool is in no count
    let mut hiding = SetOptions::default();
    hiding.shown.entry(name("wait")).or_default().hidden = true;
    bed.change_options(&set("files"), hiding);
    let stats = serde_json::to_value(bed.catalogue().stats()).unwrap();
    assert_eq!(stats["by_server"], json!({"files": 2, "git": 1}));
    assert_eq!(
        (&stats["by_set"], &stats["total"]),
        (&stats["by_server"], &json!(3))
    );
}

proptest! {
    #[test]
    fn pages_are_the_whole_and_have_no_hidden_tool(
        names in prop::collection::btree_set("[a-c]{1,2}_[a-c]{1,2}", 1..12),
        hidden in "[a-c]",
        fields in prop::sample::select(vec!["", "name=a", "text=a b", "sort=name", "sort=calls"]),
        descending: bool,
        size in 1_usize..5,
    ) {
        let bed = Bed::with([("x", prefixed("x")), ("y", prefixed("y"))]);
        for set in ["x", "y"] {
            bed.list(set, names.iter().map(|name| json!({"name": name})));
        }
        let catalogue = bed.catalogue();
        let mut query = query(fields);
        query.descending = descending;
        let search = |query: &Query| {
            let shows = |entry: &callward_registry::Entry| !entry.tool().name().as_str().contains(&hidden);
            let found = catalogue.search(query, shows, |_| true);
            let names = found.tools.iter().map(|entry| entry.client_name().to_owned());
            (found.total, names.collect::<Vec<_>>())
        };
        let (total, whole) = search(&query);
        prop_assert_eq!(total, whole.len());
        prop_assert!(whole.iter().all(|name| !name[3..].contains(&hidden)), "{:?}", whole);
        let mut pages = Vec::new();
        query.limit = Some(size);
        while query.offset < total {
            let (of_page, page) = search(&query);
            prop_assert_eq!(of_page, total);
            pages.extend(page);
            query.offset += size;
        }
        prop_assert_eq!(pages, whole);
    }
}

#[test]
fn a_search_reads_the_name_and_description_that_clients_see() {
    let mut options = SetOptions::default();
    let mut shown = Shown::default();
    shown.name = Some("edit".to_owned());
    shown.description = Some("Edits one item of the store.".to_owned());
    options.shown.insert(name("update_item"), shown);
    let bed = Bed::with([("s", options)]);
    bed.list(
        "s",
        [json!({"name": "update_item", "description": "Updates it."})],
    );
    for (word, expected) in [("edit", "edit"), ("store", "edit"), ("updates", "")] {
        let query = format!("text={word}");
        assert_eq!(found(&bed.catalogue(), &query), expected, "{word}");
    }
}
