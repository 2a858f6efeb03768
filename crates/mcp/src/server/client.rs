//! The client of a session, as the servers behind its calls reach it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{
    BoxFuture, Caller, ClientCapabilities, ClientMethod, ClientPeer, ClientRefusal, LogLevel,
    readable,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::answer::Answer;
use super::{Backend, Subscriber};
use crate::wire::{RequestId, RpcError, code, object, write};

/// The method of log messages.
const LOG_MESSAGE: &str = "notifications/message";

/// How many requests one client may have open.
const MAX_ASKED: usize = 64;

/// Where messages of a running call go, until it ends.
#[derive(Debug)]
pub(super) struct Outlet {
    out: Mutex<Option<mpsc::Sender<Answer>>>,
    session: Option<Arc<SessionClient>>,
}

impl Outlet {
    pub(super) fn new(out: mpsc::Sender<Answer>, session: Option<Arc<SessionClient>>) -> Arc<Self> {
        let out = Mutex::new(Some(out));
        Arc::new(Self { out, session })
    }

    /// Cancels what the client was asked here and has not answered, and lets nothing through from
    /// then on: nothing may follow the answer.
    pub(super) fn close(&self) {
        let Some(out) = self.out.lock().take() else {
            return;
        };
        if let Some(session) = &self.session {
            for id in session.forget(self) {
                let _ = out.try_send(cancelled(id));
            }
        }
    }

    /// Sends a message, unless the client reads too slowly. Returns `false` if the call has ended.
    pub(super) fn try_send(&self, message: Answer) -> bool {
        let out = self.out.lock();
        if let Some(out) = out.as_ref() {
            let _ = out.try_send(message);
        }
        out.is_some()
    }

    fn open(&self) -> Option<mpsc::Sender<Answer>> {
        self.out.lock().clone()
    }

    /// Its address, which is unique while it exists.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The client of one session: what it declares, and what it was asked.
#[derive(Debug, Default)]
pub(super) struct SessionClient {
    pub(super) capabilities: ClientCapabilities,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    log_level: Option<LogLevel>,
    /// The way to the client beside its requests: the pipe, or the stream of the session.
    own: Option<mpsc::Sender<Answer>>,
    /// The resources that it is subscribed to.
    subscriber: Option<Arc<dyn Subscriber>>,
    next: u64,
    waiting: HashMap<u64, Waiting>,
}

/// A request that waits for the client's answer.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Result<Bytes, RpcError>>,
    /// The [address](Outlet::address) of the call's outlet, if it was sent there.
    outlet: Option<usize>,
}

impl SessionClient {
    pub(super) fn new(capabilities: ClientCapabilities) -> Self {
        Self {
            capabilities,
            state: Mutex::default(),
        }
    }

    /// Takes the way to the client beside its requests.
    pub(super) fn reach_by(&self, own: mpsc::Sender<Answer>) {
        self.state.lock().own = Some(own);
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        self.state.lock().log_level = Some(level);
    }

    /// Returns `true` if calls need a way to the client: it may be asked something, or wants to
    /// read log messages.
    pub(super) fn is_reached(&self) -> bool {
        !self.capabilities.is_empty() || self.state.lock().log_level.is_some()
    }

    /// Returns `true` if there is a way to the client beside its requests.
    pub(super) fn is_connected(&self) -> bool {
        self.state.lock().own.is_some()
    }

    /// Returns what keeps the resources that the client is subscribed to.
    pub(super) fn subscriber(
        &self,
        backend: &dyn Backend,
        caller: &Arc<Caller>,
    ) -> Option<Arc<dyn Subscriber>> {
        let mut state = self.state.lock();
        if state.subscriber.is_none() {
            state.subscriber = backend.subscriber(caller);
        }
        state.subscriber.clone()
    }

    /// Takes a response of the client.
    pub(super) fn answered(&self, id: Option<&RequestId>, outcome: Result<Bytes, RpcError>) {
        let id = id.and_then(RequestId::as_u64);
        let waiting = id.and_then(|id| self.state.lock().waiting.remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.answer.send(outcome);
        }
    }

    /// Lets no request wait any longer: the session has ended.
    pub(super) fn ended(&self) {
        let mut state = self.state.lock();
        state.own = None;
        state.subscriber = None;
        state.waiting.clear();
    }

    fn own(&self) -> Option<mpsc::Sender<Answer>> {
        self.state.lock().own.clone()
    }

    /// Lets the requests that were sent by an outlet wait no longer, and returns their ids.
    fn forget(&self, outlet: &Outlet) -> Vec<u64> {
        let of_outlet = |waiting: &Waiting| waiting.outlet == Some(outlet.address());
        let mut state = self.state.lock();
        let open = state.waiting.extract_if(|_, waiting| of_outlet(waiting));
        open.map(|(id, _)| id).collect()
    }

    fn enter(
        &self,
        outlet: Option<&Outlet>,
    ) -> Result<(u64, oneshot::Receiver<Result<Bytes, RpcError>>), ClientRefusal> {
        let mut state = self.state.lock();
        if state.waiting.len() >= MAX_ASKED {
            let text = format!("{MAX_ASKED} requests to the client are open");
            return Err(refused(text));
        }
        let (answer, receiver) = oneshot::channel();
        state.next += 1;
        let id = state.next;
        let outlet = outlet.map(Outlet::address);
        state.waiting.insert(id, Waiting { answer, outlet });
        Ok((id, receiver))
    }
}

/// The client of a running call.
pub(super) struct Reached {
    /// The client's session; a modern client has none, and is not asked on the way.
    pub(super) session: Option<Arc<SessionClient>>,
    pub(super) outlet: Option<Arc<Outlet>>,
    /// The level of log messages that the request asks for.
    pub(super) log_level: Option<LogLevel>,
}

impl ClientPeer for Reached {
    fn ask(
        &self,
        method: ClientMethod,
        params: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
        let (session, outlet) = (self.session.clone(), self.outlet.clone());
        Box::pin(async move {
            let session = session.ok_or_else(|| refused("the client cannot be asked"))?;
            let of_call = outlet.as_ref().and_then(|outlet| outlet.open());
            let outlet = outlet.filter(|_| of_call.is_some());
            let way = of_call.or_else(|| session.own());
            let way = way.ok_or_else(|| refused("the client has no stream open to be asked on"))?;
            let (id, answer) = session.enter(outlet.as_deref())?;
            let _sent = SentRequest {
                session,
                id,
                outlet,
            };
            let request = write::request(&RequestId::number(id), method.as_str(), Some(&params));
            let gone = |_| refused("the client is gone");
            way.send(request.into()).await.map_err(gone)?;
            drop(way);
            let answer = answer
                .await
                .map_err(|_| refused("the session of the client has ended"))?;
            let answer = answer.map_err(|error| ClientRefusal {
                code: error.code,
                message: error.message.into_owned(),
                data: error.data,
            })?;
            if object::check(&answer).is_err() || readable::check(&answer).is_err() {
                return Err(refused("the client's answer cannot be read"));
            }
            Ok(readable::without_lone_surrogates(answer))
        })
    }

    fn notify(&self, method: &'static str, params: &[u8]) {
        if readable::check(params).is_err() || !self.wants(method, params) {
            return;
        }
        let params = readable::without_lone_surrogates(Bytes::copy_from_slice(params));
        let message = Answer::notification(method, Some(&params));
        let outlet = self.outlet.as_ref();
        let of_call = outlet.is_some_and(|outlet| outlet.try_send(message.clone()));
        let session = self.session.as_ref().filter(|_| !of_call);
        if let Some(own) = session.and_then(|session| session.own()) {
            let _ = own.try_send(message);
        }
    }

    fn log_level(&self) -> Option<LogLevel> {
        let session = self.session.as_ref();
        let of_session = session.and_then(|session| session.state.lock().log_level);
        self.log_level.or(of_session)
    }
}

impl Reached {
    /// Returns `false` for a log message below the level that the client asked for.
    fn wants(&self, method: &str, params: &[u8]) -> bool {
        let Some(wanted) = self.log_level().filter(|_| method == LOG_MESSAGE) else {
            return true;
        };
        let level = object::get_member(params, "level").ok().flatten();
        let level = level.and_then(|level| serde_json::from_slice::<LogLevel>(level).ok());
        level.is_none_or(|level| level >= wanted)
    }
}

/// A request that a client was sent, until this is dropped: one without an answer is cancelled.
struct SentRequest {
    session: Arc<SessionClient>,
    id: u64,
    /// Where it was sent, if that was beside the answer of a call: nothing may follow that.
    outlet: Option<Arc<Outlet>>,
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        if self.session.state.lock().waiting.remove(&self.id).is_some() {
            let cancelled = cancelled(self.id);
            if let Some(outlet) = &self.outlet {
                outlet.try_send(cancelled);
            } else if let Some(own) = self.session.own() {
                let _ = own.try_send(cancelled);
            }
        }
    }
}

fn cancelled(id: u64) -> Answer {
    let params = format!(r#"{{"requestId":{id}}}"#);
    Answer::notification("notifications/cancelled", Some(params.as_bytes()))
}

fn refused(message: impl Into<String>) -> ClientRefusal {
    ClientRefusal {
        code: code::INTERNAL_ERROR,
        message: message.into(),
        data: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_after_the_call_goes_beside_its_answer() {
        let (own, mut beside) = mpsc::channel(1);
        let (out, mut of_call) = mpsc::channel(1);
        let session = Arc::new(SessionClient::default());
        session.reach_by(own);
        let outlet = Outlet::new(out, Some(session.clone()));
        let client = Reached {
            session: Some(session),
            outlet: Some(outlet.clone()),
            log_level: None,
        };
        client.notify("notifications/message", b"{}");
        assert!(of_call.try_recv().is_ok() && beside.try_recv().is_err());
        outlet.close();
        client.notify("notifications/message", b"{}");
        assert!(of_call.try_recv().is_err() && beside.try_recv().is_ok());
    }

    #[tokio::test]
    async fn what_a_call_asked_and_got_no_answer_to_is_cancelled_at_its_end() {
        let (out, mut of_call) = mpsc::channel(8);
        let session = Arc::new(SessionClient::default());
        let outlet = Outlet::new(out, Some(session.clone()));
        let client = Reached {
            session: Some(session.clone()),
            outlet: Some(outlet.clone()),
            log_level: None,
        };
        let ask = || client.ask(ClientMethod::Elicit, Bytes::from_static(b"{}"));
        let [first, second, third] = [(); 3].map(|()| tokio::spawn(ask()));
        for _ in 0..3 {
            of_call.recv().await.unwrap();
        }
        let answered = RequestId::number(1);
        session.answered(Some(&answered), Ok(Bytes::from_static(b"{}")));
        assert!(first.await.unwrap().is_ok());
        outlet.close();
        let mut cancelled = Vec::new();
        while let Some(message) = of_call.recv().await {
            cancelled.push(String::from_utf8(message.into_pieces().concat()).unwrap());
        }
        cancelled.sort_unstable();
        let expected = [2, 3].map(|id| {
            let method = "notifications/cancelled";
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id}}}}}"#)
        });
        assert_eq!(cancelled, expected);
        assert!(second.await.unwrap().is_err() && third.await.unwrap().is_err());
    }
}
