//! An MCP server on a real socket, exact to the byte.
//!
//! Connections are reused, as a client's pool expects, so one may also break while idle. A refused
//! connection and a break within a request are drawn before the call is known.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_chaos::{Break, Chaos, Engine, Fault, Ledger};
use callward_core::ToolDefinition;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::exchange::{self, JSON, Message, Reply, Then};
use super::protocol::{Asked, Call, Era, Protocol};

/// A listening server, at `/mcp` and any other path, until it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    engine: Engine,
    _running: JoinSet<()>,
}

struct Shared {
    protocol: Protocol,
    engine: Engine,
    /// The number of crashes; each ends all sessions.
    life: AtomicU64,
    /// Receives how long the server is down after a crash.
    crash: mpsc::UnboundedSender<Duration>,
}

impl HttpServer {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub async fn start(
        era: Era,
        tools: &[ToolDefinition],
        chaos: Chaos,
        ledger: Ledger,
    ) -> io::Result<Self> {
        let (listener, address) = exchange::listen().await?;
        let (crash, crashes) = mpsc::unbounded_channel();
        let engine = Engine::new(chaos, ledger);
        let shared = Arc::new(Shared {
            protocol: Protocol::new(era, tools),
            engine: engine.clone(),
            life: AtomicU64::new(0),
            crash,
        });
        let mut running = JoinSet::new();
        running.spawn(live(listener, address, shared, crashes));
        Ok(Self {
            address,
            engine,
            _running: running,
        })
    }

    /// Returns the URL.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Waits until every received call has been executed, including late ones.
    pub async fn settled(&self) {
        self.engine.settled().await;
    }
}

/// Serves, crashes, and serves again on the same port.
async fn live(
    first: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    mut crashes: mpsc::UnboundedReceiver<Duration>,
) {
    let mut listener = Some(first);
    loop {
        let Some(listening) = listener.take() else {
            // another process may have the port for a moment
            sleep(Duration::from_millis(5)).await;
            listener = TcpListener::bind(address).await.ok();
            continue;
        };
        let serve = |stream| connection(stream, shared.clone());
        let Some(down) = exchange::serve(listening, crashes.recv(), serve).await else {
            return;
        };
        // further crashes of this life are the same one
        while crashes.try_recv().is_ok() {}
        shared.life.fetch_add(1, Ordering::Relaxed);
        sleep(down).await;
    }
}

/// Serves one connection until either side ends it.
async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let mut stream = BufReader::new(stream);
    let mut is_fresh = true;
    loop {
        match shared.engine.before(0) {
            Some(Fault::Refuse) if is_fresh => return exchange::end(&stream, Break::Reset),
            Some(Fault::LoseRequest { read, broken }) => {
                exchange::discard(&mut stream, read).await;
                return exchange::end(&stream, broken);
            }
            _ => {}
        }
        is_fresh = false;
        let Ok(Some(request)) = exchange::read(&mut stream).await else {
            return;
        };
        if !shared.answer(&request).await.write(&mut stream).await {
            return;
        }
    }
}

impl Shared {
    async fn answer(&self, request: &Message) -> Reply {
        match request.method() {
            "POST" => {}
            "DELETE" => return Reply::http(200, "", ""),
            _ => return Reply::http(405, "", ""),
        }
        let asked = self.protocol.read(&request.body);
        let session = format!("life-{}", self.life.load(Ordering::Relaxed));
        let greets = matches!(&asked, Asked::Question { method, .. } if method == "initialize");
        if self.protocol.era == Era::Legacy && !greets {
            match &request.session {
                None => return Reply::http(400, "", "no session"),
                Some(id) if *id != session => return Reply::http(404, "", "no such session"),
                Some(_) => {}
            }
        }
        match asked {
            Asked::Call(call) => self.call(&call).await,
            other => other.reply(&session),
        }
    }

    async fn call(&self, call: &Call) -> Reply {
        let _running = self.engine.begin();
        let mut turn = self.engine.turn(Some(call.identity));
        self.engine.see(call.identity);
        let silence = |broken| Reply::bytes("").then(Then::End(broken));
        if let Some(Fault::LandLate { after, broken }) = turn.fault {
            self.engine.execute_later(call.identity, after);
            return silence(broken);
        }
        if self.protocol.era == Era::Legacy
            && let Some(Fault::Answer { refusal, runs }) = &mut turn.fault
        {
            // in a session 404 means that the session is unknown, so the call cannot have run
            *runs &= refusal.code != 404;
        }
        self.engine.run(&turn).await;
        match turn.fault {
            Some(Fault::LoseRequest { broken, .. }) => silence(broken),
            Some(Fault::Refuse) => silence(Break::Reset),
            Some(Fault::Hang { .. }) => silence(Break::Close).then(Then::Hold),
            Some(Fault::Crash { down, .. }) => {
                // the receiver lives as long as the server
                let _ = self.crash.send(down);
                std::future::pending().await
            }
            Some(Fault::LoseReply { sent, broken }) => {
                let reply = Reply::http(200, JSON, &call.done());
                let most = reply.len().saturating_sub(1);
                reply.cut(sent.min(most)).then(Then::End(broken))
            }
            Some(Fault::Drip { within }) => Reply::http(200, JSON, &call.done()).slowly(within),
            Some(Fault::Answer { refusal, .. }) if refusal.code > 0 => {
                let wait = refusal.retry_after.map_or_else(String::new, |wait| {
                    format!("retry-after: {}\r\n", wait.as_secs())
                });
                Reply::http(u16::try_from(refusal.code).unwrap_or(500), &wait, "")
            }
            fault => match call.answer(fault) {
                Some(answer) => Reply::http(200, JSON, &answer),
                None => silence(Break::Close),
            },
        }
    }
}
