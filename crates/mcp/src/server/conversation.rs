//! The conversation with one client on a pipe: its calls, its subscriptions, and its messages.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{
    BoxFuture, BoxStream, Caller, ClientInfo, Delivery, ErrorKind, SessionId, ToolError,
};
use futures_util::StreamExt;
use http::StatusCode;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Backend;
use super::answer::Answer;
use super::arrival::Arrival;
use super::error::Fault;
use super::inflight::InFlight;
use super::request::{Request, cancelled_id, method};
use super::running::RunningCall;
use super::service::{Dispatcher, From, Step};
use super::subscription::{self, Subscription};
use crate::observed::SessionTimer;
use crate::wire::{Era, LineError, LineReader, Message, RequestId, RpcError, code};

/// How many calls one client may have running, as a bound on memory.
const MAX_CALLS: usize = 1_024;

/// How many subscriptions one client may have open.
const MAX_SUBSCRIPTIONS: usize = 64;

/// The conversation with one client.
pub(super) struct Conversation<B> {
    dispatcher: Arc<Dispatcher<B>>,
    caller: Arc<Caller>,
    /// Gone once nothing more may be said; the writer then ends.
    out: Option<mpsc::Sender<Answer>>,
    calls: Arc<InFlight>,
    tasks: JoinSet<()>,
    /// Notifications of changes, subscribed to with the first listener.
    changes: Option<BoxStream<'static, ()>>,
    legacy_listens: bool,
    /// The revision a legacy client agreed on.
    agreed: Option<&'static str>,
    /// How a legacy client introduced itself.
    client: Option<Arc<ClientInfo>>,
    /// Reports how long a legacy client's session lasted, if an observer is set.
    session: Option<SessionTimer>,
    subscriptions: Vec<Subscription>,
}

impl<B: Backend> Conversation<B> {
    pub(super) fn new(dispatcher: Dispatcher<B>, out: mpsc::Sender<Answer>) -> Self {
        Self {
            dispatcher: Arc::new(dispatcher),
            caller: Arc::new(local_session()),
            out: Some(out),
            calls: Arc::default(),
            tasks: JoinSet::new(),
            changes: None,
            legacy_listens: false,
            agreed: None,
            client: None,
            session: None,
            subscriptions: Vec::new(),
        }
    }

    /// Takes messages until the reader ends, then waits for the calls still running.
    pub(super) async fn run<R>(&mut self, lines: &mut LineReader<R>) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
    {
        let Some(out) = self.out.clone() else {
            return Ok(());
        };
        loop {
            tokio::select! {
                () = out.closed() => return Ok(()),
                Some(_) = self.tasks.join_next() => {}
                changed = next_change(&mut self.changes) => self.tell(changed, &out).await,
                line = lines.next() => match line {
                    Ok(Some(line)) => self.take(&line, &out).await,
                    Ok(None) => break,
                    Err(LineError::Io(error)) => return Err(error),
                    Err(LineError::TooLong { limit, skipped }) => {
                        // an answer of the client, whose id is that of another request
                        let id = skipped.id.filter(|_| skipped.has_method);
                        let code = match id {
                            Some(_) => code::INVALID_REQUEST,
                            None => code::PARSE_ERROR,
                        };
                        let text = format!("a message is longer than {limit} bytes");
                        let error = RpcError::new(code, text);
                        say(&out, Answer::error(id.as_ref(), &error)).await;
                    }
                }
            }
        }
        loop {
            tokio::select! {
                () = out.closed() => return Ok(()),
                joined = self.tasks.join_next() => if joined.is_none() {
                    return Ok(());
                }
            }
        }
    }

    /// Ends the conversation: calls are dropped, and subscriptions are notified if the queue has
    /// space.
    pub(super) async fn end(&mut self) {
        self.tasks.shutdown().await;
        self.dispatcher.session_ended(&self.caller);
        if let Some(out) = self.out.take() {
            for subscription in self.subscriptions.drain(..) {
                let _ = out.try_send(subscription.ended());
            }
        }
    }

    async fn take(&mut self, line: &Bytes, out: &mpsc::Sender<Answer>) {
        match Message::parse(line) {
            Ok(Message::Request { id, method, params }) => {
                let request = Request::new(id.clone(), method, params.as_ref());
                let begun = request.and_then(|request| self.begin(request, out));
                let refused = |fault: Fault| Some(Answer::error(Some(&id), &fault.error));
                if let Some(answer) = begun.unwrap_or_else(refused) {
                    say(out, answer).await;
                }
            }
            Ok(Message::Notification { method, params }) => {
                self.note(&method, params.as_ref());
            }
            // the server sends no requests, so this answers none
            Ok(Message::Response { .. }) => {}
            Err(invalid) => {
                say(out, Answer::error(invalid.id(), &invalid.to_rpc_error())).await;
            }
        }
    }

    /// Serves a request; returns what there is to say at once.
    fn begin(
        &mut self,
        request: Request,
        out: &mpsc::Sender<Answer>,
    ) -> Result<Option<Answer>, Fault> {
        let era = request.era();
        if era == Era::Modern {
            request.check_modern()?;
        }
        let is_call = request.method == method::CALL_TOOL;
        let started = self.dispatcher.starting(&request).filter(|_| !is_call);
        if (is_call || started.is_some()) && self.tasks.len() >= MAX_CALLS {
            return Err(too_many("calls are running", MAX_CALLS));
        }
        if era == Era::Legacy && request.method == method::INITIALIZE {
            self.agreed = request.agreed_version();
            self.client = request.client_of_session();
        }
        if let Some(started) = started {
            self.defer(request, started, out.clone());
            return Ok(None);
        }
        let from = self.from(era, Some(out.clone()));
        match self.dispatcher.serve(&request, from)? {
            Step::Done(answer) => Ok(Some(answer)),
            Step::Call(call) => {
                self.spawn(&request.id, call, out.clone());
                Ok(None)
            }
            Step::Listen(subscription) => self.listen(subscription).map(Some),
        }
    }

    fn from(&self, era: Era, reports: Option<mpsc::Sender<Answer>>) -> From {
        From {
            era,
            caller: Arc::clone(&self.caller),
            reports,
            arrival: Arrival::by_pipe(self.agreed, self.client.clone()),
        }
    }

    /// Serves a request of the kind that is answered at once, as soon as servers have started.
    fn defer(
        &mut self,
        request: Request,
        started: BoxFuture<'static, ()>,
        out: mpsc::Sender<Answer>,
    ) {
        let dispatcher = Arc::clone(&self.dispatcher);
        let from = self.from(request.era(), None);
        let entered = self.calls.enter(&request.id);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = entered.cancelled() => return,
                () = started => {}
            }
            match dispatcher.serve(&request, from) {
                Ok(Step::Done(answer)) => say(&out, answer).await,
                Err(fault) => say(&out, Answer::error(Some(&request.id), &fault.error)).await,
                // not reached: neither calls nor subscriptions are deferred
                Ok(Step::Call(_) | Step::Listen(_)) => {}
            }
        });
    }

    fn spawn(&mut self, id: &RequestId, mut call: RunningCall, out: mpsc::Sender<Answer>) {
        let entered = self.calls.enter(id);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                // a cancelled call gets no answer
                () = entered.cancelled() => {
                    call.cancel();
                }
                answer = &mut call => say(&out, answer).await,
            }
        });
    }

    fn listen(&mut self, subscription: Subscription) -> Result<Answer, Fault> {
        self.subscriptions
            .retain(|other| other.id() != subscription.id());
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Err(too_many("subscriptions are open", MAX_SUBSCRIPTIONS));
        }
        // asked for before the acknowledgement is written: no later change is missed
        self.changes
            .get_or_insert_with(|| self.dispatcher.changes());
        let acknowledged = subscription.acknowledged();
        self.subscriptions.push(subscription);
        Ok(acknowledged)
    }

    fn note(&mut self, method: &str, params: Option<&Bytes>) {
        match method {
            method::INITIALIZED => {
                self.changes
                    .get_or_insert_with(|| self.dispatcher.changes());
                if !std::mem::replace(&mut self.legacy_listens, true) {
                    self.session = self.dispatcher.session("pipe");
                }
            }
            method::CANCELLED => {
                if let Some(id) = cancelled_id(params) {
                    self.calls.cancel(&id);
                    self.subscriptions
                        .retain(|subscription| *subscription.id() != id);
                }
            }
            _ => {}
        }
    }

    /// Notifies every listener of a change, or of the end of the stream.
    async fn tell(&mut self, changed: Option<()>, out: &mpsc::Sender<Answer>) {
        if changed.is_none() {
            self.changes = Some(futures_util::stream::pending().boxed());
            for subscription in self.subscriptions.drain(..) {
                say(out, subscription.ended()).await;
            }
            return;
        }
        if self.legacy_listens {
            say(out, subscription::list_changed()).await;
        }
        for subscription in self.subscriptions.iter().filter(|one| one.wants_tools()) {
            say(out, subscription.list_changed()).await;
        }
    }
}

async fn next_change(changes: &mut Option<BoxStream<'static, ()>>) -> Option<()> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

/// Queues a message. A client that stopped reading has a closed queue, which ends the conversation.
async fn say(out: &mpsc::Sender<Answer>, answer: Answer) {
    let _ = out.send(answer).await;
}

/// Makes the caller of one conversation: this process's user, in a session as long as the pipe.
fn local_session() -> Caller {
    let session = SessionId::new(Uuid::new_v4().to_string());
    Caller::clone(&Caller::local()).with_session(session)
}

fn too_many(what: &str, limit: usize) -> Fault {
    let text = format!("{limit} {what} in this conversation");
    let error = ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, text);
    Fault::runtime(StatusCode::SERVICE_UNAVAILABLE, &error)
}
