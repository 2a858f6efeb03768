//! HTTP/1.1 as bytes: requests, replies and connections.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use callward_chaos::Break;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

pub(super) const JSON: &str = "content-type: application/json\r\n";

/// A buffered connection.
pub type Stream = BufReader<TcpStream>;

/// A complete request or response.
#[derive(Debug)]
pub struct Message {
    /// The first line of its head.
    pub first: String,
    /// The session.
    pub session: Option<String>,
    /// The name of the tool, which the modern era repeats.
    pub name: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Message {
    /// The method of a request.
    pub(super) fn method(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }
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
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns `true` if there are no first bytes.
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
        send(stream, &self.first, self.slowly).await?;
        for _ in 0..self.times {
            stream.write_all(&self.again).await?;
        }
        Ok(())
    }
}

/// Writes bytes: one by one, if it is to take a time.
pub(super) async fn send(
    writer: &mut (impl tokio::io::AsyncWrite + Unpin),
    bytes: &[u8],
    within: Option<Duration>,
) -> io::Result<()> {
    let Some(within) = within else {
        writer.write_all(bytes).await?;
        return writer.flush().await;
    };
    let pause = within / u32::try_from(bytes.len()).unwrap_or(u32::MAX).max(1);
    for byte in bytes {
        sleep(pause).await;
        writer.write_all(&[*byte]).await?;
        writer.flush().await?;
    }
    Ok(())
}

/// The longest body.
const MAX_BODY: usize = 1 << 20;

/// Reads a request or a response; `None` if the connection ends before it.
///
/// # Errors
///
/// If the connection fails or ends within the message, or its body is chunked or longer than 1 MiB.
pub async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Message>> {
    let mut first = String::new();
    if stream.read_line(&mut first).await? == 0 {
        return Ok(None);
    }
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let (mut session, mut tool, mut length) = (None, None, 0);
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match (name.to_ascii_lowercase().as_str(), value.trim()) {
            ("content-length", value) => length = value.parse().map_err(|_| invalid(value))?,
            ("transfer-encoding", _) => return Err(invalid("a chunked body")),
            ("mcp-session-id", value) => session = Some(value.to_owned()),
            ("mcp-name", value) => tool = Some(value.to_owned()),
            _ => {}
        }
    }
    if length > MAX_BODY {
        return Err(invalid("a body over 1 MiB"));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Message {
        first,
        session,
        name: tool,
        body,
    }))
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

/// Serves each connection in a task of its own until a future completes. Then all end, and so does
/// the listener.
pub(super) async fn serve<T, F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    until: impl Future<Output = T>,
    connection: impl Fn(TcpStream) -> F,
) -> T {
    let mut open = JoinSet::new();
    let mut until = pin!(until);
    let ended = loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    open.spawn(connection(stream));
                }
            }
            Some(_) = open.join_next() => {}
            ended = &mut until => break ended,
        }
    };
    drop(listener);
    open.shutdown().await;
    ended
}
