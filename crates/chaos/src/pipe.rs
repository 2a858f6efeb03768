//! An MCP server at the other end of a pipe, down to the byte: as a child process, or over any pair of
//! streams.
//!
//! A pipe has one connection, so whatever breaks it is the death of the server: whoever started it
//! starts it again. What would land late lands while the server lives, and is never answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::ToolDefinition;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::protocol::{Asked, Call, Era, Protocol};
use crate::{Chaos, Fault, Ledger};

/// How a server at a pipe ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "either side ends it")]
pub enum Ended {
    /// The client closed the pipe.
    Closed,
    /// A fault was its death. A process should end now, and not in good order.
    Died,
}

/// A server of one pipe.
#[derive(Debug)]
pub struct PipeServer {
    protocol: Protocol,
    chaos: Chaos,
    ledger: Ledger,
    nth: AtomicU64,
    /// Which of its lives it lives: requests of each draw their own breaks.
    life: u64,
}

/// What a call has for the pipe.
enum Sent {
    /// A line, without its end.
    Line(Vec<u8>),
    /// A line, byte by byte.
    Slowly(Vec<u8>, Duration),
    /// So much of a line, and then death.
    Last(Vec<u8>),
}

impl PipeServer {
    /// Makes a server. `life` counts how often it was started, however the caller knows.
    #[must_use]
    pub fn new(
        era: Era,
        tools: &[ToolDefinition],
        chaos: Chaos,
        ledger: Ledger,
        life: u64,
    ) -> Self {
        Self {
            protocol: Protocol::new(era, tools),
            chaos,
            ledger,
            nth: AtomicU64::new(0),
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
        // what runs dies with the set
    }

    async fn read(
        self: &Arc<Self>,
        mut reader: BufReader<impl AsyncRead + Unpin>,
        sender: &mpsc::UnboundedSender<Sent>,
        running: &mut JoinSet<()>,
    ) -> io::Result<Ended> {
        let mut line = Vec::new();
        let mut nth = self.life << 32;
        loop {
            nth += 1;
            if let Some(Fault::LoseRequest { read, .. }) = self.chaos.before(nth) {
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
                // where the pipe is closed, its end is read next
                Asked::Question { answer, .. } => {
                    let _ = sender.send(Sent::Line(answer));
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
        let identity = call.identity;
        let tried = self.ledger.try_send(identity);
        self.ledger.see(identity);
        let nth = self.nth.fetch_add(1, Ordering::Relaxed);
        let fault = self.chaos.meets(nth, identity, tried);
        let (before, after) = match fault {
            None => {
                let pause = self.chaos.pause(identity, tried);
                (pause, pause)
            }
            Some(Fault::Slow { by }) => (by, by),
            Some(Fault::LandLate { after, .. }) => (after, Duration::ZERO),
            Some(_) => (Duration::ZERO, Duration::ZERO),
        };
        sleep(before).await;
        if fault.is_none_or(|fault| fault.runs()) {
            self.ledger.execute(identity);
        }
        sleep(after).await;
        let answer = call.answer(fault);
        match (fault, answer) {
            (Some(Fault::LoseReply { sent, .. }), Some(mut answer)) => {
                answer.truncate(sent.min(answer.len().saturating_sub(1)));
                Some(Sent::Last(answer))
            }
            (Some(Fault::Drip { within }), Some(answer)) => Some(Sent::Slowly(answer, within)),
            (_, Some(answer)) => Some(Sent::Line(answer)),
            (Some(Fault::Hang { .. } | Fault::LandLate { .. }), None) => None,
            (_, None) => Some(Sent::Last(Vec::new())),
        }
    }
}

/// Writes what is sent, one after the other.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut sent: mpsc::UnboundedReceiver<Sent>,
) -> Ended {
    while let Some(next) = sent.recv().await {
        let written = match next {
            Sent::Line(line) => whole(&mut writer, line).await,
            Sent::Slowly(line, within) => slowly(&mut writer, line, within).await,
            Sent::Last(part) => {
                // dead either way
                let _ = writer.write_all(&part).await;
                let _ = writer.flush().await;
                return Ended::Died;
            }
        };
        if written.is_err() {
            return Ended::Closed;
        }
    }
    Ended::Closed
}

async fn whole(writer: &mut (impl AsyncWrite + Unpin), mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    writer.write_all(&line).await?;
    writer.flush().await
}

async fn slowly(
    writer: &mut (impl AsyncWrite + Unpin),
    mut line: Vec<u8>,
    within: Duration,
) -> io::Result<()> {
    line.push(b'\n');
    let pause = within / u32::try_from(line.len()).unwrap_or(u32::MAX).max(1);
    for byte in line {
        sleep(pause).await;
        writer.write_all(&[byte]).await?;
        writer.flush().await?;
    }
    Ok(())
}
