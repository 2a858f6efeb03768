//! Each code: one listing that has it, and one that nearly has.
#![expect(
    clippy::needless_pass_by_value,
    reason = "values are written where they are used"
)]

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::{ServerId, Subject, ToolDefinition};

fn look(listing: &Value) -> Vec<Finding> {
    let raw: Vec<Box<RawValue>> = serde_json::from_str(&listing.to_string()).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let parts: Vec<_> = listing
        .as_array()
        .unwrap()
        .iter()
        .zip(&raw)
        .map(|(tool, raw)| {
            let schema: Option<Box<RawValue>> =
                serde_json::from_value(tool["inputSchema"].clone()).unwrap();
            let server = text(&tool["server"]);
            (
                text(&tool["name"]).unwrap(),
                text(&tool["description"]),
                server,
                schema,
                raw,
            )
        })
        .collect();
    let candidates: Vec<_> = parts
        .iter()
        .map(|(name, description, server, schema, raw)| {
            let mut subject = Subject::new(name);
            subject.description = description.as_deref();
            subject.server = server.as_deref();
            subject.input_schema = schema.as_deref();
            Candidate::new(subject).with_definition(raw)
        })
        .collect();
    check(&candidates)
}

fn codes(listing: &Value) -> Vec<Code> {
    look(listing).iter().map(|finding| finding.code).collect()
}

/// A tool with nothing to find but what its annotations say.
fn reads(annotations: Value) -> Value {
    json!([{"name": "get_user", "description": "Returns a user by id.", "annotations": annotations}])
}

fn tool(name: &str, description: &str, annotations: Value) -> Value {
    json!({"name": name, "description": description, "annotations": annotations})
}

fn writes(name: &str, description: &str, annotations: Value) -> Value {
    json!([tool(name, description, annotations)])
}

fn with_argument(mut listing: Value, name: &str, schema: Value) -> Value {
    listing[0]["inputSchema"] = json!({"type": "object", "properties": {name: schema}});
    listing
}

fn two(first: &str, second: &str) -> Value {
    let description = "Returns what there is to know.";
    let hints = json!({"readOnlyHint": true, "openWorldHint": false});
    json!([
        tool(first, description, hints.clone()),
        tool(second, description, hints)
    ])
}

/// The code, what has it, and what does not.
#[expect(clippy::too_many_lines, reason = "one row for each code")]
fn rows() -> Vec<(Code, Value, Value)> {
    let read = json!({"readOnlyHint": true, "openWorldHint": false});
    let write = |destructive: bool, idempotent: bool| {
        json!({
            "readOnlyHint": false, "openWorldHint": false,
            "destructiveHint": destructive, "idempotentHint": idempotent,
        })
    };
    let named = |name: &str| json!([tool(name, "Returns a user by id.", read.clone())]);
    let said = |description: &str| json!([tool("get_user", description, read.clone())]);
    let also = |name: &str, value: Value| {
        let mut hints = read.clone();
        hints[name] = value;
        reads(hints)
    };
    let mut misplaced = reads(json!({"openWorldHint": false}));
    misplaced[0]["readOnlyHint"] = json!(true);
    vec![
        (
            Code::ReadOnlyAndDestructive,
            also("destructiveHint", json!(true)),
            also("destructiveHint", json!(false)),
        ),
        (
            Code::ReadOnlyDestroys,
            writes("delete_user", "Deletes a user.", read.clone()),
            // what names as much as it does is the author's to say
            writes("clear_sky_forecast", "Returns the weather.", read.clone()),
        ),
        (
            Code::WrongType,
            reads(json!({"readOnlyHint": "true", "openWorldHint": false})),
            reads(json!({"readOnlyHint": null, "openWorldHint": false, "x-vendor": "yes"})),
        ),
        (
            Code::GivenTwice,
            also("readOnly", json!(true)),
            reads(json!({"readOnly": true})),
        ),
        (
            Code::MisspelledHint,
            also("readonlyHint", json!(true)),
            also("idempotency", json!("by request id")),
        ),
        (Code::MisplacedHint, misplaced, reads(read.clone())),
        (
            Code::NumberOutOfRange,
            also("costHint", json!(-1)),
            also("costHint", json!(0)),
        ),
        (
            Code::BlankTag,
            also("tags", json!(["a", " "])),
            also("tags", json!([])),
        ),
        (
            Code::DuplicateName,
            two("get_user", "get_user"),
            two("get_user", "get_order"),
        ),
        (
            Code::ReadOnlyWrites,
            writes("send_invoice", "Sends an invoice.", read.clone()),
            writes("log_search", "Searches the log.", read.clone()),
        ),
        (
            Code::ReadOnlyByArgument,
            with_argument(
                reads(read.clone()),
                "action",
                json!({"enum": ["get", "delete"]}),
            ),
            with_argument(
                reads(read.clone()),
                "action",
                json!({"enum": ["get", "list"]}),
            ),
        ),
        (
            Code::DestructiveDenied,
            writes("delete_user", "Deletes a user.", write(false, true)),
            writes("update_user", "Updates a user.", write(false, true)),
        ),
        (
            Code::DestructiveUnconfirmed,
            writes(
                "delete_user",
                "Deletes a user.",
                json!({"readOnlyHint": false, "destructiveHint": true, "requiresConfirmation": false}),
            ),
            writes(
                "create_user",
                "Creates a user.",
                json!({"readOnlyHint": false, "destructiveHint": false, "requiresConfirmation": false}),
            ),
        ),
        (
            Code::MissingReadOnlyHint,
            reads(json!({"openWorldHint": false})),
            reads(json!({"readOnly": true})),
        ),
        (
            Code::MissingDestructiveHint,
            writes(
                "create_user",
                "Creates a user.",
                json!({"readOnlyHint": false}),
            ),
            reads(json!({"readOnlyHint": true})),
        ),
        (
            Code::ShortHintName,
            reads(json!({"readOnly": true})),
            reads(json!({"readOnlyHint": true})),
        ),
        (
            Code::MisleadingName,
            writes(
                "get_report",
                "Creates a report and returns it.",
                write(false, false),
            ),
            writes(
                "check_file",
                "Before you edit a file, this finds its faults.",
                write(false, false),
            ),
        ),
        (
            Code::SimilarNames,
            two("get_user", "getUser"),
            two("get_v1_2", "get_v12"),
        ),
        (
            Code::StatefulServer,
            two("open_page", "close_page"),
            two("open_page", "get_page"),
        ),
        (
            Code::NameTooLong,
            named(&format!("get_{}", "x".repeat(61))),
            named(&format!("get_{}", "x".repeat(60))),
        ),
        (
            Code::NameCharacters,
            named("get user"),
            named("get-user_2.v"),
        ),
        (Code::MissingDescription, said(" "), said("Returns a user.")),
        (
            Code::MissingIdempotentHint,
            writes(
                "create_user",
                "Creates a user.",
                json!({"readOnlyHint": false}),
            ),
            writes("create_user", "Creates a user.", write(false, false)),
        ),
        (
            Code::MissingOpenWorldHint,
            reads(json!({"readOnlyHint": true})),
            // one question at a time
            reads(json!({})),
        ),
        (
            Code::DoubtfulIdempotence,
            writes("send_mail", "Sends a mail.", write(true, true)),
            writes(
                "create_dir",
                "Creates it, unless it exists.",
                write(false, true),
            ),
        ),
        (
            Code::MeaninglessHint,
            also("idempotentHint", json!(false)),
            writes("create_user", "Creates a user.", write(false, false)),
        ),
        (
            Code::ClosedWorldUrl,
            with_argument(reads(read.clone()), "url", json!({"type": "string"})),
            with_argument(reads(read.clone()), "url_id", json!({"type": "string"})),
        ),
        (
            Code::UnclearName,
            writes("thing", "About things and more.", json!({})),
            writes(
                "thing",
                "About things and more.",
                json!({"readOnlyHint": false}),
            ),
        ),
        (
            Code::ShortDescription,
            said("A user"),
            said("ユーザーを返す"),
        ),
        (Code::DottedName, named("user.get"), named("user_get")),
    ]
}

#[test]
fn each_code_is_found_where_it_is_and_not_where_it_is_not() {
    let mut seen = BTreeSet::new();
    for (code, has, lacks) in rows() {
        seen.insert(code);
        assert!(
            codes(&has).contains(&code),
            "{code} in {has}: {:?}",
            codes(&has)
        );
        assert!(!codes(&lacks).contains(&code), "{code} in {lacks}");
    }
    assert_eq!(seen, Code::ALL.iter().copied().collect());
}

#[test]
fn a_careful_listing_has_nothing_to_find() {
    let listing = json!([
        tool(
            "get_user",
            "Returns a user by id.",
            json!({"readOnlyHint": true, "openWorldHint": false})
        ),
        tool(
            "delete_user",
            "Deletes a user for good.",
            json!({
                "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true,
                "openWorldHint": false, "x-team": "accounts", "title": "Delete a user",
            })
        ),
    ]);
    assert_eq!(look(&listing), []);
}

#[test]
fn findings_come_by_tool_and_the_worst_first() {
    let listing = json!([
        {"name": "thing"},
        tool("delete.user", "Deletes a user.", json!({"readOnlyHint": true})),
    ]);
    let found: Vec<_> = look(&listing)
        .into_iter()
        .map(|finding| (finding.index, finding.code))
        .collect();
    assert_eq!(
        found,
        [
            (0, Code::MissingReadOnlyHint),
            (0, Code::MissingDescription),
            (0, Code::UnclearName),
            (1, Code::ReadOnlyDestroys),
            (1, Code::MissingOpenWorldHint),
            (1, Code::DottedName),
        ]
    );
}

#[test]
fn a_finding_says_which_value_where_and_what_to_do() {
    let found = look(&reads(
        json!({"readOnlyHint": ["yes"], "openWorldHint": false}),
    ));
    let wrong = &found[0];
    assert_eq!(
        wrong.to_string(),
        "error [wrong-type] get_user: readOnlyHint: is [\"yes\"], not true or false; \
         give it true or false"
    );
    assert_eq!(
        serde_json::to_value(wrong).unwrap(),
        json!({
            "code": "wrong-type", "severity": "error", "tool": "get_user", "index": 0,
            "field": "readOnlyHint", "message": "is [\"yes\"], not true or false",
            "advice": "give it true or false",
        })
    );
    // what cannot be read is missing as well
    assert!(found.iter().any(|f| f.code == Code::MissingReadOnlyHint));
}

#[test]
fn annotations_that_are_no_object_are_one_finding() {
    let found = codes(&reads(json!("readOnly")));
    assert_eq!(found, [Code::WrongType, Code::MissingReadOnlyHint]);
}

#[test]
fn tools_are_compared_within_their_server_only() {
    let on = |server: &str, name: &str| {
        let mut tool = tool(name, "Returns a user by id.", json!({"readOnlyHint": true}));
        tool["server"] = json!(server);
        tool
    };
    let apart = json!([on("a", "get_user"), on("b", "get_user"), on("c", "getUser")]);
    assert_eq!(codes(&apart), [Code::MissingOpenWorldHint; 3]);
    let together = look(&json!([on("a", "get_user"), on("a", "getUser")]));
    let similar = |finding: &&Finding| finding.code == Code::SimilarNames;
    assert_eq!(together.iter().find(similar).map(|f| f.index), Some(1));
}

#[test]
fn a_definition_as_registered_can_be_looked_at() {
    let raw = r#"{"name":"delete_user","description":"Deletes a user.",
        "annotations":{"readOnly":true}}"#;
    let definition = ToolDefinition::from_json(raw.as_bytes()).unwrap();
    let server = ServerId::new("users").unwrap();
    let found = check(&[Candidate::of(&definition, Some(&server))]);
    let codes: Vec<_> = found.iter().map(|finding| finding.code).collect();
    assert_eq!(
        codes,
        [
            Code::ReadOnlyDestroys,
            Code::ShortHintName,
            Code::MissingOpenWorldHint
        ]
    );
    assert_eq!(found[0].server.as_deref(), Some("users"));
}
