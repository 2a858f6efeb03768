//! An MCP server on a pipe, exact to the byte: a child process, or any pair of streams.
//!
//! A pipe is one connection, so whatever breaks it ends the server, and the client restarts it. A
//! late call is executed while the server lives, and never answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use callward_chaos::{Chaos, Engine, Fault, Ledger};
use callward_core::ToolDefinition;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::exchange;
use super::protocol::{Asked, Call, Era, Protocol};

/// How a server on a pipe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed the pipe.
    Closed,
    /// A fault ended it. A process should exit with a failure.
    Died,
}

/// A server on one pipe.
#[derive(Debug)]
pub struct PipeServer {
    protocol: Protocol,
    engine: Engine,
    /// Separates the draws of restarted servers.
    life: u64,
}

/// What a call writes into the pipe.
struct Sent {
    text: String,
    /// Byte by byte, within this time.
    within: Option<Duration>,
    /// The server ends with it.
    is_last: bool,
}

impl PipeServer {
    /// Creates a server. `life` differs for each restart.
    pub fn new(
        era: Era,
        tools: &[ToolDefinition],
        chaos: Chaos,
        ledger: Ledger,
        life: u64,
    ) -> Self {
        Self {
            protocol: Protocol::new(era, tools),
            engine: Engine::new(chaos, ledger),
            life,
        }
    }

    /// Serves until either side ends it.
    ///
    /// # Errors
    ///
    /// If reading fails; a pipe that cannot be written to is closed.
    pub async fn serve(
        self,
        reader: impl AsyncRead + Unpin + Send,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<Ended> {
        let (sender, sent) = mpsc::unbounded_channel();
        let mut running = JoinSet::new();
        let server = Arc::new(self);
        tokio::select! {
            read = server.read(BufReader::new(reader), &sender, &mut running) => read,
            ended = write(writer, sent) => Ok(ended),
        }
        // the set aborts the running calls
    }

    async fn read(
        self: &Arc<Self>,
        mut reader: BufReader<impl AsyncRead + Unpin>,
        sender: &mpsc::UnboundedSender<Sent>,
        running: &mut JoinSet<()>,
    ) -> io::Result<Ended> {
        let mut line = Vec::new();
        loop {
            if let Some(Fault::LoseRequest { read, .. }) = self.engine.before(self.life) {
                let mut part = vec![0; read];
                reader.read_exact(&mut part).await?;
                return Ok(Ended::Died);
            }
            line.clear();
            if reader.read_until(b'\n', &mut line).await? == 0 {
                return Ok(Ended::Closed);
            }
            match self.protocol.read(&line) {
                Asked::Statement => {}
                // a closed pipe shows at the next read
                Asked::Question { answer, .. } => {
                    let _ = sender.send(Sent {
                        text: answer + "\n",
                        within: None,
                        is_last: false,
                    });
                }
                Asked::Call(call) => {
                    let (server, sender) = (self.clone(), sender.clone());
                    running.spawn(async move {
                        if let Some(sent) = server.call(&call).await {
                            let _ = sender.send(sent);
                        }
                    });
                }
            }
        }
    }

    async fn call(&self, call: &Call) -> Option<Sent> {
        let turn = self.engine.turn(Some(call.identity));
        self.engine.see(call.identity);
        if let Some(Fault::LandLate { after, .. }) = turn.fault {
            sleep(after).await;
        }
        self.engine.run(&turn).await;
        let (text, is_last) = match (turn.fault, call.answer(turn.fault)) {
            (Some(Fault::LoseReply { sent, .. }), Some(mut answer)) => {
                answer.truncate(sent.min(answer.len().saturating_sub(1)));
                (answer, true)
            }
            (_, Some(answer)) => (answer + "\n", false),
            (Some(Fault::Hang { .. } | Fault::LandLate { .. }), None) => return None,
            (_, None) => (String::new(), true),
        };
        let within = match turn.fault {
            Some(Fault::Drip { within }) => Some(within),
            _ => None,
        };
        Some(Sent {
            text,
            within,
            is_last,
        })
    }
}

/// Writes what the calls send.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut sent: mpsc::UnboundedReceiver<Sent>,
) -> Ended {
    while let Some(next) = sent.recv().await {
        let written = exchange::send(&mut writer, next.text.as_bytes(), next.within).await;
        if next.is_last {
            return Ended::Died;
        }
        if written.is_err() {
            break;
        }
    }
    Ended::Closed
}
