//! Requests and messages of a server for the client of a call.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{CallClient, ClientCapabilities, ClientMethod, ProgressSink, ToolCall};
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::options::OnlyClient;
use crate::wire::object::Known;
use crate::wire::{RequestId, RpcError, code, meta, object, write};

/// How many requests of one instance may wait for their clients.
const MAX_ASKED: usize = 64;

/// The notifications that a client gets beside its answer, with their parameters as they are.
const PASSED_ON: [&str; 2] = [
    "notifications/message",
    "notifications/elicitation/complete",
];

/// What is behind a request in flight: who gets its progress, and who can be asked.
#[derive(Default)]
pub(super) struct Behind {
    pub(super) progress: Option<Arc<dyn ProgressSink>>,
    pub(super) client: Option<ClientOfCall>,
    /// Fires when the request has ended.
    _ended: Option<DropGuard>,
}

impl Behind {
    pub(super) fn new(call: Option<&ToolCall>) -> Self {
        let client = call.and_then(ClientOfCall::new);
        Self {
            progress: call.and_then(|call| call.progress().cloned()),
            _ended: client
                .as_ref()
                .map(|client| client.ended.clone().drop_guard()),
            client,
        }
    }
}

/// The client of a call.
#[derive(Debug, Clone)]
pub(super) struct ClientOfCall {
    client: CallClient,
    capabilities: ClientCapabilities,
    progress: Waits,
    ended: CancellationToken,
}

impl ClientOfCall {
    pub(super) fn new(call: &ToolCall) -> Option<Self> {
        Some(Self {
            client: call.client.clone()?,
            capabilities: call.capabilities,
            progress: Waits(call.progress().cloned()),
            ended: CancellationToken::new(),
        })
    }

    /// Returns the client between calls. One that is asked by results can only be asked in a call.
    pub(super) fn between_calls(call: &ToolCall) -> Option<Self> {
        let mut client = Self::new(call)?;
        client.progress = Waits(None);
        (!client.client.takes_rounds()).then_some(client)
    }

    /// Returns the only client there is, between its calls.
    pub(super) fn only(only: OnlyClient) -> Option<Self> {
        Some(Self {
            client: only.client?,
            capabilities: only.capabilities,
            progress: Waits(None),
            ended: CancellationToken::new(),
        })
    }

    /// Chooses which client of the calls in flight is meant by a server that does not say: the only
    /// one, or that of the latest call where all are of one session.
    pub(super) fn meant<'a>(in_flight: impl Iterator<Item = (u64, &'a Self)>) -> Option<Self> {
        let mut in_flight: Vec<_> = in_flight.collect();
        in_flight.sort_unstable_by_key(|(id, _)| *id);
        let (_, latest) = in_flight.last()?;
        let is_clear = in_flight.len() == 1 || !latest.client.takes_rounds();
        is_clear.then(|| (*latest).clone())
    }

    /// Asks the client, which offers that.
    ///
    /// # Errors
    ///
    /// The error to answer the server with.
    pub(super) fn ask(
        &self,
        method: ClientMethod,
        params: Bytes,
    ) -> impl Future<Output = Result<Bytes, RpcError>> + Send + use<> {
        // begun here, so that the call counts as one that asks from now on
        let waits = self.progress.clone().begin();
        let answer = self.client.ask(method, without_token(params));
        async move {
            let _waits = waits;
            answer.await.map_err(|refusal| {
                let error = RpcError::new(refusal.code, refusal.message);
                match refusal.data {
                    Some(data) => error.with_data(data),
                    None => error,
                }
            })
        }
    }

    /// Passes a notification on, if it is one for clients.
    pub(super) fn notify(&self, method: &str, params: Option<&Bytes>) {
        let known = PASSED_ON.into_iter().find(|known| *known == method);
        if let (Some(method), Some(params)) = (known, params) {
            self.client.peer().notify(method, params);
        }
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

/// Stops the clocks of a call while a person decides.
#[derive(Clone)]
struct Waits(Option<Arc<dyn ProgressSink>>);

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Waits").field(&self.0.is_some()).finish()
    }
}

impl Waits {
    /// Begins to wait, until what is returned is dropped.
    fn begin(self) -> Waiting {
        if let Some(progress) = &self.0 {
            progress.waits_for_person(true);
        }
        Waiting(self)
    }
}

struct Waiting(Waits);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(progress) = &self.0.0 {
            progress.waits_for_person(false);
        }
    }
}

/// The requests of one instance that wait for their clients.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<HashMap<RequestId, CancellationToken>>);

impl Asked {
    /// Answers a request of the server, in a task that ends with the call or with `closed`. Returns
    /// the refusal of one that no client is asked.
    pub(super) fn answer<F>(
        self: &Arc<Self>,
        of: Option<ClientOfCall>,
        (id, method, params): (RequestId, ClientMethod, Option<Bytes>),
        closed: &CancellationToken,
        reply: impl FnOnce(Vec<u8>) -> F + Send + 'static,
    ) -> Option<Vec<u8>>
    where
        F: Future<Output = ()> + Send,
    {
        let params = params.unwrap_or_else(|| Bytes::from_static(b"{}"));
        let cancelled = closed.child_token();
        let of = match self.admit(of, method, &params, &id, &cancelled) {
            Ok(of) => of,
            Err(error) => return Some(write::error(Some(&id), &error)),
        };
        let (asked, answer) = (self.clone(), of.ask(method, params));
        tokio::spawn(async move {
            let answered = async {
                tokio::select! {
                    answer = answer => answer,
                    () = of.ended.cancelled() => {
                        Err(RpcError::new(code::INTERNAL_ERROR, "the call has ended"))
                    }
                }
            };
            let answer = cancelled.run_until_cancelled(answered).await;
            asked.0.lock().remove(&id);
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
        of: Option<ClientOfCall>,
        method: ClientMethod,
        params: &[u8],
        id: &RequestId,
        cancelled: &CancellationToken,
    ) -> Result<ClientOfCall, RpcError> {
        let of = of.filter(|of| of.capabilities.allow(method, params));
        let of = of.ok_or_else(|| {
            let text = format!("the client does not offer {method}, or not with these parameters");
            RpcError::new(code::METHOD_NOT_FOUND, text)
        })?;
        let mut waiting = self.0.lock();
        if waiting.len() >= MAX_ASKED {
            let text = format!("{MAX_ASKED} requests wait for their clients");
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
