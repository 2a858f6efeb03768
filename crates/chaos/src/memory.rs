//! A server without sockets, on tokio's clock: on a paused one, millions of calls.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{
    BoxFuture, BoxStream, Delivery, ErrorKind, ServerEvent, ServerId, ToolCall, ToolDefinition,
    ToolError, ToolOutput, ToolServer,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use crate::events::Events;
use crate::ledger::identity;
use crate::pending::Pending;
use crate::{Chaos, Fault, Ledger, Refusal};

/// A server and the way to it, with faults at every point. It states the delivery of what fails as a
/// client does that has only its end of the connection.
///
/// What it has received it carries out, also when the caller has gone: no cancellation arrives in
/// time. Clones are the same server.
#[derive(Clone)]
pub struct ChaosServer(Arc<Inner>);

struct Inner {
    id: ServerId,
    tools: Vec<ToolDefinition>,
    chaos: Chaos,
    ledger: Ledger,
    nth: AtomicU64,
    down: AtomicBool,
    /// Which of its lives the server lives. Who waits for an answer waits for its end too.
    life: watch::Sender<u64>,
    pending: Pending,
    listeners: Mutex<Vec<mpsc::UnboundedSender<ServerEvent>>>,
}

impl ChaosServer {
    /// Starts a server with these tools. Must be called within a runtime whose clock it can use.
    #[must_use]
    pub fn new(id: ServerId, tools: Vec<ToolDefinition>, chaos: Chaos, ledger: Ledger) -> Self {
        Self(Arc::new(Inner {
            id,
            tools,
            chaos,
            ledger,
            nth: AtomicU64::new(0),
            down: AtomicBool::new(false),
            life: watch::Sender::new(0),
            pending: Pending::new(),
            listeners: Mutex::new(Vec::new()),
        }))
    }

    /// Waits until all has happened that was received, also what lands late.
    pub async fn settled(&self) {
        self.0.pending.settled().await;
    }
}

impl Inner {
    async fn exchange(self: Arc<Self>, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let nth = self.nth.fetch_add(1, Ordering::Relaxed);
        // a call without an identity is like no other
        let call = identity(call.arguments()).unwrap_or(ANONYMOUS | nth);
        let tried = self.ledger.try_send(call);
        if self.down.load(Ordering::Relaxed) {
            return Err(refused());
        }
        let fault = self.chaos.meets(nth, call, tried);
        if fault == Some(Fault::Refuse) {
            return Err(refused());
        }
        self.ledger.see(call);
        let pause = self.chaos.pause(call, tried);
        match fault {
            None => self.work(call, pause, pause, Ok(done(call))).await,
            Some(Fault::Slow { by }) => self.work(call, by, by, Ok(done(call))).await,
            Some(Fault::Drip { within }) => self.work(call, pause, within, Ok(done(call))).await,
            Some(Fault::LandLate { after, .. }) => {
                self.later(after, move |server| server.ledger.execute(call));
                Err(lost("the connection was lost"))
            }
            Some(fault) => {
                if fault.runs() {
                    self.ledger.execute(call);
                }
                self.end(fault).await
            }
        }
    }

    /// Ends an exchange whose call was executed, or never will be.
    async fn end(self: Arc<Self>, fault: Fault) -> Result<ToolOutput, ToolError> {
        match fault {
            Fault::Answer { refusal, .. } => Err(answered(refusal)),
            Fault::Report { .. } => Ok(ToolOutput::error_text("the tool failed")),
            Fault::Hang { .. } => {
                // only the server's death ends it
                let mut life = self.life.subscribe();
                let _ = life.changed().await;
                Err(died())
            }
            Fault::Crash { down, .. } => {
                self.crash(down);
                Err(lost("the server died of this call"))
            }
            Fault::LoseRequest { .. } => Err(lost("the connection was lost within the request")),
            _ => Err(lost("the connection was lost within the answer")),
        }
    }

    /// Carries out a call and answers it, whether or not the caller waits for it; only the server's
    /// death prevents what has not happened by then.
    async fn work(
        self: Arc<Self>,
        call: u64,
        before: Duration,
        after: Duration,
        answer: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let mut life = self.life.subscribe();
        if before.is_zero() {
            self.ledger.execute(call);
        } else {
            let (tell, told) = oneshot::channel();
            let born = *life.borrow();
            self.later(before, move |server| {
                if *server.life.borrow() == born {
                    server.ledger.execute(call);
                    // nobody may be waiting any more
                    let _ = tell.send(());
                }
            });
            tokio::select! {
                biased;
                _ = life.changed() => return Err(died()),
                executed = told => executed.map_err(|_| died())?,
            }
        }
        if after.is_zero() {
            return answer;
        }
        tokio::select! {
            biased;
            _ = life.changed() => Err(died()),
            () = sleep(after) => answer,
        }
    }

    /// Does something after a while, on nobody's behalf.
    fn later(self: &Arc<Self>, after: Duration, act: impl FnOnce(&Self) + Send + 'static) {
        let server = self.clone();
        self.pending.later(after, move || act(&server));
    }

    /// Dies, and comes back.
    fn crash(self: &Arc<Self>, down: Duration) {
        if self.down.swap(true, Ordering::Relaxed) {
            return;
        }
        self.life.send_modify(|life| *life += 1);
        self.tell(&ServerEvent::Down("the server died".to_owned()));
        self.later(down, |server| {
            server.down.store(false, Ordering::Relaxed);
            server.tell(&ServerEvent::Up);
        });
    }

    fn tell(&self, event: &ServerEvent) {
        self.listeners
            .lock()
            .retain(|listener| listener.send(event.clone()).is_ok());
    }
}

impl ToolServer for ChaosServer {
    fn id(&self) -> &ServerId {
        &self.0.id
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        let listed = if self.0.down.load(Ordering::Relaxed) {
            Err(refused().with_server(self.0.id.clone()))
        } else {
            Ok(self.0.tools.clone())
        };
        Box::pin(std::future::ready(listed))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let server = self.0.clone();
        Box::pin(async move {
            let id = server.id.clone();
            let answer = server.exchange(call).await;
            answer.map_err(|error| error.with_server(id))
        })
    }

    fn events(&self) -> Option<BoxStream<'static, ServerEvent>> {
        let (sender, events) = Events::channel();
        if !self.0.down.load(Ordering::Relaxed) {
            // whoever listens from now on has to hear it too; the other end is in our hands
            let _ = sender.send(ServerEvent::Up);
        }
        self.0.listeners.lock().push(sender);
        Some(Box::pin(events))
    }
}

impl fmt::Debug for ChaosServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChaosServer")
            .field("id", &self.0.id)
            .field("chaos", &self.0.chaos)
            .finish_non_exhaustive()
    }
}

fn done(call: u64) -> ToolOutput {
    ToolOutput::text(format!("did {call}"))
}

fn refused() -> ToolError {
    let text = "no connection could be made";
    ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, text)
}

fn lost(text: &'static str) -> ToolError {
    ToolError::new(ErrorKind::ConnectionLost, Delivery::Unknown, text)
}

fn died() -> ToolError {
    lost("the server died before it answered")
}

fn answered(refusal: Refusal) -> ToolError {
    let text = "the server answered with an error";
    let error = ToolError::new(refusal.kind(), Delivery::Answered, text).with_code(refusal.code);
    match refusal.retry_after {
        Some(wait) => error.with_retry_after(wait),
        None => error,
    }
}

/// The identities of calls that have none.
const ANONYMOUS: u64 = 1 << 63;
