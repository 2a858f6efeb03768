//! Requests and answers of HTTP/1.1, read and written as bytes.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::Break;

/// What is to become of the connection.
pub(crate) enum Ending {
    Keep,
    Break(Break),
}

/// A complete request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// Reads a request; nothing, if the other side ends the connection before it is complete.
pub(crate) async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let method = line.split_once(' ')?.0.to_owned();
    let (mut session, mut length) = (None, 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match (name.to_ascii_lowercase().as_str(), value.trim()) {
            ("content-length", value) => length = value.parse().ok()?,
            ("mcp-session-id", value) => session = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request {
        method,
        session,
        body,
    })
}

/// Reads so many bytes, or until there are no more.
pub(crate) async fn discard(stream: &mut BufReader<TcpStream>, bytes: usize) {
    let mut read = vec![0; bytes];
    // where it ends sooner, there is as little of a request
    let _ = stream.read_exact(&mut read).await;
}

/// Waits until the other side ends the connection.
pub(crate) async fn closed(stream: &mut BufReader<TcpStream>) {
    let mut rest = [0; 256];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

/// Says how a connection ends that is dropped next.
pub(crate) fn end(stream: &BufReader<TcpStream>, broken: Break) {
    if broken == Break::Reset {
        // what cannot be reset is closed, which breaks the exchange as well
        let _ = stream.get_ref().set_zero_linger();
    }
}

/// Writes an answer.
pub(crate) async fn write(
    stream: &mut BufReader<TcpStream>,
    status: u16,
    headers: &str,
    body: &[u8],
) -> Ending {
    match stream.write_all(&bytes(status, headers, body)).await {
        Ok(()) => Ending::Keep,
        Err(_) => Ending::Break(Break::Close),
    }
}

/// Writes so many bytes of an answer, never all of them.
pub(crate) async fn write_part(
    stream: &mut BufReader<TcpStream>,
    headers: &str,
    body: &[u8],
    length: usize,
) {
    let answer = bytes(200, headers, body);
    let part = answer.get(..length.min(answer.len().saturating_sub(1)));
    // the connection ends either way
    let _ = stream.write_all(part.unwrap_or_default()).await;
}

/// Writes an answer byte by byte.
pub(crate) async fn write_slowly(
    stream: &mut BufReader<TcpStream>,
    headers: &str,
    body: &[u8],
    within: Duration,
) -> Ending {
    let answer = bytes(200, headers, body);
    let pause = within / u32::try_from(answer.len()).unwrap_or(u32::MAX).max(1);
    for byte in answer {
        sleep(pause).await;
        if stream.write_all(&[byte]).await.is_err() {
            return Ending::Break(Break::Close);
        }
    }
    Ending::Keep
}

fn bytes(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut answer =
        format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n{headers}\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}
