//! An MCP server on a real socket that answers calls with arbitrary bytes.
//!
//! [`Peer::plays`] sets the reply to each call, and [`Peer::loses`] breaks the next request. All
//! other requests get correct answers.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use callward_chaos::{Break, Chaos, Engine, Ledger};
use callward_core::ToolDefinition;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

pub use super::exchange::{Reply, Then};

use super::exchange::{self, Message};
use super::protocol::{Asked, Call, Era, Protocol};

type Plays = dyn Fn(&str) -> Reply + Send + Sync;

/// A listening server, at any path, until it is dropped.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    shared: Arc<Shared>,
    running: AbortHandle,
}

struct Shared {
    protocol: Protocol,
    engine: Engine,
    plays: Mutex<Arc<Plays>>,
    loses: Mutex<Option<(u64, Break)>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Peer {
    /// Listens on a free port of loopback. At first, a call ends its connection.
    ///
    /// # Errors
    ///
    /// If there is no port.
    pub async fn start(era: Era, tools: &[ToolDefinition], ledger: Ledger) -> io::Result<Self> {
        let (listener, address) = exchange::listen().await?;
        let shared = Arc::new(Shared {
            protocol: Protocol::new(era, tools),
            engine: Engine::new(Chaos::calm(), ledger),
            plays: Mutex::new(Arc::new(|_: &str| Reply::bytes(""))),
            loses: Mutex::new(None),
        });
        let running = tokio::spawn(serve(listener, shared.clone())).abort_handle();
        Ok(Self {
            address,
            shared,
            running,
        })
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Sets the reply to calls, made from the JSON id of the request.
    pub fn plays(&self, plays: impl Fn(&str) -> Reply + Send + Sync + 'static) {
        *self.shared.plays.lock() = Arc::new(plays);
    }

    /// Reads this many bytes of the next POST, or all there are, and ends its connection. A call
    /// that arrives whole is executed.
    pub fn loses(&self, bytes: u64, broken: Break) {
        *self.shared.loses.lock() = Some((bytes, broken));
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
    while let Ok([first, ..]) = stream.fill_buf().await {
        let lost = shared.loses.lock().take_if(|_| *first == b'P');
        let limit = lost.map_or(u64::MAX, |(bytes, _)| bytes);
        let request = exchange::read(&mut (&mut stream).take(limit)).await;
        let reply = match request {
            Ok(Some(request)) => shared.reply(&request),
            _ => Reply::bytes(""),
        };
        let reply = match lost {
            Some((_, broken)) => Reply::bytes("").then(Then::End(broken)),
            None => reply,
        };
        if !reply.write(&mut stream).await {
            return;
        }
    }
}

impl Shared {
    fn reply(&self, request: &Message) -> Reply {
        match (request.method(), self.protocol.read(&request.body)) {
            ("POST", Asked::Call(call)) => self.call(&call),
            ("POST", other) => other.reply("peer"),
            ("DELETE", _) => Reply::http(200, "", ""),
            _ => Reply::http(405, "", ""),
        }
    }

    fn call(&self, call: &Call) -> Reply {
        self.engine.see(call.identity);
        let plays = self.plays.lock().clone();
        let reply = plays(call.id());
        if reply.runs {
            self.engine.execute(call.identity);
        }
        reply
    }
}
