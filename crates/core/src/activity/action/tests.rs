//! Lines for calls, and what they do with odd input.

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

fn action(name: &str, schema: &str) -> ActionTemplate {
    match RawValue::from_string(schema.to_owned()) {
        Ok(schema) => ActionTemplate::of(&Subject::new(name).with_input_schema(&schema)),
        Err(_) => ActionTemplate::of(&Subject::new(name)),
    }
}

fn takes(name: &str, required: &[&str]) -> ActionTemplate {
    let properties: Vec<String> = required
        .iter()
        .map(|one| format!("\"{one}\": {{}}"))
        .collect();
    let properties = properties.join(", ");
    let schema = format!(
        r#"{{"properties": {{{properties}}}, "required": {}}}"#,
        json!(required)
    );
    action(name, &schema)
}

#[test]
fn a_line_has_places_for_what_the_call_is_about() {
    for (name, required, want) in [
        (
            "delete_customer",
            &["customer_id"][..],
            "Delete customer {customer_id}",
        ),
        (
            "deleteCustomer",
            &["customerId"],
            "Delete customer {customerId}",
        ),
        (
            "move_file",
            &["source", "destination"],
            "Move file from {source} to {destination}",
        ),
        (
            "send_email",
            &["to", "subject", "body"],
            "Send email to {to}, {subject}",
        ),
        (
            "get_file",
            &["owner", "repo", "path"],
            "Get file {owner}, {repo}",
        ),
        ("read_source", &["source"], "Read source {source}"),
        ("get_time", &[], "Get time"),
    ] {
        assert_eq!(takes(name, required).to_string(), want, "{name}");
    }
}

#[test]
fn missing_arguments_leave_no_trace() {
    let action = takes("move_file", &["source", "destination"]);
    for (arguments, want) in [
        (
            json!({"source": "/a", "destination": "/b"}),
            "Move file from /a to /b",
        ),
        (
            json!({"destination": "/b", "other": [1]}),
            "Move file to /b",
        ),
        (json!({"source": null}), "Move file"),
        (json!([]), "Move file"),
    ] {
        assert_eq!(action.render(arguments.to_string().as_bytes()), want);
    }
    assert_eq!(action.render(b"\xff{"), "Move file");
    let action = takes("get_file", &["owner", "repo"]);
    assert_eq!(action.render(br#"{"repo": "r"}"#), "Get file r");
}

#[test]
fn a_value_cannot_pass_for_more_than_a_value() {
    let action = takes("delete_customer", &["customer_id"]);
    let long = json!({"customer_id": format!("a\n\u{1b}[2K{}", "x".repeat(500))}).to_string();
    let line = action.render(long.as_bytes());
    assert!(line.starts_with("Delete customer a [2Kxxx"), "{line}");
    assert_eq!(line.chars().count(), "Delete customer ".len() + 48);
    // braces in a value are not places
    let line = action.render(br#"{"customer_id": "{customer_id}"}"#);
    assert_eq!(line, "Delete customer {customer_id}");
}

#[test]
fn the_same_tool_has_the_same_line_however_it_is_spelt() {
    let want = takes("delete_customer", &["customer_id"]).to_string();
    for name in [
        "delete-customer",
        "deleteCustomer",
        "DeleteCustomer",
        "customer.delete",
    ] {
        assert_eq!(takes(name, &["customer_id"]).to_string(), want, "{name}");
    }
}

/// Anything where a schema should be, more often than not one in outline.
fn any_schema() -> impl Strategy<Value = Value> {
    let word = || {
        prop::sample::select(vec![
            "properties",
            "required",
            "type",
            "format",
            "anyOf",
            "string",
            "array",
            "object",
            "id",
            "user_id",
            "path",
            "to",
            "password",
            "",
            "a b",
            "\u{202e}",
        ])
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    let any = leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| members.into_iter().collect()),
        ]
    });
    (any.clone(), any).prop_map(|(one, other)| {
        if one.is_object() {
            json!({"properties": one, "required": other})
        } else {
            other
        }
    })
}

proptest! {
    #[test]
    fn nothing_makes_a_line_fail(
        name in "\\PC{0,40}",
        title in prop::option::of("(?s).{0,120}"),
        server in prop::option::of("\\PC{0,12}"),
        schema in any_schema(),
        arguments in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let schema = RawValue::from_string(schema.to_string()).ok();
        let mut subject = Subject::new(&name);
        subject.title = title.as_deref();
        subject.server = server.as_deref();
        subject.input_schema = schema.as_deref();
        let action = ActionTemplate::of(&subject);
        prop_assert_eq!(&action, &ActionTemplate::of(&subject));
        let line = action.render(&arguments);
        prop_assert!(!line.is_empty());
        prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
        prop_assert!(action.phrase().chars().count() <= 80);
        prop_assert!(action.arguments().count() <= 2);
    }

    #[test]
    fn a_line_is_one_line_whatever_the_values_are(
        first in "(?s).{0,200}",
        second in prop::collection::vec("(?s).{0,40}", 0..6),
    ) {
        let action = takes("move_file", &["source", "destination"]);
        let arguments = json!({"source": first, "destination": second}).to_string();
        let line = action.render(arguments.as_bytes());
        prop_assert!(line.starts_with("Move file"));
        prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
        prop_assert!(line.chars().count() <= "Move file from  to ".len() + 2 * 48);
    }
}
