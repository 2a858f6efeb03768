//! Serves a request of a known era, for every transport.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::{
    BoxFuture, Delivery, ErrorKind, Inbound, LogLevel, Method, PeerObserver, PeerOutcome,
    PeerRequest, PeerSide, ToolError, ToolOutput,
};
use http::StatusCode;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::arrival::Arrival;
use super::client::{Outlet, Reached, SessionClient};
use super::error::Fault;
use super::listing::Audience;
use super::progress::Relay;
use super::request::{Request, method};
use super::running::RunningCall;
use super::subscription::Subscription;
use super::{Asked, Backend, CallRequest, intro};
use crate::observed::SessionTimer;
use crate::wire::Era;

/// One backend; shared by all conversations of a transport.
pub(super) struct Dispatcher {
    pub(super) backend: Arc<dyn Backend>,
    observer: Option<Arc<dyn PeerObserver>>,
    /// Nothing new begins once it fires.
    drain: CancellationToken,
}

/// When a client that is refused by a server that stops may ask again: another process may have
/// taken over.
const STOPS: Duration = Duration::from_secs(1);

/// The result of a request.
pub(super) enum Step {
    /// The answer is there.
    Done(Answer),
    /// A call runs.
    Call(RunningCall),
    /// The client subscribes to changes, with a request that came so.
    Listen(Subscription, Inbound),
}

impl Dispatcher {
    pub(super) fn new(backend: Arc<dyn Backend>, drain: CancellationToken) -> Self {
        Self {
            observer: backend.observer(),
            backend,
            drain,
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
                let name = request.name.as_deref()?;
                self.backend.starting(Asked::Call(name))
            }
            method::SUBSCRIBE => Some(listed),
            method::LISTEN => {
                let has_resources = |asked: Subscription| asked.has_resources();
                let waits = Subscription::of(request).is_ok_and(has_resources);
                waits.then_some(listed)
            }
            _ if request.relayed.is_some() => Some(listed),
            _ => None,
        }
    }

    /// Serves a request whose metadata has been checked.
    ///
    /// # Errors
    ///
    /// The fault to answer with.
    pub(super) fn serve(&self, request: &Request, arrival: Arrival) -> Result<Step, Fault> {
        let Some(observer) = &self.observer else {
            return self.step(request, arrival);
        };
        let began = Instant::now();
        let step = self.step(request, arrival);
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
        SessionTimer::begin(self.observer.as_ref(), PeerSide::Server, transport)
    }

    fn step(&self, request: &Request, mut arrival: Arrival) -> Result<Step, Fault> {
        let begins = match request.relayed {
            Some(method) => !method.is_list(),
            None => matches!(
                request.method.as_str(),
                method::INITIALIZE | method::LISTEN | method::SUBSCRIBE
            ),
        };
        if self.drain.is_cancelled() && begins {
            return Err(self.refuse_new(request, arrival));
        }
        if request.relayed == Some(Method::CallTool) {
            // no other method is as frequent
            return self
                .call(Method::CallTool, request, arrival)
                .map(Step::Call);
        }
        if method::is_list(&request.method) {
            let admitted = self.backend.admit_list(&arrival.caller);
            admitted.map_err(|error| Fault::later(StatusCode::TOO_MANY_REQUESTS, &error))?;
        }
        let result = match (arrival.era, request.method.as_str()) {
            (Era::Legacy, method::INITIALIZE) => match request.agreed_version() {
                Some(agreed) => intro::initialize(&self.backend.info(&arrival.caller), agreed),
                None => return Err(Fault::invalid_params("`protocolVersion` must be a string")),
            },
            (Era::Legacy, method::PING) => Bytes::from_static(b"{}"),
            (Era::Legacy, method::SET_LEVEL) if self.backend.info(&arrival.caller).logging => {
                let level = request.params.text("level");
                let Some(level) = level.and_then(|level| LogLevel::by_name(&level)) else {
                    let reason = "`level` must be a level of RFC 5424, such as \"info\"";
                    return Err(Fault::invalid_params(reason));
                };
                if let Some(client) = &arrival.client {
                    client.set_log_level(level);
                }
                Bytes::from_static(b"{}")
            }
            (Era::Legacy, method::SUBSCRIBE | method::UNSUBSCRIBE) => {
                return self.subscribe(request, arrival);
            }
            (Era::Modern, method::DISCOVER) => intro::discover(&self.backend.info(&arrival.caller)),
            (Era::Modern, method::LISTEN) => {
                arrival.merge(request);
                let subscription = Subscription::of(request)?;
                return Ok(Step::Listen(subscription, arrival.inbound));
            }
            (_, list) if method::is_list(list) && has_unknown_cursor(request) => {
                let reason = "unknown cursor: the whole list is one page";
                return Err(Fault::invalid_params(reason));
            }
            (era, method::LIST_TOOLS) => {
                let asked = request.params.get("_meta");
                let (backend, caller) = (&*self.backend, &arrival.caller);
                let meta = asked.and_then(|asked| backend.list_meta(caller, asked));
                let take_tasks = era == Era::Modern && request.capabilities().take_tasks();
                let audience = Audience::new(era, take_tasks);
                backend
                    .tools(caller)
                    .result(|| backend.info(caller), audience, meta)
            }
            (era, other) => match request.relayed {
                Some(method) if era == Era::Legacy && method.is_of_task() => {
                    return Err(Fault::method_not_found(era, other));
                }
                Some(method) if self.backend.answers(&arrival.caller, method) => {
                    return self.call(method, request, arrival).map(Step::Call);
                }
                Some(method) if method.is_list() => {
                    intro::empty(era, &self.backend.info(&arrival.caller), method)
                }
                _ => return Err(Fault::method_not_found(era, other)),
            },
        };
        Ok(Step::Done(Answer::result(&request.id, &result)))
    }

    /// Subscribes the client of a session to a resource, or ends that.
    fn subscribe(&self, request: &Request, mut arrival: Arrival) -> Result<Step, Fault> {
        let (backend, name) = (&*self.backend, &request.method);
        let of_session = |client: Arc<SessionClient>| client.subscriber(backend, &arrival.caller);
        let subscriber = arrival.client.clone().and_then(of_session);
        let offered = subscriber.filter(|_| backend.info(&arrival.caller).subscribe);
        let subscriber = offered.ok_or_else(|| Fault::method_not_found(arrival.era, name))?;
        let uri = request.params.text("uri");
        let uri = uri.ok_or_else(|| Fault::invalid_params("`uri` must be a string"))?;
        let done = Bytes::from_static(b"{}");
        if name == method::UNSUBSCRIBE {
            subscriber.unsubscribe(&uri);
            return Ok(Step::Done(Answer::result(&request.id, &done)));
        }
        arrival.merge(request);
        let (era, inbound) = (arrival.era, Arc::new(arrival.inbound));
        let read = CallRequest::read(&uri, era, &arrival.caller, &inbound);
        let subscribed = subscriber.subscribe(read);
        let subscribed = async move {
            subscribed.await?;
            ToolOutput::from_json(done).map_err(|error| {
                ToolError::new(ErrorKind::Internal, Delivery::Unknown, error.to_string())
            })
        };
        Ok(Step::Call(RunningCall {
            id: request.id.clone(),
            era,
            method: Method::ReadResource,
            name: request.method.clone(),
            outlet: None,
            future: Some(Box::pin(subscribed)),
            inbound,
            entered: None,
        }))
    }

    fn refuse_new(&self, request: &Request, mut arrival: Arrival) -> Fault {
        let text = "the server is stopping: ask again after a second";
        let why = ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, text);
        let why = why.with_retry_after(STOPS);
        if let (Some(Method::CallTool), Some(name)) = (request.relayed, &request.name) {
            arrival.merge(request);
            let inbound = Arc::new(arrival.inbound);
            self.backend.refused(name, &arrival.caller, &inbound, &why);
        }
        Fault::later(StatusCode::SERVICE_UNAVAILABLE, &why)
    }

    fn call(
        &self,
        method: Method,
        request: &Request,
        mut arrival: Arrival,
    ) -> Result<RunningCall, Fault> {
        let name = match (method.named_by(), request.name.clone()) {
            (_, Some(name)) => name,
            (None, None) => method.as_str().to_owned(),
            (Some(parameter), None) => {
                let reason = format!("`{parameter}` must be a string");
                return Err(Fault::invalid_params(reason));
            }
        };
        let is_reached = arrival.reaches(request);
        arrival.merge(request);
        let inbound = Arc::new(arrival.inbound);
        let params = &request.params;
        let arguments = match params.get("arguments") {
            _ if method != Method::CallTool => request.passed_on.clone(),
            None => Bytes::from_static(b"{}"),
            Some(arguments) if arguments.first() == Some(&b'{') => arguments.clone(),
            Some(_) => {
                let reason = "`arguments` must be an object";
                let why = ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, reason);
                self.backend.refused(&name, &arrival.caller, &inbound, &why);
                return Err(Fault::invalid_params(reason));
            }
        };
        let session = arrival.client;
        let outlet = arrival.reports;
        let outlet = outlet.map(|out| Outlet::new(out, session.clone()));
        let relay = outlet.clone().zip(request.progress_token().cloned());
        let relay = relay.map(|(outlet, token)| Arc::new(Relay::new(token, outlet)) as _);
        let is_modern = arrival.era == Era::Modern;
        let log_level = request.log_level();
        let capabilities = match &session {
            Some(session) => session.capabilities,
            None => request.capabilities(),
        };
        let capabilities = match arrival.era {
            Era::Modern => capabilities,
            Era::Legacy => capabilities.without_extensions(),
        };
        let round = |name| params.get(name).filter(|_| !method.is_of_task()).cloned();
        let is_connected = session
            .as_ref()
            .is_some_and(|session| session.is_connected());
        let client = (is_reached || is_connected).then(|| {
            Arc::new(Reached {
                session,
                outlet: outlet.clone(),
                log_level,
            }) as _
        });
        let call = CallRequest {
            method,
            name: name.clone(),
            arguments,
            caller: arrival.caller,
            trace: arrival.trace.map(Arc::new),
            baggage: arrival.baggage,
            inbound: Some(Arc::clone(&inbound)),
            idempotency_key: request.key.clone(),
            progress: relay,
            is_modern,
            capabilities,
            client,
            input_responses: round("inputResponses"),
            request_state: round("requestState"),
            meta: params
                .get("_meta")
                .filter(|_| request.meta.has_others)
                .cloned(),
        };
        let future = match self.starting(request) {
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
            era: arrival.era,
            method,
            name,
            outlet,
            future: Some(future),
            inbound,
            entered: None,
        })
    }
}

/// Returns `true` if a request for a list names a page: the only one begins without a cursor, or
/// with an empty one.
fn has_unknown_cursor(request: &Request) -> bool {
    let cursor = request.params.get("cursor");
    cursor.is_some_and(|cursor| &cursor[..] != b"\"\"")
}
