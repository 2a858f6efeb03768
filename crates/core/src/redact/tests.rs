use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::{ToolError, fingerprint};

fn redact(raw: &str) -> String {
    Redactor::default().redact(raw.as_bytes())
}

#[test]
fn a_value_under_a_listed_name_is_left_out_however_the_name_is_spelt() {
    let names = r"password,PASSWORD,passWord,user-password,X-Api-Key,apiKeyId,access_token,p\u0061ssword,Client Secret,Set-Cookie";
    for name in names.split(',') {
        for value in ["\"hunter2\"", "1234", "{\"a\":[\"hunter2\"]}", "null"] {
            let shown = redact(&format!("{{\"id\":7,\"{name}\":{value},\"b\":true}}"));
            let shown: Map<String, Value> = serde_json::from_str(&shown).unwrap();
            let hidden = shown.values().filter(|value| **value == "[redacted]");
            assert_eq!((shown.len(), hidden.count()), (3, 1), "{name}: {value}");
        }
    }
    // `pass` and `pwd` only as words of their own
    let names = "pass,Pass,PWD,pwd,db_pass,DB_PWD,smtp.pass,user-pwd,dbPass,DBPass,dbPWD,passOld,\
                 pwd2,pass_hash,Db Pass,x[pass]";
    for name in names.split(',') {
        let text = format!("connect {name}=hunter2");
        let shown = redact(&json!([{name: "hunter2"}, text]).to_string());
        let hidden = json!([{name: "[redacted]"}, "[redacted]"]);
        assert_eq!(shown, hidden.to_string());
    }
    let names = "compass,passenger,bypass,COMPASS,Passenger,passes,oldpwd,OLDPWD,passing,\
                 pass the salt";
    for name in names.split(',') {
        let open = json!({name: "north", "text": format!("{name}: north")}).to_string();
        assert_eq!(redact(&open), open);
    }
}

#[test]
fn what_is_shown_is_json_without_its_secrets() {
    let rows = r#"
{"id":1e400,"n":-0.0,"list":[1,"two",{"three":null}],"author":"ada","text":"a: b"} => SAME
{"text":"GET https://air.example/pass?seat=7"} => SAME
{"text":"a token bucket for the whole set: ten","time":"12:30","sum":"a=b"} => SAME
[{"name":"Authorization","value":"abc"},{"name":"Accept","value":"x"}] => [{"name":"Authorization","value":"[redacted]"},{"name":"Accept","value":"x"}]
"https://x.example/?page=2&token=hunter2" => "[redacted]"
"Authorization: hunter2" => "[redacted]"
"curl -H 'bearer hunter2'" => "[redacted]"
"first\nAPI_KEY=hunter2\nlast" => "[redacted]"
"{\"password\": \"hunter2\"" => "[redacted]"
"password = hunter2" => "[redacted]"
"the API key is: hunter2" => "[redacted]"
[{"text":"{\"user\": \"ada\", \"password\": \"hunter2\"}"}] => [{"text":"{\"user\":\"ada\",\"password\":\"[redacted]\"}"}]
hunter2 => "[not JSON]"
{"a": => "[not JSON]"
{} {} => "[not JSON]"
{'a': 1} => "[not JSON]""#;
    for (raw, shown) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let shown = if shown == "SAME" { raw } else { shown };
        assert_eq!(redact(raw), shown);
    }
    assert_eq!(Redactor::default().redact(b"\"\xff\""), NOT_JSON);
    let twice = json!(json!({"password": "hunter2"}).to_string()).to_string();
    assert!(!redact(&json!({"text": twice}).to_string()).contains("hunter2"));
    let shown = Redactor::new(["", "_"], 64).redact(b"{\"a\":1}");
    assert_eq!(shown, r#"{"a":1}"#);
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let redactor = Redactor::new(["pin"], 0);
    assert_eq!(redactor.max_bytes, Redactor::LEAST_MAX_BYTES);
    let long = format!("{{\"a\":\"{}\",\"b\":1}}", "ü".repeat(100));
    let shown = redactor.redact(long.as_bytes());
    let read: Value = serde_json::from_str(&shown).unwrap();
    assert!(shown.len() <= 64 && read["a"].as_str().unwrap().ends_with("ü[cut]"));
    assert_eq!(read["[cut]"], true);
    let many = format!("[{}1]", "1,".repeat(100));
    let shown = redactor.redact(many.as_bytes());
    let is_cut = shown.ends_with("1,\"[cut]\"]");
    assert!(is_cut && shown.len() <= 64, "{shown}");
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let shown = redact(&deep);
    assert!(shown.contains("[cut]"));
    assert!(serde_json::from_str::<Value>(&shown).is_ok());
}

#[test]
fn the_name_of_a_tool_hides_no_message() {
    let error = ToolError::unknown_tool("shop__get_secret", "3 tools are known");
    let shown = json!(error.message).to_string();
    assert_eq!(redact(&shown), shown);
}

const SECRET: &str = "hunter2";

/// Any JSON, with the secret under listed names only: as a value, in an object under one, and in
/// texts that are JSON.
fn any_json() -> impl Strategy<Value = Value> {
    let names: Vec<_> = Redactor::DEFAULT_NAMES.split(' ').collect();
    let name = prop_oneof![
        3 => "[a-z\"\\\\é:= ]{0,8}".prop_map(|name| (name, false)),
        2 => (prop::sample::select(names), "[_ -]?", any::<bool>()).prop_map(
            |(name, mark, loud)| {
                // these two are words of their own only
                let mark = match name {
                    "pass" | "pwd" if mark.is_empty() => "_".to_owned(),
                    _ => mark,
                };
                let name = format!("x{mark}{name}{mark}");
                (if loud { name.to_uppercase() } else { name }, true)
            }
        ),
    ];
    fingerprint::tests::any_json().prop_recursive(4, 40, 6, move |inner| {
        let hidden = prop_oneof![
            Just(json!(SECRET)),
            Just(json!([{ "a": SECRET }])),
            Just(json!(format!("{{\"a\":\"{SECRET}\"}}"))),
        ];
        let member = (name.clone(), inner.clone(), hidden)
            .prop_map(|((name, secret), open, hidden)| (name, if secret { hidden } else { open }));
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(member, 0..6)
                .prop_map(|all| Value::Object(all.into_iter().collect())),
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

proptest! {
    #[test]
    fn no_listed_secret_shows_and_what_shows_is_short_and_valid(
        value in any_json(), max in 0_usize..2000,
    ) {
        let redactor = Redactor::new(Redactor::DEFAULT_NAMES.split(' '), max);
        let shown = redactor.redact(value.to_string().as_bytes());
        prop_assert!(!shown.contains(SECRET), "{shown}");
        prop_assert!(serde_json::from_str::<Value>(&shown).is_ok(), "{shown}");
        prop_assert!(shown.len() <= redactor.max_bytes, "{} of {shown}", shown.len());
    }

    #[test]
    fn any_bytes_become_json(raw in any::<Vec<u8>>()) {
        let shown = Redactor::default().redact(&raw);
        prop_assert!(serde_json::from_str::<&RawValue>(&shown).is_ok(), "{shown}");
    }
}
