//! A gateway as a client's child, spoken to over a pipe; killed and started again now and then.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::channel::{Era, initialize, with_client};

/// The pipes to one gateway after another.
pub(crate) struct Pipes {
    era: Era,
    /// Those to the gateway that runs; `None` between two of them.
    now: Mutex<Option<Arc<Pipe>>>,
}

struct Pipe {
    stdin: tokio::sync::Mutex<ChildStdin>,
    /// `None` after the gateway has closed its output: nothing more is answered.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<Value>>>>,
    next: AtomicU64,
}

impl Pipes {
    pub(crate) fn new(era: Era) -> Self {
        Self {
            era,
            now: Mutex::default(),
        }
    }

    /// Takes the pipes of a gateway that was just started, and greets it.
    pub(crate) async fn open(&self, stdin: ChildStdin, stdout: ChildStdout) -> io::Result<()> {
        let pipe = Arc::new(Pipe {
            stdin: tokio::sync::Mutex::new(stdin),
            waiting: Mutex::new(Some(HashMap::new())),
            next: AtomicU64::new(1),
        });
        let reader = pipe.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let answer: Value = serde_json::from_str(&line).unwrap_or_default();
                let waiting = answer["id"]
                    .as_u64()
                    .and_then(|id| reader.waiting.lock().as_mut()?.remove(&id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(answer);
                }
            }
            *reader.waiting.lock() = None;
        });
        if self.era == Era::Legacy {
            pipe.request("initialize", initialize(), None).await?;
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            pipe.write(&initialized).await?;
        }
        *self.now.lock() = Some(pipe);
        Ok(())
    }

    /// Takes the pipes away: requests fail until others are opened.
    pub(crate) fn close(&self) {
        *self.now.lock() = None;
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Option<Value>> {
        let pipe = self.now.lock().clone();
        let pipe = pipe.ok_or(io::ErrorKind::NotConnected)?;
        let params = with_client(self.era, params);
        pipe.request(method, params, leaves).await
    }
}

impl Pipe {
    async fn request(
        &self,
        method: &str,
        params: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Option<Value>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answered, mut answer) = oneshot::channel();
        let waiting = self
            .waiting
            .lock()
            .as_mut()
            .map(|all| all.insert(id, answered));
        waiting.ok_or(io::ErrorKind::UnexpectedEof)?;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&request).await?;
        let heard = match leaves {
            None => answer.await,
            Some(after) => match timeout(after, &mut answer).await {
                Ok(heard) => heard,
                Err(_) => {
                    self.waiting.lock().as_mut().map(|all| all.remove(&id));
                    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": id}});
                    self.write(&cancelled).await?;
                    return Ok(None);
                }
            },
        };
        heard
            .map(Some)
            .map_err(|_| io::ErrorKind::UnexpectedEof.into())
    }

    async fn write(&self, message: &Value) -> io::Result<()> {
        let line = format!("{message}\n");
        self.stdin.lock().await.write_all(line.as_bytes()).await
    }
}
