//! An MCP server on a real socket that answers a call with any bytes at all.
//!
//! Where [`http`](crate::http) breaks the exchange of a good server, this one has no good answer of its
//! own: each call is answered with what [`plays`](Peer::plays) says. Everything that is no call is
//! answered as the protocol wants it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use callward_core::ToolDefinition;
use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::exchange;
use crate::protocol::{Asked, Call, Era, Protocol};
use crate::{Break, Ledger};

/// What a call is answered: raw bytes, the head included.
#[derive(Debug, Clone)]
#[must_use]
pub struct Reply {
    runs: bool,
    first: Vec<u8>,
    again: Vec<u8>,
    times: u64,
    then: Then,
}

/// What becomes of the connection when all is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "there is nothing else to do with it"
)]
pub enum Then {
    /// It waits for the next request.
    Keep,
    /// It is silent until the other side ends it.
    Hold,
    /// It ends.
    End(Break),
}

impl Reply {
    /// Writes these bytes and then ends the connection. The call runs before.
    pub fn bytes(first: impl Into<Vec<u8>>) -> Self {
        Self {
            runs: true,
            first: first.into(),
            again: Vec::new(),
            times: 0,
            then: Then::End(Break::Close),
        }
    }

    /// Writes a head with these lines, each ended by CRLF, and a body of its length.
    pub fn http(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n{headers}\r\n");
        Self::bytes(head + body).then(Then::Keep)
    }

    /// Sets whether the call runs before anything is written.
    pub fn runs(mut self, runs: bool) -> Self {
        self.runs = runs;
        self
    }

    /// Writes these bytes so many times after the first ones, or until the other side stops reading.
    pub fn and_again(mut self, bytes: impl Into<Vec<u8>>, times: u64) -> Self {
        self.again = bytes.into();
        self.times = times;
        self
    }

    /// Sets what becomes of the connection.
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    /// Leaves out all but so many of the first bytes.
    pub fn cut(mut self, length: usize) -> Self {
        self.first.truncate(length);
        self
    }

    /// Returns how many first bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Says whether nothing is written at first.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}

type Plays = dyn Fn(&str) -> Reply + Send + Sync;

/// A listening server, at any path. Dropped, it is gone.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    shared: Arc<Shared>,
    running: AbortHandle,
}

struct Shared {
    protocol: Protocol,
    ledger: Ledger,
    plays: Mutex<Arc<Plays>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Peer {
    /// Listens on a free port of loopback. Until it is told something else, it ends the connection of
    /// each call.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub async fn start(era: Era, tools: &[ToolDefinition], ledger: Ledger) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            protocol: Protocol::new(era, tools),
            ledger,
            plays: Mutex::new(Arc::new(|_: &str| Reply::bytes(""))),
        });
        let running = tokio::spawn(serve(listener, shared.clone())).abort_handle();
        Ok(Self {
            address,
            shared,
            running,
        })
    }

    /// Returns the URL to call.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Sets what calls are answered from now on, made from the id of the request as JSON.
    pub fn plays(&self, plays: impl Fn(&str) -> Reply + Send + Sync + 'static) {
        *self.shared.plays.lock() = Arc::new(plays);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    open.spawn(connection(stream, shared.clone()));
                }
            }
            Some(_) = open.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = exchange::read(&mut stream).await {
        let reply = match (&*request.method, shared.protocol.read(&request.body)) {
            ("POST", Asked::Call(call)) => shared.call(&call),
            ("POST", Asked::Question { method, answer }) => {
                let answer = String::from_utf8_lossy(&answer);
                let session = match method.as_str() {
                    "initialize" => "mcp-session-id: peer\r\n",
                    _ => "",
                };
                Reply::http(200, &format!("{JSON}{session}"), &answer)
            }
            ("POST", Asked::Statement) => Reply::http(202, "", ""),
            ("DELETE", _) => Reply::http(200, "", ""),
            _ => Reply::http(405, "", ""),
        };
        match write(&mut stream, &reply).await {
            Then::Keep => {}
            Then::Hold => return exchange::closed(&mut stream).await,
            Then::End(broken) => return exchange::end(&stream, broken),
        }
    }
}

impl Shared {
    fn call(&self, call: &Call) -> Reply {
        self.ledger.see(call.identity);
        let plays = self.plays.lock().clone();
        let reply = plays(call.id());
        if reply.runs {
            self.ledger.execute(call.identity);
        }
        reply
    }
}

async fn write(stream: &mut BufReader<TcpStream>, reply: &Reply) -> Then {
    if stream.write_all(&reply.first).await.is_err() {
        return Then::End(Break::Close);
    }
    for _ in 0..reply.times {
        if stream.write_all(&reply.again).await.is_err() {
            return Then::End(Break::Close);
        }
    }
    reply.then
}

const JSON: &str = "content-type: application/json\r\n";
