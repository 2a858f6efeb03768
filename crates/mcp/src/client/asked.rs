//! Requests and messages of a server for the client of a call.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{
    CallClient, ClientCapabilities, ClientMethod, ProgressSink, SessionId, ToolCall, readable,
};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::options::OnlyClient;
use crate::wire::object::Known;
use crate::wire::{RequestId, RpcError, code, meta, object, write};

/// How many requests of one instance may wait for their clients.
const MAX_WAITING: usize = 64;

/// Why a client is not asked something.
pub(super) const UNDECLARED: &str = "the client does not declare that it offers this";

/// The notifications that a client gets beside its answer, with their parameters as they are.
const PASSED_ON: [&str; 2] = [
    "notifications/message",
    "notifications/elicitation/complete",
];

/// Who gets the progress of a request in flight, and what its server asks.
#[derive(Default)]
pub(super) struct Recipients {
    pub(super) progress: Option<Arc<dyn ProgressSink>>,
    pub(super) client: Option<ClientOfCall>,
    is_call: bool,
    /// Fires when the request has ended.
    _ended: Option<DropGuard>,
}

impl Recipients {
    pub(super) fn of(call: Option<&ToolCall>) -> Self {
        let client = call.and_then(ClientOfCall::of);
        let ended = client
            .as_ref()
            .map(|client| client.ended.clone().drop_guard());
        Self {
            progress: call.and_then(|call| call.progress().cloned()),
            is_call: call.is_some(),
            client,
            _ended: ended,
        }
    }
}

/// Which client a message of a server is for that does not name its call.
pub(super) enum Meant {
    /// No call is in flight.
    NoCall,
    /// That of all calls in flight.
    Client(Asker),
    /// The calls in flight are of several clients, or of none.
    Unclear,
}

impl Meant {
    /// Chooses among all requests in flight.
    pub(super) fn among<'a>(in_flight: impl Iterator<Item = (u64, &'a Recipients)>) -> Self {
        let mut calls: Vec<_> = in_flight.filter(|(_, of)| of.is_call).collect();
        calls.sort_unstable_by_key(|(id, _)| *id);
        let clients = calls.iter().map(|(_, of)| of.client.clone());
        let clients: Option<Vec<_>> = clients.collect();
        let Some(clients) = clients else {
            return Self::Unclear;
        };
        let Some(latest) = clients.last() else {
            return Self::NoCall;
        };
        let is_same = |one: &ClientOfCall| one.session.is_some() && one.session == latest.session;
        match clients.len() == 1 || clients.iter().all(is_same) {
            true => Self::Client(Asker(clients)),
            false => Self::Unclear,
        }
    }
}

/// The client of one call.
#[derive(Debug, Clone)]
pub(super) struct ClientOfCall {
    client: CallClient,
    capabilities: ClientCapabilities,
    /// The session of a client that can be asked in each of its calls.
    session: Option<SessionId>,
    progress: Progress,
    ended: CancellationToken,
}

impl ClientOfCall {
    fn of(call: &ToolCall) -> Option<Self> {
        let client = call.client.clone()?;
        let session = call.caller().session.clone();
        Some(Self {
            session: session.filter(|_| !client.takes_rounds()),
            client,
            capabilities: call.capabilities,
            progress: Progress(call.progress().cloned()),
            ended: CancellationToken::new(),
        })
    }
}

/// The client that a server asks. For a server that does not say for which of several calls it
/// asks, it asks for all of them.
#[derive(Debug, Clone)]
pub(super) struct Asker(Vec<ClientOfCall>);

impl Asker {
    pub(super) fn of(call: &ToolCall) -> Option<Self> {
        ClientOfCall::of(call).map(Self::from)
    }

    /// Returns the owner's client between calls, if it can be asked then.
    pub(super) fn between_calls(call: &ToolCall) -> Option<Self> {
        let mut client = ClientOfCall::of(call)?;
        client.progress = Progress(None);
        let of_session = call.owner().is_some_and(|owner| owner.session.is_some());
        (client.session.is_some() && of_session).then(|| client.into())
    }

    /// Returns the only client there is, between its calls.
    pub(super) fn only(only: OnlyClient) -> Option<Self> {
        let client = ClientOfCall {
            client: only.client?,
            capabilities: only.capabilities,
            session: None,
            progress: Progress(None),
            ended: CancellationToken::new(),
        };
        Some(client.into())
    }

    fn latest(&self) -> Option<&ClientOfCall> {
        self.0.last()
    }

    fn offers(&self, method: ClientMethod, params: &[u8]) -> bool {
        let latest = self.latest();
        latest.is_some_and(|latest| latest.capabilities.allow(method, params))
    }

    /// Asks the client, which offers that. From now on its calls count as such that ask.
    ///
    /// # Errors
    ///
    /// The error to answer the server with.
    pub(super) fn ask(
        &self,
        method: ClientMethod,
        params: Bytes,
    ) -> impl Future<Output = Result<Bytes, RpcError>> + Send + use<> {
        let waits: Vec<_> = self
            .0
            .iter()
            .map(|one| one.progress.clone().wait())
            .collect();
        for one in &self.0 {
            one.client.note_asked();
        }
        let latest = self.latest().map(|latest| latest.client.clone());
        let answer = latest.map(|client| client.ask(method, without_token(params)));
        async move {
            let _waits = waits;
            let Some(answer) = answer else {
                return Err(RpcError::new(code::INTERNAL_ERROR, "there is no client"));
            };
            answer.await.map_err(|refusal| {
                let error = RpcError::new(refusal.code, refusal.message);
                match refusal.data {
                    Some(data) => error.with_data(data),
                    None => error,
                }
            })
        }
    }

    /// Waits until all of its calls have ended.
    async fn ended(&self) {
        join_all(self.0.iter().map(|one| one.ended.cancelled())).await;
    }

    /// Passes a notification on, if it is one for clients.
    pub(super) fn notify(&self, method: &str, params: Option<&Bytes>) {
        let known = PASSED_ON.into_iter().find(|known| *known == method);
        if let (Some(method), Some(params), Some(latest)) = (known, params, self.latest()) {
            latest.client.peer().notify(method, params);
        }
    }
}

impl From<ClientOfCall> for Asker {
    fn from(client: ClientOfCall) -> Self {
        Self(vec![client])
    }
}

/// Returns `true` if a notification is for the client of a call.
pub(super) fn is_passed_on(method: &str) -> bool {
    PASSED_ON.contains(&method)
}

/// Removes the token under which a server wants progress of its own request: none is sent.
fn without_token(params: Bytes) -> Bytes {
    let removed = || {
        let meta = object::get_member(&params, "_meta").ok()??;
        object::get_member(meta, meta::PROGRESS_TOKEN).ok()??;
        let meta = object::remove_member(meta, meta::PROGRESS_TOKEN).ok()?;
        object::set_member(&params, "_meta", &meta).ok()
    };
    removed().unwrap_or(params)
}

/// The sink of a call, whose clocks stop while a person decides.
#[derive(Clone)]
struct Progress(Option<Arc<dyn ProgressSink>>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

impl Progress {
    /// Begins to wait, until what is returned is dropped.
    fn wait(self) -> Waits {
        if let Some(progress) = &self.0 {
            progress.waits_for_person(true);
        }
        Waits(self)
    }
}

struct Waits(Progress);

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(progress) = &self.0.0 {
            progress.waits_for_person(false);
        }
    }
}

/// The requests of one instance that wait for their clients.
#[derive(Debug, Default)]
pub(super) struct ServerRequests(Mutex<HashMap<RequestId, CancellationToken>>);

impl ServerRequests {
    /// Answers a request of the server, in a task that ends with the call or with `closed`. Returns
    /// the refusal of one that no client is asked.
    pub(super) fn answer<F>(
        self: &Arc<Self>,
        of: Result<Asker, &'static str>,
        (id, method, params): (RequestId, ClientMethod, Option<Bytes>),
        closed: &CancellationToken,
        reply: impl FnOnce(Vec<u8>) -> F + Send + 'static,
    ) -> Option<Vec<u8>>
    where
        F: Future<Output = ()> + Send,
    {
        let params = params.unwrap_or_else(|| Bytes::from_static(b"{}"));
        let params = readable::without_lone_surrogates(params);
        let cancelled = closed.child_token();
        let of = match self.admit(of, method, &params, &id, &cancelled) {
            Ok(of) => of,
            Err(error) => return Some(write::error(Some(&id), &error)),
        };
        let (waiting, answer) = (self.clone(), of.ask(method, params));
        tokio::spawn(async move {
            let answered = async {
                tokio::select! {
                    answer = answer => answer,
                    () = of.ended() => {
                        Err(RpcError::new(code::INTERNAL_ERROR, "the call has ended"))
                    }
                }
            };
            let answer = cancelled.run_until_cancelled(answered).await;
            waiting.0.lock().remove(&id);
            match answer {
                Some(Ok(result)) => reply(write::result(&id, &result)).await,
                Some(Err(error)) => reply(write::error(Some(&id), &error)).await,
                // the server does not wait for it any more
                None => {}
            }
        });
        None
    }

    fn admit(
        &self,
        of: Result<Asker, &'static str>,
        method: ClientMethod,
        params: &[u8],
        id: &RequestId,
        cancelled: &CancellationToken,
    ) -> Result<Asker, RpcError> {
        if let Err(why) = readable::check(params) {
            let text = format!("the parameters of {method}: {why}");
            return Err(RpcError::new(code::INVALID_PARAMS, text));
        }
        let offered = |of: Asker| of.offers(method, params).then_some(of).ok_or(UNDECLARED);
        let of = of.and_then(offered);
        let of =
            of.map_err(|why| RpcError::new(code::METHOD_NOT_FOUND, format!("{method}: {why}")))?;
        let mut waiting = self.0.lock();
        if waiting.len() >= MAX_WAITING {
            let text = format!("{MAX_WAITING} requests wait for their clients");
            return Err(RpcError::new(code::INTERNAL_ERROR, text));
        }
        waiting.insert(id.clone(), cancelled.clone());
        Ok(of)
    }

    /// Takes back a request, as the parameters of a `notifications/cancelled` say.
    pub(super) fn cancel(&self, params: Option<&Bytes>) {
        let id = params.and_then(|params| {
            let params = Known::parse(params, &["requestId"]).ok()?;
            RequestId::from_raw(std::str::from_utf8(params.get("requestId")?).ok()?)
        });
        let cancelled = id.and_then(|id| self.0.lock().remove(&id));
        if let Some(cancelled) = cancelled {
            cancelled.cancel();
        }
    }
}
