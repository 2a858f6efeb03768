//! HTTP/1.1 as bytes: requests, replies and connections.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use callward_chaos::Break;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

pub(super) const JSON: &str = "content-type: application/json\r\n";

pub(super) type Stream = BufReader<TcpStream>;

/// A complete request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) session: Option<String>,
    pub(super) body: Vec<u8>,
}

/// The reply to a request, as raw bytes.
#[derive(Debug, Clone)]
#[must_use]
pub struct Reply {
    pub(super) runs: bool,
    first: Vec<u8>,
    again: Vec<u8>,
    times: u64,
    slowly: Option<Duration>,
    then: Then,
}

/// What happens to the connection after the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other cases")]
pub enum Then {
    /// It waits for the next request.
    Keep,
    /// It is silent until the client closes it.
    Hold,
    /// It ends.
    End(Break),
}

impl Reply {
    /// Writes these bytes and closes the connection. The call is executed before.
    pub fn bytes(first: impl Into<Vec<u8>>) -> Self {
        Self {
            runs: true,
            first: first.into(),
            again: Vec::new(),
            times: 0,
            slowly: None,
            then: Then::End(Break::Close),
        }
    }

    /// Writes a response with these header lines, each ended by CRLF, and this body.
    pub fn http(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n{headers}\r\n");
        Self::bytes(head + body).then(Then::Keep)
    }

    /// Sets whether the call is executed before anything is written.
    pub fn runs(mut self, runs: bool) -> Self {
        self.runs = runs;
        self
    }

    /// Repeats these bytes after the first ones, until the client stops reading.
    pub fn and_again(mut self, bytes: impl Into<Vec<u8>>, times: u64) -> Self {
        self.again = bytes.into();
        self.times = times;
        self
    }

    /// Sets what happens to the connection.
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    /// Truncates the first bytes.
    pub fn cut(mut self, length: usize) -> Self {
        self.first.truncate(length);
        self
    }

    /// Writes the first bytes one by one, within this time.
    pub(super) fn slowly(mut self, within: Duration) -> Self {
        self.slowly = Some(within);
        self
    }

    /// Returns the number of first bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns `true` if there are no first bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Writes the reply. Returns `true` if the connection continues.
    pub(super) async fn write(self, stream: &mut Stream) -> bool {
        let then = match self.write_all(stream).await {
            Ok(()) => self.then,
            Err(_) => Then::End(Break::Close),
        };
        match then {
            Then::Keep => true,
            Then::Hold => {
                let mut rest = [0; 256];
                while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                false
            }
            Then::End(broken) => {
                end(stream, broken);
                false
            }
        }
    }

    async fn write_all(&self, stream: &mut Stream) -> io::Result<()> {
        match self.slowly {
            None => stream.write_all(&self.first).await?,
            Some(within) => slowly(stream, &self.first, within).await?,
        }
        for _ in 0..self.times {
            stream.write_all(&self.again).await?;
        }
        Ok(())
    }
}

/// Writes bytes one by one, within a time.
pub(super) async fn slowly(
    writer: &mut (impl tokio::io::AsyncWrite + Unpin),
    bytes: &[u8],
    within: Duration,
) -> io::Result<()> {
    let pause = within / u32::try_from(bytes.len()).unwrap_or(u32::MAX).max(1);
    for byte in bytes {
        sleep(pause).await;
        writer.write_all(&[*byte]).await?;
        writer.flush().await?;
    }
    Ok(())
}

/// Reads a request; `None` if the client closes the connection before it is complete.
pub(super) async fn read(stream: &mut Stream) -> Option<Request> {
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

/// Reads up to `bytes` bytes.
pub(super) async fn discard(stream: &mut Stream, bytes: usize) {
    let mut read = vec![0; bytes];
    // an earlier end is fine
    let _ = stream.read_exact(&mut read).await;
}

/// Sets how a connection ends when it is dropped.
pub(super) fn end(stream: &Stream, broken: Break) {
    if broken == Break::Reset {
        // without a reset it is closed, which breaks the exchange too
        let _ = stream.get_ref().set_zero_linger();
    }
}

/// Listens on a free port of loopback.
pub(super) async fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
