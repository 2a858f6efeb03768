//! Which arguments are picked, and which never.

use serde_json::json;

use super::*;

fn picked(schema: &str, phrase: &str) -> Vec<String> {
    let schema = RawValue::from_string(schema.to_owned()).unwrap();
    let words: Vec<String> = phrase.split(' ').map(str::to_owned).collect();
    pick(Some(&schema), &words).into_vec()
}

#[test]
fn required_ids_come_first_and_two_are_enough() {
    let schema = json!({
        "properties": {
            "zone": {"type": "string"},
            "force": {"type": "boolean"},
            "account_id": {"type": "string"},
            "customer_id": {"type": ["string", "null"]},
            "name": {"type": "string"},
        },
        "required": ["zone", "account_id", "customer_id", "name", 7],
    });
    assert_eq!(
        picked(&schema.to_string(), "delete customers"),
        ["customer_id", "account_id"]
    );
}

#[test]
fn an_optional_one_is_shown_only_if_nothing_is_required_and_it_tells_something() {
    let one = |name: &str| json!({"properties": {name: {"type": "string"}}}).to_string();
    assert_eq!(picked(&one("query"), "search"), ["query"]);
    assert_eq!(picked(&one("mode"), "search"), [""; 0]);
    let both = json!({
        "properties": {"query": {}, "text": {}},
        "required": ["text"],
    });
    assert_eq!(picked(&both.to_string(), "say"), ["text"]);
}

#[test]
fn the_order_is_the_schemas_own() {
    let schema = r#"{"properties": {"to": {}, "from": {}}, "required": ["from", "to"]}"#;
    assert_eq!(picked(schema, "transfer"), ["to", "from"]);
}

#[test]
fn no_secret_is_ever_shown() {
    for name in [
        "password",
        "apiKey",
        "api_key",
        "access_token",
        "privateKey",
        "cardNumber",
        "userPIN",
        "client_secret",
    ] {
        let schema = json!({"properties": {name: {"type": "string"}}, "required": [name]});
        assert_eq!(picked(&schema.to_string(), "log in"), [""; 0], "{name}");
    }
    for kind in [json!({"format": "password"}), json!({"writeOnly": true})] {
        let schema = json!({"properties": {"id": kind}, "required": ["id"]});
        assert_eq!(picked(&schema.to_string(), "log in"), [""; 0]);
    }
}

#[test]
fn odd_schemas_have_no_arguments() {
    for schema in [
        "null",
        "true",
        "[]",
        "{}",
        r#"{"properties": []}"#,
        r#"{"properties": null, "required": 3}"#,
        r#"{"properties": {"": {}, "a b": {}, "{x}": {}}, "required": ["", "a b", "{x}"]}"#,
        r#"{"properties": {"id": {"anyOf": [{"type": "object"}, {"type": "null"}]}}, "required": ["id"]}"#,
    ] {
        assert_eq!(picked(schema, "get"), [""; 0], "{schema}");
    }
    let odd = r#"{"properties": {"id": 3, "x": {"type": {"a": 1}}}, "required": ["id"]}"#;
    assert_eq!(picked(odd, "get"), ["id"]);
    let deep = format!(
        r#"{{"properties": {{"id": {{"type": {}1{}}}}}, "required": ["id"]}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    assert_eq!(picked(&deep, "get"), ["id"]);
}
