//! Hints as JSON: what is written is read again, and what is not understood is named.

use callward_core::{Annotations, Field, ToolDefinition};
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
fn names() -> Vec<&'static str> {
    Field::ALL.iter().map(|field| field.as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_is_stated_is_written_and_read_again(
        hints in any::hints(),
        silent in prop::sample::subsequence(names(), 0..13),
    ) {
        let text = serde_json::to_string(&hints).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Annotations>(&text).unwrap(), &hints, "{}", text);
        let value = serde_json::to_value(&hints).unwrap();
        // what is absent is not written
        prop_assert!(names().iter().all(|name| value.get(name) != Some(&Value::Null)), "{}", text);
        let read = |value: &Value| serde_json::from_value::<Annotations>(value.clone()).unwrap();
        let mut short = value.clone();
        for (form, full) in ALIASES {
            if let Some(hint) = short.as_object_mut().unwrap().remove(full) {
                short[form] = hint;
            }
        }
        prop_assert_eq!(read(&short), hints);
        let (mut without, mut null) = (value.clone(), value);
        for name in silent {
            without.as_object_mut().unwrap().remove(name);
            null[name] = Value::Null;
        }
        prop_assert_eq!(read(&null), read(&without));
    }
}

/// Why hints are refused.
fn refused(hints: &str) -> String {
    serde_json::from_str::<Annotations>(hints)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_value_of_the_wrong_kind_or_given_twice_is_named() {
    for field in names() {
        for wrong in [json!({"a": 1}), json!([[]])] {
            let text = json!({ field: wrong }).to_string();
            let error = refused(&text);
            assert!(error.contains(field), "{text}: {error}");
            let tool = json!({"name": "t", "annotations": {field: wrong}}).to_string();
            let error = ToolDefinition::from_json(tool).unwrap_err().to_string();
            assert!(error.contains(field) && error.contains("\"t\""), "{error}");
        }
    }
    for (short, full) in ALIASES {
        let error = refused(&json!({ short: "yes" }).to_string());
        assert!(error.contains(short) && error.contains("yes"), "{error}");
        for (first, second) in [(full, full), (short, full), (full, short)] {
            let text = format!(r#"{{"{first}":true,"{second}":true}}"#);
            let error = refused(&text);
            assert!(error.contains(full), "{text}: {error}");
        }
    }
    let error = refused(r#"{"complexity":"hard"}"#);
    for part in ["complexity", "hard", "simple", "medium", "complex"] {
        assert!(error.contains(part), "{error}");
    }
}

/// What is wrong with the third tool of a list, after its name.
fn fault(listed: &str) -> Option<String> {
    let listed = ToolDefinition::from_list(listed.to_owned(), 3);
    let fault = listed.fault?;
    assert!(fault.chars().count() <= 200, "{fault}");
    assert!(!fault.chars().any(char::is_control), "{fault:?}");
    assert!(!fault.contains(" at line "), "{fault}");
    Some(format!("{}: {fault}", listed.name))
}

#[test]
fn what_strict_clients_refuse_a_list_for_is_a_fault() {
    let digits = "9".repeat(5000);
    let long = "x".repeat(1001);
    let of_members = r#"
"inputSchema":null => t: inputSchema: not an object
"inputSchema":[] => t: inputSchema: not an object
"inputSchema":{"type":"string"} => t: inputSchema: its `type` is not
"inputSchema":{"type":null} => t: inputSchema: its `type` is not
"inputSchema":{"type":{"object":null}} => t: inputSchema: its `type` is not
"outputSchema":"string" => t: outputSchema: not an object
"outputSchema":[] => t: outputSchema: not an object
"icons":{} => t: icons: not an array
"icons":["x.png"] => t: icons: not an object
"icons":[{}] => t: icons: one has no `src`
"icons":[{"src":1}] => t: icons: the `src` of one
"icons":[{"src":"x"},{"src":"x","sizes":"any"}] => t: icons: the `sizes` of one
"_meta":[] => t: _meta: not an object
"execution":"optional" => t: execution: not an object
"execution":{"taskSupport":true} => t: execution: its `taskSupport` is not
"execution":{"taskSupport":"maybe"} => t: execution: its `taskSupport` is not
"annotations":[] => t: annotations: invalid type: sequence
"annotations":{"readOnlyHint":"yes"} => t: annotations: readOnlyHint: invalid type
"annotations":{"complexity":"\n"} => t: annotations: complexity: unknown variant
"annotations":{"title":1} => t: annotations: title: invalid type
"title":[] => t: title: invalid type: sequence
"description":{} => t: description: invalid type: map
"title":"a","title":"b" => t: duplicate field `title`
"name":"u" => u: duplicate field `name`
"x":1e400 => t: its definition has a number beyond 1.8e308
"x":[-DIGITS] => t: its definition has a number beyond 1.8e308"#;
    let of_members = of_members.replace("DIGITS", &digits);
    for (members, expected) in of_members.lines().filter_map(|row| row.split_once(" => ")) {
        let rest = match members.contains("inputSchema") {
            true => "",
            false => r#","inputSchema":{"type":"object"}"#,
        };
        let listed = format!(r#"{{"name":"t",{members}{rest}}}"#);
        let found = fault(&listed).unwrap_or_default();
        assert!(found.starts_with(expected), "{members}: {found}");
        // a definition alone names the tool and the member too
        let alone = ToolDefinition::from_json(listed).err();
        let expected = expected.trim_start_matches("t: ").trim_start_matches("u: ");
        let is_named = alone.is_some_and(|fault| fault.to_string().contains(expected));
        assert!(members.starts_with("\"x\"") || is_named, "{members}");
    }
    let whole = r#"
{"name":"t"} => t: it has no `inputSchema`
3 => #3: not an object
null => #3: not an object
["t"] => #3: not an object
{"inputSchema":{}} => #3: missing field `name`
{"name":7,"inputSchema":{}} => #3: name: invalid type: integer `7`
{"name":null,"inputSchema":{}} => #3: name: invalid type: null
{"name":"","inputSchema":{}} => #3: name: tool name "" is empty
{"name":"a\u001bb","inputSchema":{}} => #3: name: tool name "a b" holds a
{"name":7,"x":1e400} => #3: its definition has a number"#;
    for (listed, expected) in whole.lines().filter_map(|row| row.split_once(" => ")) {
        let found = fault(listed).unwrap_or_default();
        assert!(found.starts_with(expected), "{listed}: {found}");
    }
    let found = fault(&format!(r#"{{"name":"{long}","inputSchema":{{}}}}"#)).unwrap();
    let shown = format!("\"{}…\" has more than 256 characters", &long[..99]);
    let is_named = found.starts_with("#3: ");
    assert!(is_named && found.ends_with(&shown), "{found}");
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
        let schema = r#"{"\u0074ype":"\u006fbject","x":{"type":7}}"#;
        for schema in [r#"{"type":"object"}"#, schema, "{}"] {
            let listed = format!(r#"{{"name":"t","inputSchema":{schema}{members}}}"#);
            assert_eq!(fault(&listed), None, "{listed}");
        }
    }
}
