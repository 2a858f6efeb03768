//! As much of HTTP/1.1 as the gateway and its servers say to each other.

use std::io;

pub(crate) use callward_testkit::hostile::{Message, Stream, read};
use serde_json::Value;
use tokio::io::AsyncWriteExt;

/// Writes a head, of which the length is left out, and a body.
pub(crate) async fn write(stream: &mut Stream, head: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let message = format!("{head}content-length: {length}\r\n\r\n{body}");
    stream.write_all(message.as_bytes()).await
}

/// Returns the headers that repeat what a request of the modern era says.
pub(crate) fn mirrored(method: &str, params: &Value) -> String {
    let mut head = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n");
    if let Some(name) = params["name"].as_str() {
        head += &format!("mcp-name: {name}\r\n");
    }
    head
}
