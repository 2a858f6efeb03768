//! The backend that the server side serves: its interface to the stack.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use callward_core::{
    BoxFuture, BoxStream, Caller, ClientCapabilities, ClientPeer, IdempotencyKey, Inbound, List,
    Method, PeerObserver, ProgressSink, ToolError, ToolOutput, TraceContext,
};
use serde_json::{Map, Value, json};

use super::listing::Written;
use crate::wire::Era;

/// The backend of the server side: a list of tools, and a way to call them and all else.
pub trait Backend: Send + Sync + 'static {
    /// Returns how the server introduces itself to this caller.
    fn info(&self, caller: &Arc<Caller>) -> Introduction;

    /// Returns the tools this caller may see, as of now. Called for every `tools/list`: it must be
    /// cheap, and return the same listing while its content is the same, for all callers who see
    /// that. The answer is written once for each listing.
    fn tools(&self, caller: &Arc<Caller>) -> Arc<ToolListing>;

    /// Returns the tools this caller may call, as of now, if they are more than it lists: the
    /// headers of a call are checked by them. As cheap as [`tools`](Self::tools), which is the
    /// default.
    fn callable(&self, caller: &Arc<Caller>) -> Arc<ToolListing> {
        self.tools(caller)
    }

    /// Decides whether a caller may ask what the server is or offers: `initialize`,
    /// `server/discover`, and every list. Asked before such a request is answered. Default: always.
    ///
    /// # Errors
    ///
    /// The refusal, where the caller asks too often.
    fn admit_list(&self, caller: &Arc<Caller>) -> Result<(), ToolError> {
        let _ = caller;
        Ok(())
    }

    /// Returns the `_meta` object that the list has for this caller's request with this raw
    /// `_meta`. Default: none.
    fn list_meta(&self, caller: &Arc<Caller>, asked: &Bytes) -> Option<Map<String, Value>> {
        let _ = (caller, asked);
        None
    }

    /// Returns what the answer to a request has to wait for while servers are starting; `None` if
    /// it need not. Anyone who implements it bounds the wait. Default: nothing.
    fn starting(&self, asked: Asked<'_>) -> Option<BoxFuture<'static, ()>> {
        let _ = asked;
        None
    }

    /// Returns `true` if [`call`](Self::call) answers requests of this method, which is not
    /// `tools/call`, for this caller now. Asked for each: it must be cheap. Default: none.
    fn answers(&self, caller: &Caller, method: Method) -> bool {
        let _ = (caller, method);
        false
    }

    /// Executes a request of any method but `tools/list`. Dropping the future cancels it.
    ///
    /// A tool that needs what the client did not declare fails with code −32021.
    fn call(&self, request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// Returns the observer of sessions that ended, and of requests that are answered
    /// without [`call`](Self::call). Each transport calls this once. Default: none.
    fn observer(&self) -> Option<Arc<dyn PeerObserver>> {
        None
    }

    /// Notifies the backend of a call that was refused before it could be made: its arguments are
    /// not an object, or the server stops. Default: does nothing.
    fn refused(&self, tool: &str, caller: &Arc<Caller>, inbound: &Arc<Inbound>, why: &ToolError) {
        let _ = (tool, caller, inbound, why);
    }

    /// Notifies the backend that a session has ended: its client left, deleted it, or was silent
    /// for too long. Must not block. Default: does nothing.
    fn session_ended(&self, caller: &Arc<Caller>) {
        let _ = caller;
    }

    /// Notifies the backend of what the client on a pipe declares, and of the way to a client that
    /// can be asked between its calls, before its first request is answered. Default: does nothing.
    fn introduced(&self, capabilities: ClientCapabilities, client: Option<Arc<dyn ClientPeer>>) {
        let _ = (capabilities, client);
    }

    /// Notifies the backend that the folders which this client works in have changed. Must not
    /// block. Default: does nothing.
    fn roots_changed(&self, caller: &Arc<Caller>) {
        let _ = caller;
    }

    /// Returns what keeps the resources that a client subscribes to; `None` if there are no such
    /// subscriptions. Called once for each session, and for each `subscriptions/listen` that names
    /// resources. Default: none.
    fn subscriber(&self, caller: &Arc<Caller>) -> Option<Arc<dyn Subscriber>> {
        let _ = caller;
        None
    }

    /// Returns a stream with one item for each change of a list that a caller sees. Asked for once
    /// by each client that listens; its end ends the listening.
    fn changes(&self, caller: &Caller) -> BoxStream<'static, List>;
}

/// The resources that one client is subscribed to. Once it is dropped, there are none.
pub trait Subscriber: fmt::Debug + Send + Sync {
    /// Subscribes to the resource that this request reads.
    ///
    /// # Errors
    ///
    /// What the client is answered if it may not subscribe to it.
    fn subscribe(self: Arc<Self>, read: CallRequest) -> BoxFuture<'static, Result<(), ToolError>>;

    /// Ends the subscription to a resource, if there is one.
    fn unsubscribe(&self, uri: &str);

    /// Returns a stream with the URI of a resource, as clients see it, for each time that it was
    /// updated.
    fn updates(self: Arc<Self>) -> BoxStream<'static, String>;
}

/// What a client asks for, as far as its answer depends on which servers have started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asked<'a> {
    /// [`Backend::info`]: `initialize` or `server/discover`.
    Info,
    /// [`Backend::tools`], or a request of a method other than `tools/call`.
    Tools,
    /// [`Backend::call`] of the tool of this name.
    Call(&'a str),
}

/// How the server introduces itself to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Introduction {
    /// The programmatic name.
    pub name: String,
    /// The name people read. Default: none.
    pub title: Option<String>,
    /// The version of the software.
    pub version: String,
    /// Guidance for the model. Default: none.
    pub instructions: Option<String>,
    /// The methods to declare beside `tools/call`: those that are or may soon be answered. Legacy
    /// clients ask for no other. Default: none.
    pub methods: Vec<Method>,
    /// Whether to declare that log messages are sent. Default: `false`.
    pub logging: bool,
    /// Whether to declare that clients may subscribe to resources. Default: `false`.
    pub subscribe: bool,
}

impl Introduction {
    /// Takes name and version.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            version: version.into(),
            instructions: None,
            methods: Vec::new(),
            logging: false,
            subscribe: false,
        }
    }
}

/// The tools clients may see, at one moment.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ToolListing {
    /// Names what the listing was made from, for the backend alone.
    pub generation: u64,
    tools: Vec<Bytes>,
    pub(super) written: OnceLock<Written>,
}

impl ToolListing {
    /// Takes the tools as raw JSON objects, with the names clients see, in a stable order.
    #[must_use]
    pub const fn new(generation: u64, tools: Vec<Bytes>) -> Self {
        Self {
            generation,
            tools,
            written: OnceLock::new(),
        }
    }

    /// Returns the tools.
    #[must_use]
    pub fn tools(&self) -> &[Bytes] {
        &self.tools
    }
}

/// One call, as a client asked for it.
#[non_exhaustive]
pub struct CallRequest {
    /// The method.
    pub method: Method,
    /// What it is about, as clients see it: the name of a tool or of a prompt, the URI of a
    /// resource, or else the method. Not checked: the lookup does that.
    pub name: String,
    /// The arguments of a tool, `{}` where the client gave none, or the parameters of another
    /// method without `_meta`: a raw JSON object.
    pub arguments: Bytes,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The trace context to continue: that of the message, or else that of the HTTP request.
    pub trace: Option<Arc<TraceContext>>,
    /// The baggage the client sent, as it came. None of it may be passed on unless it is listed:
    /// see [`BaggageFilter`](callward_core::BaggageFilter).
    pub baggage: Option<String>,
    /// The request that the call came as.
    pub inbound: Option<Arc<Inbound>>,
    /// The idempotency key of the client, if there is one: a repeated key means the same call.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Where progress goes, if the client asked for it.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// Whether the client speaks 2026-07-28 or later: it is asked by results that want input, and
    /// answers in a further round.
    pub is_modern: bool,
    /// What servers may ask of the client.
    pub capabilities: ClientCapabilities,
    /// The client, if it can be asked meanwhile, or wants to read log messages.
    pub client: Option<Arc<dyn ClientPeer>>,
    /// The client's answers in a multi-round exchange: the raw `inputResponses` object.
    pub input_responses: Option<Bytes>,
    /// The state a multi-round exchange continues from: the raw `requestState` string, quotes
    /// included. It comes from the client: check it before believing it.
    pub request_state: Option<Bytes>,
    /// The raw `_meta` object of the request, if it has keys beside those that are read into the
    /// other fields.
    pub meta: Option<Bytes>,
}

impl CallRequest {
    /// Returns a request to read a resource, without a client that could be asked meanwhile.
    pub(super) fn read(uri: &str, era: Era, caller: &Arc<Caller>, inbound: &Arc<Inbound>) -> Self {
        Self {
            method: Method::ReadResource,
            name: uri.to_owned(),
            arguments: json!({"uri": uri}).to_string().into(),
            caller: caller.clone(),
            trace: None,
            baggage: None,
            inbound: Some(inbound.clone()),
            idempotency_key: None,
            progress: None,
            is_modern: era == Era::Modern,
            capabilities: ClientCapabilities::default(),
            client: None,
            input_responses: None,
            request_state: None,
            meta: None,
        }
    }
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // arguments and answers may be secret: only their size is shown
        f.debug_struct("CallRequest")
            .field("name", &self.name)
            .field("argument_bytes", &self.arguments.len())
            .field("caller", &self.caller)
            .field("trace", &self.trace)
            .field("progress", &self.progress.is_some())
            .finish_non_exhaustive()
    }
}
