//! Messages to a server besides calls, for both transports.

use callward_core::List;
use serde_json::{Value, json};

use super::ask::Ask;
use super::handshake;
use super::watched::Uris;
use crate::wire::{Era, RequestId, RpcError, code, write};

/// Answers a request of the server: we declare no capability, so only `ping` has an answer.
pub(super) fn reply(id: &RequestId, method: &str) -> Vec<u8> {
    if method == "ping" {
        return write::result(id, b"{}");
    }
    let error = RpcError::new(
        code::METHOD_NOT_FOUND,
        format!("this client does not offer {method}"),
    );
    write::error(Some(id), &error)
}

/// The cheapest request of an era.
pub(super) fn sign_of_life(era: Era) -> Ask<'static> {
    match era {
        Era::Legacy => Ask::new("ping", "{}"),
        Era::Modern => handshake::discover(),
    }
}

/// Asks a modern server to announce changes of these lists.
pub(super) fn listen(lists: &[List]) -> Ask<'static> {
    let asked = lists
        .iter()
        .map(|list| (format!("{list}ListChanged"), true.into()));
    let asked = Value::Object(asked.collect());
    Ask::new(
        "subscriptions/listen",
        format!(r#"{{"notifications":{asked}}}"#),
    )
}

/// Asks a modern server to announce updates of these resources.
pub(super) fn listen_to(uris: &Uris) -> Ask<'static> {
    let uris: Vec<&str> = uris.iter().map(|uri| &**uri).collect();
    let params = json!({"notifications": {"resourceSubscriptions": uris}});
    Ask::new("subscriptions/listen", params.to_string())
}
