//! The conversation with one client on a pipe: its calls, its subscriptions, and its messages.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{
    BoxFuture, BoxStream, Caller, ClientInfo, ClientPeer, List, Method, SessionId, Transport,
};
use futures_util::future::Either;
use futures_util::stream::SelectAll;
use futures_util::{FutureExt, StreamExt};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::answer::Answer;
use super::arrival::Arrival;
use super::client::{Reached, SessionClient};
use super::error::Fault;
use super::inflight::{Entered, InFlight};
use super::request::{Request, cancelled_id, method, receive};
use super::service::{Dispatcher, Step};
use super::subscription::Subscription;
use crate::observed::SessionTimer;
use crate::wire::{Era, LineError, LineReader, Message, RpcError, code};

/// How many calls one client may have running, as a bound on memory.
const MAX_CALLS: usize = 1_024;

/// How many subscriptions one client may have open.
const MAX_SUBSCRIPTIONS: usize = 64;

/// The conversation with one client.
pub(super) struct Conversation {
    dispatcher: Arc<Dispatcher>,
    caller: Arc<Caller>,
    /// The writer ends once this, and the clones in tasks, are dropped.
    out: mpsc::Sender<Answer>,
    calls: Arc<InFlight>,
    /// The requests that run; some open a subscription, which may be cancelled until it is taken.
    tasks: JoinSet<Option<(Subscription, Entered)>>,
    /// Has the stream of changes while there are subscriptions.
    changes: SelectAll<BoxStream<'static, List>>,
    /// Notifications of updated resources, of each subscription.
    updates: SelectAll<BoxStream<'static, Answer>>,
    /// The revision a legacy client agreed on.
    agreed: Option<&'static str>,
    /// How a legacy client introduced itself.
    client: Option<Arc<ClientInfo>>,
    peer: Option<Arc<SessionClient>>,
    /// Whether it is known what the client declares.
    is_introduced: bool,
    /// Reports how long a legacy client's session lasted, if an observer is set.
    session: Option<SessionTimer>,
    subscriptions: Vec<Subscription>,
}

impl Conversation {
    pub(super) fn new(dispatcher: Dispatcher, out: mpsc::Sender<Answer>) -> Self {
        // this process's user, in a session as long as the pipe
        let session = SessionId::new(Uuid::new_v4().to_string());
        let caller = Caller::clone(&Caller::local()).with_session(session);
        Self {
            dispatcher: Arc::new(dispatcher),
            caller: Arc::new(caller),
            out,
            calls: Arc::default(),
            tasks: JoinSet::new(),
            changes: SelectAll::new(),
            updates: SelectAll::new(),
            agreed: None,
            client: None,
            peer: None,
            is_introduced: false,
            session: None,
            subscriptions: Vec::new(),
        }
    }

    /// Takes messages until the reader ends, then waits for the calls still running.
    pub(super) async fn run<R>(&mut self, lines: &mut LineReader<R>) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
    {
        let refused = |fault: Fault| Some(Answer::refusal(&fault));
        loop {
            tokio::select! {
                () = self.out.closed() => return Ok(()),
                Some(done) = self.tasks.join_next() => {
                    if let Ok(Some((subscription, entered))) = done
                        && entered.cancelled().now_or_never().is_none()
                    {
                        let answer = self.listen(subscription);
                        say(&self.out, answer.unwrap_or_else(refused)).await;
                    }
                }
                Some(updated) = self.updates.next() => say(&self.out, Some(updated)).await,
                changed = self.changes.next(), if !self.changes.is_empty() => {
                    self.notify(changed).await;
                }
                line = lines.next() => match line {
                    Ok(Some(line)) => {
                        let answer = self.take(&line).unwrap_or_else(refused);
                        say(&self.out, answer).await;
                    }
                    Ok(None) => break,
                    Err(LineError::Io(error)) => return Err(error),
                    Err(LineError::TooLong { limit, skipped }) => {
                        // an answer of the client, whose id is that of another request
                        let id = skipped.id.filter(|_| skipped.has_method);
                        let answered = id.as_ref().map(|_| code::INVALID_REQUEST);
                        let code = answered.unwrap_or(code::PARSE_ERROR);
                        let text = format!("a message is longer than {limit} bytes");
                        let error = RpcError::new(code, text);
                        say(&self.out, Some(Answer::error(id.as_ref(), &error))).await;
                    }
                }
            }
        }
        tokio::select! {
            () = self.out.closed() => {}
            () = async { while self.tasks.join_next().await.is_some() {} } => {}
        }
        Ok(())
    }

    /// Ends the conversation: calls are dropped, and subscriptions are notified if the queue has
    /// space.
    pub(super) async fn end(mut self) {
        if let Some(peer) = &self.peer {
            peer.ended();
        }
        self.tasks.shutdown().await;
        self.dispatcher.backend.session_ended(&self.caller);
        for ended in self.subscriptions.iter().filter_map(Subscription::ended) {
            let _ = self.out.try_send(ended);
        }
    }

    /// Takes a message; returns what there is to say at once.
    fn take(&mut self, line: &Bytes) -> Result<Option<Answer>, Fault> {
        match receive(line)? {
            Either::Left(request) => {
                let id = request.id.clone();
                let begun = self.begin(request);
                begun.map_err(|fault| fault.under(Some(&id)))
            }
            Either::Right(other) => {
                match (other, &self.peer) {
                    (Message::Notification { method, params }, _) => {
                        self.note(&method, params.as_ref());
                    }
                    (Message::Response { id, outcome }, Some(peer)) => {
                        peer.answered(id.as_ref(), outcome);
                    }
                    _ => {}
                }
                Ok(None)
            }
        }
    }

    fn begin(&mut self, request: Request) -> Result<Option<Answer>, Fault> {
        let era = request.era();
        if era == Era::Modern {
            request.check_modern()?;
        }
        // a call waits by itself
        let is_call = request.relayed == Some(Method::CallTool);
        let starting = self.dispatcher.starting(&request).filter(|_| !is_call);
        if era == Era::Legacy && request.method == method::INITIALIZE {
            self.agreed = request.agreed_version();
            self.client = request.client_of_session();
            let peer = SessionClient::new(request.capabilities());
            peer.reach_by(self.out.clone());
            self.peer = Some(Arc::new(peer));
        }
        let introduces = era == Era::Modern || request.method == method::INITIALIZE;
        if introduces && !std::mem::replace(&mut self.is_introduced, true) {
            let session = self.peer.clone();
            let between_calls = |session| -> Arc<dyn ClientPeer> {
                Arc::new(Reached {
                    session: Some(session),
                    outlet: None,
                    log_level: None,
                })
            };
            let client = session.map(between_calls);
            let backend = &self.dispatcher.backend;
            backend.introduced(request.capabilities(), client);
        }
        let (caller, client) = (Arc::clone(&self.caller), self.client.clone());
        let mut arrival = Arrival::new(era, caller, Transport::Pipe, client);
        arrival.inbound.protocol_version = self.agreed;
        if era == Era::Legacy {
            arrival.client.clone_from(&self.peer);
        }
        let takes_time = request.relayed.is_some() || request.method == method::SUBSCRIBE;
        if takes_time || starting.is_some() {
            if self.tasks.len() >= MAX_CALLS {
                return Err(too_many("calls are running", MAX_CALLS));
            }
            arrival.reports = Some(self.out.clone());
            self.spawn(request, arrival, starting);
            return Ok(None);
        }
        match self.dispatcher.serve(&request, arrival)? {
            Step::Done(answer) => Ok(Some(answer)),
            Step::Listen(subscription, inbound) if subscription.has_resources() => {
                let (backend, caller) = (self.dispatcher.backend.clone(), self.caller.clone());
                let entered = self.calls.enter(&request.id);
                self.tasks.spawn(async move {
                    tokio::select! {
                        () = entered.cancelled() => None,
                        open = subscription.open(&*backend, &caller, inbound) => {
                            Some((open, entered))
                        }
                    }
                });
                Ok(None)
            }
            Step::Listen(subscription, _) => self.listen(subscription),
            // not reached: calls were spawned
            Step::Call(_) => Ok(None),
        }
    }

    /// Serves a request that takes time, once the servers that it needs have started.
    fn spawn(
        &mut self,
        request: Request,
        arrival: Arrival,
        starting: Option<BoxFuture<'static, ()>>,
    ) {
        let (dispatcher, out) = (Arc::clone(&self.dispatcher), self.out.clone());
        let caller = self.caller.clone();
        let entered = self.calls.enter(&request.id);
        self.tasks.spawn(async move {
            if let Some(starting) = starting {
                tokio::select! {
                    biased;
                    () = entered.cancelled() => return None,
                    () = starting => {}
                }
            }
            let answer = match dispatcher.serve(&request, arrival) {
                Ok(Step::Done(answer)) => Some(answer),
                // a cancelled call gets no answer
                Ok(Step::Call(mut call)) => {
                    call.entered = Some(entered);
                    call.run().await.ok()
                }
                Ok(Step::Listen(subscription, inbound)) => {
                    let opened = subscription.open(&*dispatcher.backend, &caller, inbound);
                    return tokio::select! {
                        () = entered.cancelled() => None,
                        opened = opened => Some((opened, entered)),
                    };
                }
                Err(fault) => Some(Answer::refusal(&fault.under(Some(&request.id)))),
            };
            say(&out, answer).await;
            None
        });
    }

    fn listen(&mut self, subscription: Subscription) -> Result<Option<Answer>, Fault> {
        self.subscriptions
            .retain(|other| other.id() != subscription.id());
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Err(too_many("subscriptions are open", MAX_SUBSCRIPTIONS));
        }
        // asked for before the acknowledgement is written: no later change is missed
        if self.changes.is_empty() {
            let changes = self.dispatcher.backend.changes(&self.caller);
            self.changes.push(changes);
        }
        self.updates.push(subscription.updates());
        let acknowledged = subscription.acknowledged();
        self.subscriptions.push(subscription);
        Ok(acknowledged)
    }

    fn note(&mut self, method: &str, params: Option<&Bytes>) {
        match method {
            method::INITIALIZED => {
                if self.session.is_none() {
                    self.session = self.dispatcher.session("pipe");
                }
                let backend = &*self.dispatcher.backend;
                let peer = self.peer.as_ref();
                let subscriber = peer.and_then(|peer| peer.subscriber(backend, &self.caller));
                // a client that cannot be subscribed is not notified
                let _ = self.listen(Subscription::legacy(subscriber));
            }
            method::ROOTS_CHANGED => self.dispatcher.backend.roots_changed(&self.caller),
            method::CANCELLED => {
                if let Some(id) = cancelled_id(params) {
                    self.calls.cancel(&id);
                    self.subscriptions.retain(|one| one.id() != Some(&id));
                }
            }
            _ => {}
        }
    }

    /// Notifies every listener of a change, or of the end of the stream.
    async fn notify(&mut self, changed: Option<List>) {
        for subscription in &self.subscriptions {
            let message = match changed {
                Some(list) => subscription.list_changed(list),
                None => subscription.ended(),
            };
            say(&self.out, message).await;
        }
        if changed.is_none() {
            self.subscriptions.clear();
        }
    }
}

/// Queues a message. A client that stopped reading has a closed queue, which ends the conversation.
async fn say(out: &mpsc::Sender<Answer>, answer: Option<Answer>) {
    if let Some(answer) = answer {
        let _ = out.send(answer).await;
    }
}

fn too_many(what: &str, limit: usize) -> Fault {
    Fault::overloaded(format!("{limit} {what} in this conversation"), None)
}
