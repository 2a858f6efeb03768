//! The names clients give their calls.

use serde_json::Value;

use crate::http::{META, Server, ask, call};

const NAME: &str = "io.callward/idempotencyKey";

/// Calls a tool that says under which key it was called; in `_meta` and in the header as given.
async fn called(server: &Server, modern: bool, meta: Option<&str>, header: Option<&str>) -> Value {
    let meta = meta.map_or_else(String::new, |raw| format!(r#""{NAME}":{raw}"#));
    let members = if modern {
        let comma = if meta.is_empty() { "" } else { "," };
        META.replace(r#""_meta":{"#, &format!(r#""_meta":{{{meta}{comma}"#))
    } else {
        format!(r#""_meta":{{{meta}}}"#)
    };
    let mut request = match modern {
        true => server.modern_as("tools/call", r#""name":"key""#, &members),
        false => server.post(call("1", "key", &format!(",{members}"))),
    };
    if let Some(header) = header {
        request = request.header("idempotency-key", header);
    }
    ask(request).await
}

#[tokio::test]
async fn a_call_has_the_name_its_client_gives_it() {
    let server = Server::start().await;
    for modern in [false, true] {
        for (meta, header, expected) in [
            (None, None, "None"),
            (Some(r#""order-1""#), None, r"Some(IdempotencyKey(order-1))"),
            (None, Some("order-1"), r"Some(IdempotencyKey(order-1))"),
            (None, Some(r#""order-1""#), r"Some(IdempotencyKey(order-1))"),
            (
                Some(r#""order\u002d1""#),
                Some("order-1"),
                r"Some(IdempotencyKey(order-1))",
            ),
        ] {
            let answer = called(&server, modern, meta, header).await;
            let text = &answer["result"]["content"][0]["text"];
            assert_eq!(text, expected, "{meta:?} {header:?}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_name_that_is_none_is_refused() {
    let server = Server::start().await;
    let long = format!(r#""{}""#, "x".repeat(65));
    for modern in [false, true] {
        for (meta, header, word) in [
            (Some("7"), None, "string"),
            (Some(r#""""#), None, "empty"),
            (Some(r#""a b""#), None, "visible ASCII"),
            (Some(&long[..]), None, "65 bytes"),
            (None, Some(""), "empty"),
            (None, Some("a b"), "visible ASCII"),
            (Some(r#""a""#), Some("b"), "the body says"),
        ] {
            let answer = called(&server, modern, meta, header).await;
            let error = &answer["error"];
            assert_eq!(error["code"], -32602, "{meta:?} {header:?}: {answer}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(word), "{message}");
        }
    }
}
