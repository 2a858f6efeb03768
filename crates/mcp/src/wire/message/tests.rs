//! Messages, read and written.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<Message, InvalidMessage> {
    Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn params_are_the_bytes_that_came() {
    let odd = r#"{ "z" : 1e2, "a":"\u0041" , "n": 12345678901234567890.00 }"#;
    let buffer = Bytes::from(format!(
        r#" {{"params":{odd}, "id":"x\u0041","method":"tools/call","jsonrpc":"2.0","y":0}} "#
    ));
    let Message::Request { id, method, params } = Message::parse(&buffer).unwrap() else {
        panic!("a request");
    };
    let params = params.unwrap();
    let read = (&*id.to_raw(), &*method, &params[..]);
    assert_eq!(read, (r#""x\u0041""#, "tools/call", odd.as_bytes()));
    let is_slice = buffer.as_ptr_range().contains(&params.as_ptr());
    assert!(is_slice, "a slice of the buffer, not a copy");
}

#[test]
fn what_is_no_message_is_refused_with_the_right_code_and_id() {
    // code, id, text
    let rows = r#"
        -32700 - |
        -32700 - | {
        -32700 - | nonsense
        -32600 - | 7
        -32600 - | {}
        -32600 - | [{"jsonrpc":"2.0","id":1,"method":"ping"}]
        -32600 4 | {"id":4,"method":"ping"}
        -32600 5 | {"jsonrpc":"2.0","id":5,"method":7}
        -32600 6 | {"jsonrpc":"2.0","id":6,"method":"x","params":[1]}
        -32600 7 | {"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1}}
        -32600 8 | {"jsonrpc":"2.0","id":8,"error":"no"}"#;
    for row in rows.lines().skip(1) {
        let (expected, text) = row.split_once('|').unwrap();
        let error = parse(text).expect_err(text);
        let id = error.id().map_or_else(|| "-".into(), RequestId::to_raw);
        let found = format!("{} {id}", error.to_rpc_error().code);
        assert_eq!(found, expected.trim(), "{text}");
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

fn message() -> impl Strategy<Value = Message> {
    let ids = prop_oneof![
        any::<u64>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    let ids = ids.prop_map(|id| RequestId::from_raw(&id.to_string()).unwrap());
    let json = || json(any::<String>()).prop_map(|json| json.to_string());
    let params = prop::option::of((any::<String>(), json()).prop_map(|(name, value)| {
        let name = serde_json::Value::from(name);
        Bytes::from(format!("{{{name}:{value}}}"))
    }));
    let known = (0..4, any::<bool>(), any::<i64>(), any::<String>());
    (known, ids, params, json()).prop_map(|((kind, some, code, text), id, params, json)| {
        let (method, error) = (text.clone(), RpcError::new(code, text));
        match kind {
            0 => Message::Request { id, method, params },
            1 => Message::Notification { method, params },
            2 => Message::Response {
                id: Some(id),
                outcome: Ok(json.into()),
            },
            _ => Message::Response {
                id: some.then_some(id),
                // an absent and a null `data` say the same and are read as the same
                outcome: Err(match json == "null" {
                    true => error,
                    false => error.with_data(json),
                }),
            },
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(message in message()) {
        let bytes = Bytes::from(message.to_bytes());
        prop_assert_eq!(Message::parse(&bytes).unwrap(), message);
    }
}
