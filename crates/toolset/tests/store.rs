//! The file: what people write into it, and several processes that change it.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use callward_toolset::{Note, Store, ToolRef, Toolset, ToolsetError};
use serde_json::{Value, json};
use tempfile::TempDir;

fn empty() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toolsets.json");
    (folder, path)
}

fn tool() -> ToolRef {
    ToolRef::named("shop.pay")
}

fn note(name: &str) -> Note {
    Note::new(name.parse().unwrap(), "as said".parse().unwrap())
}

fn add(store: &Store, name: &str) -> Result<usize, ToolsetError> {
    let toolset = "work".parse()?;
    let added = store.change(|all| {
        all.get_mut(&toolset)?
            .add_notes(&tool(), &tool(), vec![note(name)])
    });
    added.map(|added| added.len())
}

fn written(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn what_an_older_or_newer_version_wrote_is_kept() {
    let (_folder, path) = empty();
    // as files have it that know no notes, and with members of other programs
    let mut file = json!({
        "lastEquippedToolset": "work",
        "toolsets": {"work": {
            "name": "work", "version": "1.0.0",
            "tools": [{"namespacedName": "shop.pay", "alias": "pay"}, {"refId": "00ff"}],
        }},
    });
    fs::write(&path, file.to_string()).unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(
        store
            .toolsets()
            .file
            .toolsets
            .get("work")
            .unwrap()
            .tools
            .len(),
        2
    );
    assert_eq!(add(&store, "a").unwrap(), 1);
    file["toolsets"]["work"]["toolNotes"] = json!([{
        "toolRef": {"namespacedName": "shop.pay"},
        "notes": [{"name": "a", "note": "as said"}],
    }]);
    assert_eq!(written(&path), file);
}

#[test]
fn a_file_with_an_error_is_refused_by_place_and_left_as_it_is() {
    let (_folder, path) = empty();
    for (text, place, what) in [
        ("{\"toolsets\":\n {\"a\" {}}}", ":2:7: ", "expected `:`"),
        (
            "{\"toolsets\": {\n\"A\": {\"tools\": []}}}",
            ":2:3: ",
            "not a valid name",
        ),
        (
            "{\"toolsets\": {\n\n\"a\": {}}}",
            ":3:7: ",
            "missing field `tools`",
        ),
        (
            "{\"toolsets\": {\"a\": {\"tools\": []},\n\"a\": {\"tools\": []}}}",
            ":2:3: ",
            "`a` is there twice",
        ),
        (
            "{\"toolsets\": {\"a\": {\"tools\": [], \"toolNotes\": [{\"toolRef\": {\"refId\": \"1\"},\n\
             \"notes\": [{\"name\": \"n\",\n\"note\": \"two\\nlines\"}]}]}}}",
            ":3:",
            "one line",
        ),
        ("", ":1:0: ", "EOF"),
    ] {
        fs::write(&path, text).unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        let shown = path.display().to_string();
        let found = error.strip_prefix(&shown).unwrap();
        assert!(found.starts_with(place), "{found}");
        assert!(error.contains(what), "{error}");
        // nor is it overwritten by who has read it before
        fs::remove_file(&path).unwrap();
        let store = Store::open(&path).unwrap();
        fs::write(&path, text).unwrap();
        assert!(add(&store, "a").unwrap_err().is_of_file());
        assert!(store.refresh().unwrap_err().is_of_file());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn several_writers_lose_no_change_of_each_other() {
    let (_folder, path) = empty();
    let first = Store::open(&path).unwrap();
    first
        .change(|all| all.add("work".parse()?, Toolset::default()))
        .unwrap();
    let reader = Store::open(&path).unwrap();
    assert!(!reader.refresh().unwrap());
    // what a killed writer left
    fs::write(path.with_added_extension("new"), "{\"toolsets\"").unwrap();
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let path = &path;
            threads.spawn(move || {
                // each with a store of its own, as processes have
                let store = Store::open(path).unwrap();
                for number in 0..5 {
                    add(&store, &format!("n{thread}-{number}")).unwrap();
                }
            });
        }
    });
    assert!(reader.refresh().unwrap());
    let now = reader.toolsets();
    assert_eq!(
        now.file
            .toolsets
            .get("work")
            .unwrap()
            .notes_of(&tool())
            .len(),
        20
    );
    let full = add(&reader, "one-more").unwrap_err();
    assert!(
        matches!(full, ToolsetError::TooMany { max: 20, .. }),
        "{full}"
    );
    // what changes nothing writes nothing
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(add(&first, "n0-0").unwrap(), 0);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
}

#[test]
fn operators_replace_and_remove_notes_and_toolsets() {
    let (_folder, path) = empty();
    let store = Store::open(&path).unwrap();
    let work = "work".parse().unwrap();
    store
        .change(|all| all.add("work".parse()?, Toolset::default()))
        .unwrap();
    let taken = store.change(|all| all.add("work".parse()?, Toolset::default()));
    assert!(matches!(taken, Err(ToolsetError::Taken(_))));
    for name in ["a", "b", "c"] {
        add(&store, name).unwrap();
    }
    let other = Note::new("b".parse().unwrap(), "other".parse().unwrap());
    store
        .change(|all| all.get_mut(&work)?.set_note(&tool(), other))
        .unwrap();
    let removed = |name: Option<&str>| {
        let name = name.map(|name| name.parse().unwrap());
        store
            .change(|all| Ok(all.get_mut(&work)?.remove_notes(&tool(), name.as_ref())))
            .unwrap()
    };
    assert_eq!([removed(Some("a")), removed(Some("a"))], [1, 0]);
    let notes = written(&path)["toolsets"]["work"]["toolNotes"][0]["notes"].clone();
    assert_eq!(
        notes,
        json!([{"name": "c", "note": "as said"}, {"name": "b", "note": "other"}])
    );
    assert_eq!(removed(None), 2);
    store.change(|all| Ok(all.toolsets.remove(&work))).unwrap();
    assert_eq!(written(&path), json!({"toolsets": {}}));
    assert!(matches!(add(&store, "a"), Err(ToolsetError::NoToolset(_))));
}
