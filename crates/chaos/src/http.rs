//! An MCP server on a real socket, down to the byte.
//!
//! Connections are kept and used again, as a client's pool expects, so that one may also break while
//! nobody uses it. No connection, and a break within a request, are drawn before it is known which
//! call it is; all else is drawn for the call.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::ToolDefinition;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::exchange::{self, Ending, Request};
use crate::pending::Pending;
use crate::protocol::{Asked, Call, Era, Protocol};
use crate::{Break, Chaos, Fault, Ledger};

/// A listening server, at `/mcp` and any other path. Dropped, it is gone.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    pending: Pending,
    running: AbortHandle,
}

/// What the connections share.
struct Shared {
    protocol: Protocol,
    chaos: Chaos,
    ledger: Ledger,
    pending: Pending,
    nth: AtomicU64,
    exchanges: AtomicU64,
    /// Which of its lives the server lives; its sessions end with each.
    life: AtomicU64,
    /// Where a connection says that the server dies, and for how long.
    die: mpsc::UnboundedSender<Duration>,
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
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (die, deaths) = mpsc::unbounded_channel();
        let pending = Pending::new();
        let shared = Arc::new(Shared {
            protocol: Protocol::new(era, tools),
            chaos,
            ledger,
            pending: pending.clone(),
            nth: AtomicU64::new(0),
            exchanges: AtomicU64::new(0),
            life: AtomicU64::new(0),
            die,
        });
        let running = tokio::spawn(live(listener, address, shared, deaths)).abort_handle();
        Ok(Self {
            address,
            pending,
            running,
        })
    }

    /// Returns the URL to call.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Waits until all has happened that was received, also what lands late.
    pub async fn settled(&self) {
        self.pending.settled().await;
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Lives, dies, and lives again on the same port.
async fn live(
    first: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    mut deaths: mpsc::UnboundedReceiver<Duration>,
) {
    let mut listener = Some(first);
    loop {
        let Some(listening) = listener.take() else {
            // somebody else may have the port for a moment
            sleep(Duration::from_millis(5)).await;
            listener = TcpListener::bind(address).await.ok();
            continue;
        };
        let mut open = JoinSet::new();
        let down = loop {
            tokio::select! {
                accepted = listening.accept() => {
                    if let Ok((stream, _)) = accepted {
                        open.spawn(connection(stream, shared.clone()));
                    }
                }
                Some(_) = open.join_next() => {}
                Some(down) = deaths.recv() => break down,
            }
        };
        drop(listening);
        open.shutdown().await;
        // all that wanted the death of this life have had it
        while deaths.try_recv().is_ok() {}
        shared.life.fetch_add(1, Ordering::Relaxed);
        sleep(down).await;
    }
}

/// Serves one connection until either side ends it.
async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let mut stream = BufReader::new(stream);
    let mut fresh = true;
    loop {
        let nth = shared.exchanges.fetch_add(1, Ordering::Relaxed);
        match shared.chaos.before(nth) {
            Some(Fault::Refuse) if fresh => return exchange::end(&stream, Break::Reset),
            Some(Fault::LoseRequest { read, broken }) => {
                exchange::discard(&mut stream, read).await;
                return exchange::end(&stream, broken);
            }
            _ => {}
        }
        fresh = false;
        let Some(request) = exchange::read(&mut stream).await else {
            return;
        };
        match shared.answer(&mut stream, &request).await {
            Ending::Keep => {}
            Ending::Break(broken) => return exchange::end(&stream, broken),
        }
    }
}

impl Shared {
    async fn answer(&self, stream: &mut BufReader<TcpStream>, request: &Request) -> Ending {
        if request.method != "POST" {
            let status = if request.method == "DELETE" { 200 } else { 405 };
            return exchange::write(stream, status, "", b"").await;
        }
        let asked = self.protocol.read(&request.body);
        let session = format!("life-{}", self.life.load(Ordering::Relaxed));
        let greets = matches!(&asked, Asked::Question { method, .. } if method == "initialize");
        if self.protocol.era == Era::Legacy && !greets {
            match &request.session {
                None => return exchange::write(stream, 400, "", b"no session").await,
                Some(id) if *id != session => {
                    return exchange::write(stream, 404, "", b"no such session").await;
                }
                Some(_) => {}
            }
        }
        match asked {
            Asked::Call(call) => self.call(stream, &call).await,
            Asked::Question { answer, .. } => {
                let mut headers = JSON.to_owned();
                if greets {
                    headers.push_str(&format!("mcp-session-id: {session}\r\n"));
                }
                exchange::write(stream, 200, &headers, &answer).await
            }
            Asked::Statement => exchange::write(stream, 202, "", b"").await,
        }
    }

    /// In a session 404 says that the server does not know it, so that it cannot have run the call.
    fn forgets_session(&self, fault: Fault) -> bool {
        self.protocol.era == Era::Legacy
            && matches!(fault, Fault::Answer { refusal, .. } if refusal.code == 404)
    }

    async fn call(&self, stream: &mut BufReader<TcpStream>, call: &Call) -> Ending {
        let _running = self.pending.begin();
        let identity = call.identity;
        let tried = self.ledger.try_send(identity);
        self.ledger.see(identity);
        let nth = self.nth.fetch_add(1, Ordering::Relaxed);
        let fault = self.chaos.meets(nth, identity, tried);
        let pause = match fault {
            None => self.chaos.pause(identity, tried),
            Some(Fault::Slow { by }) => by,
            Some(_) => Duration::ZERO,
        };
        sleep(pause).await;
        match fault {
            Some(Fault::LandLate { after, broken }) => {
                let ledger = self.ledger.clone();
                self.pending.later(after, move || ledger.execute(identity));
                return Ending::Break(broken);
            }
            Some(fault) if !fault.runs() || self.forgets_session(fault) => {}
            _ => self.ledger.execute(identity),
        }
        sleep(pause).await;
        match fault {
            Some(Fault::LoseRequest { broken, .. }) => Ending::Break(broken),
            Some(Fault::Refuse) => Ending::Break(Break::Reset),
            Some(Fault::Hang { .. }) => {
                exchange::closed(stream).await;
                Ending::Break(Break::Close)
            }
            Some(Fault::Crash { down, .. }) => {
                // the other end lives as long as the server
                let _ = self.die.send(down);
                std::future::pending().await
            }
            Some(Fault::LoseReply { sent, broken }) => {
                exchange::write_part(stream, JSON, &call.done(), sent).await;
                Ending::Break(broken)
            }
            Some(Fault::Drip { within }) => {
                exchange::write_slowly(stream, JSON, &call.done(), within).await
            }
            Some(Fault::Answer { refusal, .. }) if refusal.code > 0 => {
                let wait = refusal.retry_after.map_or_else(String::new, |wait| {
                    format!("retry-after: {}\r\n", wait.as_secs())
                });
                let status = u16::try_from(refusal.code).unwrap_or(500);
                exchange::write(stream, status, &wait, b"").await
            }
            fault => match call.answer(fault) {
                Some(answer) => exchange::write(stream, 200, JSON, &answer).await,
                None => Ending::Break(Break::Close),
            },
        }
    }
}

const JSON: &str = "content-type: application/json\r\n";
