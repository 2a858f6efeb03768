//! Valid and invalid lines.

use std::io::Cursor;

use super::*;

fn read(text: impl AsRef<[u8]>) -> Vec<String> {
    Calls::from_reader("f", Cursor::new(text.as_ref().to_vec()))
        .unwrap()
        .map(|call| match call {
            Ok(call) => call.tool.to_string(),
            Err(error) => error.to_string(),
        })
        .collect()
}

#[test]
fn blank_lines_and_unknown_members_are_skipped() {
    let text = "\u{feff}{\"tool\":\"a\"}\r\n\n  \n{\"tool\":\"b\",\"new\":[1]}";
    assert_eq!(read(text), ["a", "b"]);
    assert_eq!(read(""), [""; 0]);
}

#[test]
fn an_invalid_line_is_an_error_and_reading_continues() {
    let text =
        b"{\"tool\":\"a\"}\n[1]\n{\"tool\":\"b\",\"seq\":\"x\"}\n{\"x\":1}\n{\"tool\":\"\"}\n\
        {\"tool\":\"b\",\"result_sha1\":\"12\"}\n{\"tool\":\"b\",\"at_ms\":-1}\n{\"tool\":\"b\",\n\
        {\"tool\":\"b\",\"tool\":\"c\"}\n{\"tool\":\"b\",\"write\":true,\"effect\":\"read_only\"}\n\
        {\"tool\":\"\xff\"}\n{\"tool\":\"c\"}";
    let found = read(text);
    let want = [
        ("a", ""),
        ("f:2: not a JSON object", ""),
        ("f:3: ", "\"x\", expected u64 at column"),
        ("f:4: ", "missing field `tool`"),
        ("f:5: ", "is empty"),
        ("f:6: ", "expected 40 hexadecimal digits"),
        ("f:7: ", "is negative"),
        ("f:8: ", "column"),
        ("f:9: ", "duplicate field `tool`"),
        ("f:10: `write` is true", "`effect` is \"read_only\""),
        ("f:11: ", "column"),
        ("c", ""),
    ];
    assert_eq!(found.len(), want.len(), "{found:#?}");
    for (found, (start, part)) in found.iter().zip(want) {
        assert!(found.starts_with(start) && found.contains(part), "{found}");
    }
}

#[test]
fn a_session_is_a_string_or_a_number() {
    let session = |value: &str| {
        let line = format!("{{\"tool\":\"a\",\"session\":{value},\"trace\":{value}}}");
        RecordedCall::from_line(line.as_bytes()).map(|call| {
            assert_eq!(call.session, call.trace);
            call.session
        })
    };
    for (value, want) in [
        ("\"s\"", "s"),
        ("7", "7"),
        ("-7", "-7"),
        ("1.5", "1.5"),
        ("null", ""),
    ] {
        assert_eq!(session(value).unwrap(), want);
    }
    for value in ["[7]", "{}", "true"] {
        let error = session(value).unwrap_err().to_string();
        assert!(error.contains("expected a string or a number"), "{error}");
    }
}

#[test]
fn null_is_the_same_as_an_absent_member() {
    let line = br#"{"tool":"a","trace":null,"session":null,"seq":null,"args":null,
        "result_sha1":null,"result_bytes":null,"error":null,"write":null,"layer":null,
        "at_ms":null,"duration_ms":null,"effect":null,"idempotent":null,"ttl_ms":null,
        "delivery":null,"cache":null,"set":null,"principal":null}"#;
    let call = RecordedCall::from_line(line).unwrap();
    let bare = RecordedCall::from_line(b"{\"tool\":\"a\"}").unwrap();
    assert_eq!(format!("{call:?}"), format!("{bare:?}"));
    assert_eq!(call.arguments(), "{}");
}
