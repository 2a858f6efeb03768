//! Messages, read and written.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<Message, InvalidMessage> {
    Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn params_and_results_are_the_bytes_that_came() {
    let odd = r#"{ "z" : 1e2, "a":"\u0041" , "n": 12345678901234567890.00 }"#;
    let buffer = Bytes::from(format!(
        r#" {{"params":{odd}, "id":"x\u0041","method":"tools/call","jsonrpc":"2.0","y":0}} "#
    ));
    let Message::Request { id, method, params } = Message::parse(&buffer).unwrap() else {
        panic!("a request");
    };
    assert_eq!(id.to_raw(), r#""x\u0041""#);
    assert_eq!(method, "tools/call");
    let params = params.unwrap();
    assert_eq!(&params[..], odd.as_bytes());
    assert!(
        buffer.as_ptr_range().contains(&params.as_ptr()),
        "a slice of the buffer, not a copy"
    );
    let answer = parse(&format!(r#"{{"jsonrpc":"2.0","id":-1.50,"result":{odd}}}"#)).unwrap();
    let Message::Response {
        id: Some(id),
        outcome: Ok(result),
    } = answer
    else {
        panic!("an answer");
    };
    assert_eq!(id.to_raw(), "-1.50");
    assert_eq!(&result[..], odd.as_bytes());
}

#[test]
fn null_is_a_result_but_no_id() {
    assert!(matches!(
        parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
        Ok(Message::Response { outcome: Ok(result), .. }) if &result[..] == b"null"
    ));
    assert!(parse(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#).is_err());
    assert!(matches!(
        parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#),
        Ok(Message::Response { id: None, outcome: Err(error) }) if error.code == -32700
    ));
}

#[test]
fn what_is_no_message_is_refused_with_the_right_code_and_id() {
    const INVALID: i64 = code::INVALID_REQUEST;
    let cases = [
        ("", code::PARSE_ERROR, None),
        ("{", code::PARSE_ERROR, None),
        ("nonsense", code::PARSE_ERROR, None),
        ("7", INVALID, None),
        ("{}", INVALID, None),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            INVALID,
            None,
        ),
        (r#"{"id":4,"method":"ping"}"#, INVALID, Some(4)),
        (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, INVALID, Some(5)),
        (
            r#"{"jsonrpc":"2.0","id":6,"method":"x","params":[1]}"#,
            INVALID,
            Some(6),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1}}"#,
            INVALID,
            Some(7),
        ),
        (r#"{"jsonrpc":"2.0","id":8,"error":"no"}"#, INVALID, Some(8)),
    ];
    for (text, code, id) in cases {
        let error = parse(text).expect_err(text);
        assert_eq!(error.to_rpc_error().code, code, "{text}");
        assert_eq!(error.id().and_then(RequestId::as_u64), id, "{text}");
    }
    let batch = parse("[]").expect_err("a batch").to_string();
    assert!(batch.contains("batch"), "{batch}");
}

/// Any JSON, whose strings and names are such texts.
pub(in crate::wire) fn json(
    text: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        text.clone().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map(text.clone(), inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

fn id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<u64>().prop_map(RequestId::number),
        any::<i64>().prop_map(|n| RequestId::from_raw(&n.to_string()).unwrap()),
        any::<String>().prop_map(|text| {
            RequestId::from_raw(&serde_json::to_string(&text).unwrap()).unwrap()
        }),
    ]
}

fn object() -> impl Strategy<Value = Option<Bytes>> {
    prop::option::of(
        prop::collection::btree_map(any::<String>(), json(any::<String>()), 0..4).prop_map(|map| {
            Bytes::from(serde_json::Value::Object(map.into_iter().collect()).to_string())
        }),
    )
}

fn message() -> impl Strategy<Value = Message> {
    let error = (
        any::<i64>(),
        any::<String>(),
        prop::option::of(json(any::<String>())),
    )
        .prop_map(|(code, message, data)| {
            let error = RpcError::new(code, message);
            match data {
                // an absent and a null `data` say the same and are read as the same
                Some(data) if !data.is_null() => error.with_data(data.to_string()),
                _ => error,
            }
        });
    prop_oneof![
        (id(), any::<String>(), object()).prop_map(|(id, method, params)| Message::Request {
            id,
            method,
            params
        }),
        (any::<String>(), object())
            .prop_map(|(method, params)| Message::Notification { method, params }),
        (id(), json(any::<String>())).prop_map(|(id, result)| Message::Response {
            id: Some(id),
            outcome: Ok(result.to_string().into()),
        }),
        (prop::option::of(id()), error).prop_map(|(id, error)| Message::Response {
            id,
            outcome: Err(error),
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(message in message()) {
        let bytes = Bytes::from(message.to_bytes());
        prop_assert_eq!(Message::parse(&bytes).unwrap(), message);
    }

    #[test]
    fn a_damaged_message_never_panics(
        message in message(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = message.to_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = Message::parse(&Bytes::from(bytes));
    }
}
