//! Writes messages from raw parts.
//!
//! Raw parts are copied as they are and must be valid JSON; nothing is checked again. The line
//! break that ends a message on a pipe is the sender's business, see [`flatten`](super::flatten).

use super::{RequestId, RpcError};

const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\"";

/// Writes a request.
pub(crate) fn request(id: &RequestId, method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut out = head(method.len() + params.map_or(0, <[u8]>::len));
    member(&mut out, "id", id.to_raw().as_bytes());
    call(&mut out, method, params);
    out
}

/// Writes a notification.
pub(crate) fn notification(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut out = head(method.len() + params.map_or(0, <[u8]>::len));
    call(&mut out, method, params);
    out
}

/// Writes the answer to a request.
pub(crate) fn result(id: &RequestId, result: &[u8]) -> Vec<u8> {
    let mut out = head(result.len());
    member(&mut out, "id", id.to_raw().as_bytes());
    member(&mut out, "result", result);
    out.push(b'}');
    out
}

/// Writes the refusal of a request; `None` where its id could not be read.
pub(crate) fn error(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    let mut out = head(error.message.len() + error.data.as_ref().map_or(0, bytes::Bytes::len));
    match id {
        Some(id) => member(&mut out, "id", id.to_raw().as_bytes()),
        None => out.extend_from_slice(b",\"id\":null"),
    }
    out.extend_from_slice(b",\"error\":");
    error.write(&mut out);
    out.push(b'}');
    out
}

/// Appends a JSON string.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    // a text can always be written, and a vector takes all
    let _ = serde_json::to_writer(out, text);
}

/// Appends a member `"name":value` to an object being written, with the comma where one is needed.
///
/// `out` must end inside an object: after its `{` or after a member.
pub(crate) fn member(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    members(out, b"");
    named(out, name, value);
}

/// Appends members as they are written.
pub(crate) fn members(out: &mut Vec<u8>, written: &[u8]) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.extend_from_slice(written);
}

pub(super) fn named(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    string(out, name);
    out.push(b':');
    out.extend_from_slice(value);
}

fn head(payload: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD.len() + payload + 64);
    out.extend_from_slice(HEAD);
    out
}

fn call(out: &mut Vec<u8>, method: &str, params: Option<&[u8]>) {
    out.extend_from_slice(b",\"method\":");
    string(out, method);
    if let Some(params) = params {
        member(out, "params", params);
    }
    out.push(b'}');
}
