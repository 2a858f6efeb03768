//! Hints as JSON: what is written is read again, and what is not understood is named.

use callward_core::{Annotations, ToolDefinition};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::properties::any;

/// The four short forms, and what they stand for.
const ALIASES: [(&str, &str); 4] = [
    ("readOnly", "readOnlyHint"),
    ("destructive", "destructiveHint"),
    ("idempotent", "idempotentHint"),
    ("openWorld", "openWorldHint"),
];

/// All thirteen names.
const FIELDS: [&str; 13] = [
    "title",
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
    "requiresConfirmation",
    "tags",
    "estimatedDuration",
    "rateLimitHint",
    "costHint",
    "complexity",
    "auditRequired",
    "securityLevel",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_is_written_is_read_again(hints in any::hints()) {
        let text = serde_json::to_string(&hints).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Annotations>(&text).unwrap(), &hints, "{}", text);
        let value = serde_json::to_value(&hints).unwrap();
        prop_assert_eq!(serde_json::from_value::<Annotations>(value).unwrap(), hints);
    }

    #[test]
    fn what_is_absent_is_not_written(hints in any::hints()) {
        let value = serde_json::to_value(&hints).unwrap();
        let written = |name: &str| value.get(name).is_some();
        for (name, stated) in [
            ("title", hints.title.is_some()),
            ("readOnlyHint", hints.read_only_hint.is_some()),
            ("destructiveHint", hints.destructive_hint.is_some()),
            ("idempotentHint", hints.idempotent_hint.is_some()),
            ("openWorldHint", hints.open_world_hint.is_some()),
            ("requiresConfirmation", hints.requires_confirmation.is_some()),
            ("tags", hints.tags.is_some()),
            ("estimatedDuration", hints.estimated_duration.is_some()),
            ("rateLimitHint", hints.rate_limit_hint.is_some()),
            ("costHint", hints.cost_hint.is_some()),
            ("complexity", hints.complexity.is_some()),
            ("auditRequired", hints.audit_required.is_some()),
            ("securityLevel", hints.security_level.is_some()),
        ] {
            prop_assert_eq!(written(name), stated, "{}", name);
        }
    }

    #[test]
    fn a_short_form_says_the_same(hints in any::hints()) {
        let mut value = serde_json::to_value(&hints).unwrap();
        let map = value.as_object_mut().unwrap();
        for (short, full) in ALIASES {
            if let Some(hint) = map.remove(full) {
                map.insert(short.to_owned(), hint);
            }
        }
        prop_assert_eq!(serde_json::from_value::<Annotations>(value).unwrap(), hints);
    }

    #[test]
    fn null_says_nothing(hints in any::hints(), silent in prop::sample::subsequence(&FIELDS, 0..13)) {
        let mut value = serde_json::to_value(&hints).unwrap();
        let map = value.as_object_mut().unwrap();
        for name in &silent {
            map.remove(*name);
        }
        let without = serde_json::from_value::<Annotations>(value.clone()).unwrap();
        for name in &silent {
            value.as_object_mut().unwrap().insert((*name).to_owned(), Value::Null);
        }
        prop_assert_eq!(serde_json::from_value::<Annotations>(value).unwrap(), without);
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_named() {
    for field in FIELDS {
        for wrong in [json!({"a": 1}), json!([[]])] {
            let text = json!({ field: wrong }).to_string();
            let error = serde_json::from_str::<Annotations>(&text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(field), "{text}: {error}");
            let tool = json!({"name": "t", "annotations": {field: wrong}}).to_string();
            let error = ToolDefinition::from_json(tool).unwrap_err().to_string();
            assert!(error.contains(field) && error.contains("\"t\""), "{error}");
        }
    }
    for (short, _) in ALIASES {
        let text = json!({ short: "yes" }).to_string();
        let error = serde_json::from_str::<Annotations>(&text)
            .unwrap_err()
            .to_string();
        assert!(error.contains(short) && error.contains("yes"), "{error}");
    }
    let error = serde_json::from_str::<Annotations>(r#"{"complexity":"hard"}"#).unwrap_err();
    for part in ["complexity", "hard", "simple", "medium", "complex"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_member_of_the_wrong_kind_is_named() {
    for (tool, named) in [
        (json!({"name": 5}), "name: invalid type"),
        (json!({"name": ""}), "name: "),
        (json!({"name": "t", "title": 5}), "title: invalid type"),
        (
            json!({"name": "t", "description": []}),
            "description: invalid type",
        ),
        (
            json!({"name": "t", "annotations": []}),
            "annotations: invalid type",
        ),
        (
            json!({"name": "t", "annotations": {"costHint": "1"}}),
            "annotations: costHint: ",
        ),
        (json!({"title": "t"}), "missing field `name`"),
        (json!(["t"]), "not an object"),
    ] {
        let error = ToolDefinition::from_json(tool.to_string())
            .unwrap_err()
            .to_string();
        assert!(error.contains(named), "{tool}: {error}");
    }
}

/// What is wrong with the third tool of a list, after its name.
fn fault(listed: &str) -> Option<String> {
    let listed = ToolDefinition::from_list(listed.to_owned(), 3);
    let fault = listed.fault()?;
    assert!(fault.chars().count() <= 200, "{fault}");
    assert!(!fault.chars().any(char::is_control), "{fault:?}");
    assert!(!fault.contains(" at line "), "{fault}");
    Some(format!("{}: {fault}", listed.name()))
}

#[test]
fn what_strict_clients_refuse_a_list_for_is_a_fault() {
    let digits = "9".repeat(5000);
    let long = "x".repeat(1001);
    for (members, expected) in [
        (r#""inputSchema":null"#, "t: inputSchema: not an object"),
        (r#""inputSchema":[]"#, "t: inputSchema: not an object"),
        (
            r#""inputSchema":{"type":"string"}"#,
            "t: inputSchema: its `type` is not",
        ),
        (
            r#""inputSchema":{"type":null}"#,
            "t: inputSchema: its `type` is not",
        ),
        (
            r#""inputSchema":{"type":{"object":null}}"#,
            "t: inputSchema: its `type` is not",
        ),
        (
            r#""outputSchema":"string""#,
            "t: outputSchema: not an object",
        ),
        (r#""outputSchema":[]"#, "t: outputSchema: not an object"),
        (r#""icons":{}"#, "t: icons: not an array"),
        (r#""icons":["x.png"]"#, "t: icons: not an object"),
        (r#""icons":[{}]"#, "t: icons: one has no `src`"),
        (r#""icons":[{"src":1}]"#, "t: icons: the `src` of one"),
        (
            r#""icons":[{"src":"x"},{"src":"x","sizes":"any"}]"#,
            "t: icons: the `sizes` of one",
        ),
        (r#""_meta":[]"#, "t: _meta: not an object"),
        (r#""execution":"optional""#, "t: execution: not an object"),
        (
            r#""execution":{"taskSupport":true}"#,
            "t: execution: its `taskSupport` is not",
        ),
        (
            r#""execution":{"taskSupport":"maybe"}"#,
            "t: execution: its `taskSupport` is not",
        ),
        (
            r#""annotations":[]"#,
            "t: annotations: invalid type: sequence",
        ),
        (
            r#""annotations":{"readOnlyHint":"yes"}"#,
            "t: annotations: readOnlyHint: invalid type",
        ),
        (
            r#""annotations":{"complexity":"\n"}"#,
            "t: annotations: complexity: unknown variant",
        ),
        (
            r#""annotations":{"title":1}"#,
            "t: annotations: title: invalid type",
        ),
        (r#""title":[]"#, "t: title: invalid type: sequence"),
        (r#""description":{}"#, "t: description: invalid type: map"),
        (r#""title":"a","title":"b""#, "t: duplicate field `title`"),
        (
            r#""x":1e400"#,
            "t: its definition has a number beyond 1.8e308",
        ),
        (
            &format!(r#""x":[-{digits}]"#),
            "t: its definition has a number beyond 1.8e308",
        ),
    ] {
        let rest = match members.contains("inputSchema") {
            true => "",
            false => r#","inputSchema":{"type":"object"}"#,
        };
        let found = fault(&format!(r#"{{"name":"t",{members}{rest}}}"#)).unwrap_or_default();
        assert!(found.starts_with(expected), "{members}: {found}");
    }
    for (listed, expected) in [
        (r#"{"name":"t"}"#, "t: it has no `inputSchema`"),
        ("3", "#3: not an object"),
        ("null", "#3: not an object"),
        (r#"["t"]"#, "#3: not an object"),
        (r#"{"inputSchema":{}}"#, "#3: missing field `name`"),
        (
            r#"{"name":7,"inputSchema":{}}"#,
            "#3: name: invalid type: integer `7`",
        ),
        (
            r#"{"name":null,"inputSchema":{}}"#,
            "#3: name: invalid type: null",
        ),
        (
            r#"{"name":"","inputSchema":{}}"#,
            "#3: name: tool name \"\" is empty",
        ),
        (
            r#"{"name":"a\u001bb","inputSchema":{}}"#,
            "#3: name: tool name \"a b\" holds a",
        ),
        (r#"{"name":7,"x":1e400}"#, "#3: its definition has a number"),
    ] {
        let found = fault(listed).unwrap_or_default();
        assert!(found.starts_with(expected), "{listed}: {found}");
    }
    let found = fault(&format!(r#"{{"name":"{long}","inputSchema":{{}}}}"#)).unwrap();
    let shown = format!("\"{}…\" has more than 256 characters", &long[..99]);
    assert!(
        found.starts_with("#3: ") && found.ends_with(&shown),
        "{found}"
    );
}

#[test]
fn what_clients_take_has_no_fault() {
    for members in [
        "",
        r#","title":null,"description":null,"annotations":null,"outputSchema":null"#,
        r#","icons":null,"_meta":null,"execution":null"#,
        r#","outputSchema":{"type":"array"},"icons":[],"_meta":{"a":1e308},"x-vendor":[7]"#,
        r#","icons":[{"src":"x","mimeType":"image/png","sizes":["any"],"theme":"dark"}]"#,
        r#","execution":{"taskSupport":"forbidden"}"#,
        r#","execution":{"taskSupport":null,"x":1}"#,
    ] {
        for schema in [
            r#"{"type":"object"}"#,
            r#"{"\u0074ype":"\u006fbject","x":{"type":7}}"#,
            "{}",
        ] {
            let listed = format!(r#"{{"name":"t","inputSchema":{schema}{members}}}"#);
            assert_eq!(fault(&listed), None, "{listed}");
        }
    }
}

#[test]
fn a_hint_that_is_said_twice_is_named() {
    for (short, full) in ALIASES {
        for (first, second) in [(full, full), (short, full), (full, short)] {
            let text = format!(r#"{{"{first}":true,"{second}":true}}"#);
            let error = serde_json::from_str::<Annotations>(&text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(full), "{text}: {error}");
        }
    }
}
