//! As much of HTTP/1.1 as the gateway and its servers say to each other.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The longest body: what is longer is not a message of ours.
const LONGEST: usize = 1 << 20;

/// One request or answer.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The first line of its head.
    pub(crate) first: String,
    pub(crate) session: Option<String>,
    /// The tool's name, repeated in the modern era.
    pub(crate) name: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// Reads one request or answer; nothing if the connection ends before it.
pub(crate) async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Heard>> {
    let mut first = String::new();
    if stream.read_line(&mut first).await? == 0 {
        return Ok(None);
    }
    let (mut length, mut session, mut tool) = (0, None, None);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                length = value
                    .trim()
                    .parse()
                    .map_err(|_| io::ErrorKind::InvalidData)?;
            }
            "transfer-encoding" => {
                let error =
                    format!("{first:?} comes in chunks, and only bodies with a length are read");
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            "mcp-name" => tool = Some(value.trim().to_owned()),
            "mcp-session-id" => session = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Heard {
        first,
        session,
        name: tool,
        body,
    }))
}

/// Writes a head, of which the length is left out, and a body.
pub(crate) async fn write(
    stream: &mut BufReader<TcpStream>,
    head: &str,
    body: &str,
) -> io::Result<()> {
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
