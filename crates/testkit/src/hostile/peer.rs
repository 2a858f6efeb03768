//! An MCP server on a real socket that answers calls with arbitrary bytes.
//!
//! [`Peer::plays`] sets the reply to each call, and [`Peer::loses`] breaks the next request. All
//! other requests get correct answers.

use std::fmt;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use callward_chaos::{Break, Chaos, Engine, Ledger};
use callward_core::ToolDefinition;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub use super::exchange::{Reply, Then};

use super::exchange::{self, Message};
use super::protocol::{Asked, Call, Era, Protocol};

type Plays = dyn Fn(&str) -> Reply + Send + Sync;

/// A listening server, at any path, until it is dropped.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _running: JoinSet<()>,
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
        let mut running = JoinSet::new();
        let of_connections = shared.clone();
        running.spawn(exchange::serve(listener, pending(), move |stream| {
            connection(stream, of_connections.clone())
        }));
        Ok(Self {
            address,
            shared,
            _running: running,
        })
    }

    /// Returns the URL.
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
