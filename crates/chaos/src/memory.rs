//! A server without sockets, on tokio's clock. On a paused clock it takes millions of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{
    BoxFuture, BoxStream, Delivery, ErrorKind, ServerEvent, ServerId, ToolCall, ToolDefinition,
    ToolError, ToolOutput, ToolServer,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use crate::ledger::identity;
use crate::{Chaos, Engine, Fault, Ledger, Refusal};

/// A server and the connection to it, with faults at every point. Errors state the delivery that a
/// client would know at its end of the connection.
///
/// A received call is executed even if the caller cancels it. Clones are the same server.
#[derive(Debug, Clone)]
pub struct ChaosServer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: ServerId,
    tools: Vec<ToolDefinition>,
    engine: Engine,
    down: AtomicBool,
    /// The number of crashes. A waiting caller also waits for the next one.
    life: watch::Sender<u64>,
    listeners: Mutex<Vec<mpsc::UnboundedSender<ServerEvent>>>,
}

impl ChaosServer {
    /// Starts a server with these tools. Must be called within a runtime.
    #[must_use]
    pub fn new(id: ServerId, tools: Vec<ToolDefinition>, chaos: Chaos, ledger: Ledger) -> Self {
        Self(Arc::new(Inner {
            id,
            tools,
            engine: Engine::new(chaos, ledger),
            down: AtomicBool::new(false),
            life: watch::Sender::new(0),
            listeners: Mutex::new(Vec::new()),
        }))
    }

    /// Waits until every received call has been executed, including late ones.
    pub async fn settled(&self) {
        self.0.engine.settled().await;
    }
}

impl Inner {
    async fn exchange(self: Arc<Self>, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let turn = self.engine.turn(identity(call.arguments()));
        if self.down.load(Ordering::Relaxed) || turn.fault == Some(Fault::Refuse) {
            return Err(refused());
        }
        self.engine.see(turn.call);
        let after = match turn.fault {
            None | Some(Fault::Slow { .. }) => turn.pause,
            Some(Fault::Drip { within }) => within,
            Some(Fault::LandLate { after, .. }) => {
                self.engine.execute_later(turn.call, after);
                return Err(lost("the connection was lost"));
            }
            Some(fault) => {
                if fault.runs() {
                    self.engine.execute(turn.call);
                }
                return self.end(fault).await;
            }
        };
        self.work(turn.call, turn.pause, after).await
    }

    /// Ends an exchange whose call was executed, or never will be.
    async fn end(self: Arc<Self>, fault: Fault) -> Result<ToolOutput, ToolError> {
        match fault {
            Fault::Answer { refusal, .. } => Err(answered(refusal)),
            Fault::Report { .. } => Ok(ToolOutput::error_text("the tool failed")),
            Fault::Hang { .. } => {
                // only a crash ends it
                let mut life = self.life.subscribe();
                let _ = life.changed().await;
                Err(died())
            }
            Fault::Crash { down, .. } => {
                self.crash(down);
                Err(lost("the server crashed at this call"))
            }
            Fault::LoseRequest { .. } => Err(lost("the connection was lost within the request")),
            _ => Err(lost("the connection was lost within the answer")),
        }
    }

    /// Executes a call and answers it, even if the caller is gone. Only a crash prevents it.
    async fn work(
        self: Arc<Self>,
        call: u64,
        before: Duration,
        after: Duration,
    ) -> Result<ToolOutput, ToolError> {
        let mut life = self.life.subscribe();
        if before.is_zero() {
            self.engine.execute(call);
        } else {
            let (sender, executed) = oneshot::channel();
            let (born, server) = (*life.borrow(), self.clone());
            self.engine.later(before, move || {
                if *server.life.borrow() == born {
                    server.engine.execute(call);
                    // the caller may be gone
                    let _ = sender.send(());
                }
            });
            tokio::select! {
                biased;
                _ = life.changed() => return Err(died()),
                executed = executed => executed.map_err(|_| died())?,
            }
        }
        let answer = Ok(ToolOutput::text(format!("did {call}")));
        if after.is_zero() {
            return answer;
        }
        tokio::select! {
            biased;
            _ = life.changed() => Err(died()),
            () = sleep(after) => answer,
        }
    }

    /// Crashes, and restarts later.
    fn crash(self: &Arc<Self>, down: Duration) {
        if self.down.swap(true, Ordering::Relaxed) {
            return;
        }
        self.life.send_modify(|life| *life += 1);
        self.emit(&ServerEvent::Down("the server crashed".to_owned()));
        let server = self.clone();
        self.engine.later(down, move || {
            server.down.store(false, Ordering::Relaxed);
            server.emit(&ServerEvent::Up);
        });
    }

    fn emit(&self, event: &ServerEvent) {
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
        let (sender, mut events) = mpsc::unbounded_channel();
        if !self.0.down.load(Ordering::Relaxed) {
            // a new listener learns the current state; the receiver is still here
            let _ = sender.send(ServerEvent::Up);
        }
        self.0.listeners.lock().push(sender);
        Some(Box::pin(futures_util::stream::poll_fn(move |cx| {
            events.poll_recv(cx)
        })))
    }
}

fn refused() -> ToolError {
    let text = "no connection could be made";
    ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, text)
}

fn lost(text: &'static str) -> ToolError {
    ToolError::new(ErrorKind::ConnectionLost, Delivery::Unknown, text)
}

fn died() -> ToolError {
    lost("the server crashed before it answered")
}

fn answered(refusal: Refusal) -> ToolError {
    let text = "the server answered with an error";
    let error = ToolError::new(refusal.kind(), Delivery::Answered, text);
    let mut error = error.with_code(refusal.code);
    error.retry_after = refusal.retry_after;
    error
}
