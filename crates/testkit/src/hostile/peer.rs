//! An MCP server on a real socket that answers calls with arbitrary bytes.
//!
//! [`Peer::plays`] sets the reply to each call. All other requests get correct answers.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use callward_chaos::{Chaos, Engine, Ledger};
use callward_core::ToolDefinition;
use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

pub use super::exchange::{Reply, Then};

use super::exchange;
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
    while let Ok(Some(request)) = exchange::read(&mut stream).await {
        let reply = match (request.method(), shared.protocol.read(&request.body)) {
            ("POST", Asked::Call(call)) => shared.call(&call),
            ("POST", other) => other.reply("peer"),
            ("DELETE", _) => Reply::http(200, "", ""),
            _ => Reply::http(405, "", ""),
        };
        if !reply.write(&mut stream).await {
            return;
        }
    }
}

impl Shared {
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
