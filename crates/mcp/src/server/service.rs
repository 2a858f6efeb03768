//! Serves a request of a known era, for every transport.

use std::sync::Arc;

use bytes::Bytes;
use callward_core::{
    BoxFuture, BoxStream, Caller, PeerObserver, PeerOutcome, PeerRequest, PeerSession, PeerSide,
    ProgressSink,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answer::Answer;
use super::arrival::Arrival;
use super::error::Fault;
use super::listing::{Listings, Written};
use super::progress::Relay;
use super::request::{Request, method};
use super::running::RunningCall;
use super::subscription::Subscription;
use super::{Asked, Backend, CallRequest, intro};
use crate::observed::SessionTimer;
use crate::wire::{Era, meta};

/// One backend and the lists written for it; shared by all conversations of a transport.
#[derive(Debug)]
pub(super) struct Dispatcher<B> {
    backend: Arc<B>,
    listings: Listings,
    observer: Option<Arc<dyn PeerObserver>>,
}

/// Notifies a backend that a session of this caller is over.
pub(super) type EndsSession = Arc<dyn Fn(&Arc<Caller>) + Send + Sync>;

/// The result of a request.
pub(super) enum Step {
    /// The answer is there.
    Done(Answer),
    /// A call runs.
    Call(RunningCall),
    /// The client subscribes to changes.
    Listen(Subscription),
}

/// Where a request comes from, and how it is served.
pub(super) struct From {
    pub(super) era: Era,
    pub(super) caller: Arc<Caller>,
    /// Where progress goes, if the transport can carry it.
    pub(super) reports: Option<mpsc::Sender<Answer>>,
    pub(super) arrival: Arrival,
}

impl<B: Backend> Dispatcher<B> {
    pub(super) fn new(backend: Arc<B>) -> Self {
        Self {
            observer: backend.observer(),
            backend,
            listings: Listings::default(),
        }
    }

    /// Returns what a request has to wait for before it is [served](Self::serve), if anything. A
    /// call need not: it waits by itself, so that it can be cancelled meanwhile.
    pub(super) fn starting(&self, request: &Request) -> Option<BoxFuture<'static, ()>> {
        // once the list is complete nothing waits, and no name has to be read
        let listed = self.backend.starting(Asked::Tools)?;
        match request.method.as_str() {
            method::INITIALIZE | method::DISCOVER => self.backend.starting(Asked::Info),
            method::LIST_TOOLS => Some(listed),
            method::CALL_TOOL => {
                let name = request.tool.as_deref()?;
                self.backend.starting(Asked::Call(name))
            }
            _ => None,
        }
    }

    /// Serves a request whose metadata has been checked.
    ///
    /// # Errors
    ///
    /// The fault to answer with.
    pub(super) fn serve(&self, request: &Request, from: From) -> Result<Step, Fault> {
        let Some(observer) = &self.observer else {
            return self.step(request, from);
        };
        let began = Instant::now();
        let step = self.step(request, from);
        let outcome = match &step {
            // the task that runs the call knows how it ends
            Ok(Step::Call(_)) => return step,
            Ok(_) => PeerOutcome::Answered,
            Err(fault) => PeerOutcome::Refused(fault.error.code),
        };
        let method = method::known(&request.method).unwrap_or("_OTHER");
        let ended = PeerRequest {
            side: PeerSide::Server,
            method,
            tool: None,
            server: None,
            outcome,
        };
        observer.request_ended(&ended, began.elapsed());
        step
    }

    /// Begins a session that lasts until what is returned is dropped, if an observer is set.
    pub(super) fn session(&self, transport: &'static str) -> Option<SessionTimer> {
        let session = PeerSession {
            side: PeerSide::Server,
            transport,
        };
        let observer = self.observer.clone()?;
        Some(SessionTimer::begin(observer, session))
    }

    fn step(&self, request: &Request, from: From) -> Result<Step, Fault> {
        let era = from.era;
        let done = |result: &Bytes| Ok(Step::Done(Answer::result(&request.id, result)));
        match (era, request.method.as_str()) {
            (Era::Legacy, method::INITIALIZE) => done(&self.initialize(request)?),
            (Era::Legacy, method::PING) => done(&Bytes::from_static(b"{}")),
            (Era::Modern, method::DISCOVER) => done(&intro::discover(&self.backend.info())),
            (Era::Modern, method::LISTEN) => Subscription::of(request).map(Step::Listen),
            (_, method::LIST_TOOLS) if request.params.get("cursor").is_some() => Err(
                Fault::invalid_params("unknown cursor: the whole list is one page"),
            ),
            (_, method::LIST_TOOLS) => {
                let asked = request.params.get("_meta");
                let meta = asked.and_then(|asked| self.backend.list_meta(asked));
                done(&self.listing().result(era, meta.as_ref()))
            }
            (_, method::LIST_PROMPTS) => done(&self.nothing(era, "prompts")),
            (_, method::LIST_RESOURCES) => done(&self.nothing(era, "resources")),
            (_, method::LIST_TEMPLATES) => done(&self.nothing(era, "resourceTemplates")),
            (_, method::CALL_TOOL) => self.call(request, from).map(Step::Call),
            (_, other) => Err(Fault::method_not_found(other)),
        }
    }

    /// Returns the list of tools as of now.
    pub(super) fn listing(&self) -> Arc<Written> {
        self.listings.current(&*self.backend)
    }

    /// Writes the empty list of something that is not relayed.
    fn nothing(&self, era: Era, what: &str) -> Bytes {
        match era {
            Era::Legacy => Bytes::from(format!(r#"{{"{what}":[]}}"#)),
            Era::Modern => intro::empty(&self.backend.info(), what),
        }
    }

    /// Notifies the backend that a session is over.
    pub(super) fn session_ended(&self, caller: &Arc<Caller>) {
        self.backend.session_ended(caller);
    }

    /// Returns what notifies the backend, for code without a dispatcher.
    pub(super) fn ends_sessions(&self) -> EndsSession {
        let backend = Arc::clone(&self.backend);
        Arc::new(move |caller: &Arc<Caller>| backend.session_ended(caller))
    }

    pub(super) fn changes(&self) -> BoxStream<'static, ()> {
        self.backend.changes()
    }

    fn initialize(&self, request: &Request) -> Result<Bytes, Fault> {
        match request.params.text("protocolVersion") {
            Some(asked) => Ok(intro::initialize(&self.backend.info(), &asked)),
            None => Err(Fault::invalid_params("`protocolVersion` must be a string")),
        }
    }

    fn call(&self, request: &Request, from: From) -> Result<RunningCall, Fault> {
        let Some(name) = request.tool.as_deref() else {
            return Err(Fault::invalid_params("`name` must be a string"));
        };
        let From { era, caller, .. } = from;
        let arrival = from.arrival.of(request);
        let inbound = Arc::new(arrival.inbound);
        let params = &request.params;
        let arguments = match params.get("arguments") {
            None => Bytes::from_static(b"{}"),
            Some(arguments) if arguments.first() == Some(&b'{') => arguments.clone(),
            Some(_) => {
                let reason = "`arguments` must be an object";
                self.backend.refused(name, &caller, &inbound, reason);
                return Err(Fault::invalid_params(reason));
            }
        };
        let relay = from
            .reports
            .zip(request.progress_token().cloned())
            .map(|(out, token)| Arc::new(Relay::new(token, out)));
        let call = CallRequest {
            name: name.to_owned(),
            arguments,
            caller,
            trace: arrival.trace.map(Arc::new),
            baggage: arrival.baggage,
            inbound: Some(Arc::clone(&inbound)),
            idempotency_key: request.key.clone(),
            progress: relay.clone().map(|relay| relay as Arc<dyn ProgressSink>),
            client_capabilities: match era {
                Era::Legacy => None,
                Era::Modern => request.meta.get(meta::CLIENT_CAPABILITIES).cloned(),
            },
            input_responses: params.get("inputResponses").cloned(),
            request_state: params.get("requestState").cloned(),
            meta: params.get("_meta").cloned(),
        };
        let future: BoxFuture<'static, _> = match self.starting(request) {
            None => self.backend.call(call),
            Some(started) => {
                let backend = Arc::clone(&self.backend);
                Box::pin(async move {
                    started.await;
                    backend.call(call).await
                })
            }
        };
        Ok(RunningCall {
            id: request.id.clone(),
            era,
            name: name.to_owned(),
            relay,
            future: Some(future),
            inbound,
        })
    }
}
