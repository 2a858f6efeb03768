//! Requests in several rounds (2026-07-28): a result asks the client for input, and the client sends
//! the request again with its answers.
//!
//! A server of that revision asks so by itself: its state is sealed, and the next round goes to the
//! same server. A server of an earlier revision asks while its call runs: the call stays open, and
//! the next round finds it.

mod open;
mod seal;
mod tasks;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use callward::core::{CallClient, ClientPeer, OutputStatus, Round};
use callward::{CallRecord, Delivery, ErrorKind, Principal, ServerId, ToolError, ToolOutput};
use callward_mcp::server::CallRequest;
use callward_mcp::wire::object;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;

use self::open::{OpenCall, Questions};
use self::seal::{Sealer, State};

/// How many calls may wait for the next round of their clients, in all and of one principal.
const MAX_OPEN: usize = 256;
const MAX_OPEN_EACH: usize = 16;

/// The rounds of all clients.
pub(crate) struct Rounds {
    sealer: Sealer,
    open: Mutex<HashMap<u64, (Principal, OpenCall)>>,
    next: AtomicU64,
}

/// What a request is in its exchange.
pub(crate) enum Turn {
    /// A call: the first round, or a further one of a server that goes on from its own state.
    Call(Exchange),
    /// The next round of a call that is still open.
    Open(OpenCall, Binding),
}

/// How one call asks its client.
#[derive(Default)]
pub(crate) struct Exchange {
    /// The answers to a server that asked in a result, and that server.
    pub(crate) round: Option<(Arc<Round>, ServerId)>,
    /// The client, if it can be asked or notified.
    pub(crate) client: Option<CallClient>,
    /// The questions of servers, for a client that is asked by results.
    pub(crate) questions: Option<Questions>,
    /// The request that asks, if its client is asked by results.
    pub(crate) binding: Option<Binding>,
}

/// The request that a state belongs to.
#[derive(Clone)]
pub(crate) struct Binding {
    principal: Principal,
    bytes: Vec<u8>,
}

impl Rounds {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            sealer: Sealer::new(),
            open: Mutex::default(),
            next: AtomicU64::new(0),
        })
    }

    /// Returns what a request is in its exchange.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`] if its state is not one of this process for such a request.
    pub(crate) fn turn(&self, request: &CallRequest) -> Result<Turn, ToolError> {
        let mut exchange = Exchange::default();
        if !request.is_modern {
            let client = request.client.clone();
            exchange.client = client.map(|client| CallClient::new(client, false));
            return Ok(Turn::Call(exchange));
        }
        if request.request_state.is_some() || request.input_responses.is_some() {
            let binding = self.binding(request);
            let state = request.request_state.as_ref();
            let state = state.and_then(|state| self.sealer.open(&binding.bytes, state));
            match state.ok_or_else(unknown)? {
                State::Server { id, state } => {
                    let round = Round {
                        responses: request.input_responses.clone(),
                        state: state.map(|state| Bytes::from(state.get().to_owned())),
                    };
                    exchange.round = Some((Arc::new(round), id));
                }
                State::Task(_) => return Err(unknown()),
                State::Open(number) => {
                    let open = self.open.lock().remove(&number);
                    let (_, mut open) = open.ok_or_else(unknown)?;
                    open.answer(request.input_responses.as_ref())?;
                    return Ok(Turn::Open(open, binding));
                }
            }
        }
        if !request.capabilities.is_empty() || request.client.is_some() {
            let (asker, questions) = open::questions(request.client.clone());
            let asker: Arc<dyn ClientPeer> = Arc::new(asker);
            exchange.client = Some(CallClient::new(asker, true));
            exchange.questions = Some(questions);
            exchange.binding = Some(self.binding(request));
        }
        Ok(Turn::Call(exchange))
    }

    fn binding(&self, request: &CallRequest) -> Binding {
        Binding {
            principal: request.caller.principal.clone(),
            bytes: self.sealer.binding(request),
        }
    }

    /// Waits until an open call has an answer or asks. If it asks, it stays open for the next round.
    pub(crate) async fn go_on(
        self: &Arc<Self>,
        mut open: OpenCall,
        binding: Binding,
    ) -> Result<ToolOutput, ToolError> {
        if let Some(result) = open.answered().await {
            return result;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let asked = open.asked();
        let state = self.sealed(&binding, State::Open(number))?;
        let principal = binding.principal;
        let until_then = Arc::downgrade(self);
        {
            let mut waiting = self.open.lock();
            let own = waiting.values().filter(|(owner, _)| *owner == principal);
            if waiting.len() >= MAX_OPEN || own.count() >= MAX_OPEN_EACH {
                let text = format!(
                    "the tool asks for input, and {MAX_OPEN_EACH} calls of this client, or \
                     {MAX_OPEN} of all, wait for input already: answer those first"
                );
                return Err(ToolError::new(
                    ErrorKind::Overloaded,
                    Delivery::Unknown,
                    text,
                ));
            }
            waiting.insert(number, (principal, open.apart()));
        }
        tokio::spawn(async move {
            tokio::time::sleep(seal::LIFETIME).await;
            if let Some(rounds) = until_then.upgrade() {
                rounds.open.lock().remove(&number);
            }
        });
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{asked},"requestState":{state}}}"#
        );
        ToolOutput::from_json(result).map_err(|error| internal(error.to_string()))
    }

    /// Runs a call to its answer, or until it asks its client.
    pub(crate) async fn run(
        self: &Arc<Self>,
        call: impl Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
        asks: Option<(Questions, Binding)>,
    ) -> Result<ToolOutput, ToolError> {
        match asks {
            None => call.await,
            Some((questions, binding)) => {
                let open = OpenCall::new(call, questions);
                self.go_on(open, binding).await
            }
        }
    }

    /// Seals the state of a result that asks for input; others stay as they are. The record has the
    /// server that answered.
    pub(crate) fn seal(
        &self,
        output: ToolOutput,
        binding: Option<&Binding>,
        record: Option<&Arc<CallRecord>>,
    ) -> Result<ToolOutput, ToolError> {
        if output.status() != OutputStatus::InputRequired {
            return Ok(output);
        }
        let (Some(binding), Some(id)) = (binding, answerer(record)) else {
            return Err(internal("it is not known which server asks for input"));
        };
        let own = object::get_member(output.body(), "requestState");
        let own = own.map_err(|error| internal(error.to_string()))?;
        let own = own.map(serde_json::from_slice::<Box<RawValue>>);
        let state = own
            .transpose()
            .map_err(|error| internal(error.to_string()))?;
        let state = self.sealed(binding, State::Server { id, state })?;
        let sealed = object::set_member(output.body(), "requestState", state.as_bytes());
        let sealed = sealed.map_err(|error| internal(error.to_string()))?;
        ToolOutput::from_json(sealed).map_err(|error| internal(error.to_string()))
    }

    fn sealed(&self, binding: &Binding, state: State) -> Result<String, ToolError> {
        let sealed = self.sealer.seal(&binding.bytes, state, seal::LIFETIME);
        sealed.map_err(|_| internal("the state of the exchange cannot be sealed"))
    }
}

/// Returns the server that answered a call.
fn answerer(record: Option<&Arc<CallRecord>>) -> Option<ServerId> {
    let (server, _) = record?.facts().server?;
    Some(server)
}

/// The error of a state that is none.
fn unknown() -> ToolError {
    let text = "`requestState` is not one of this gateway for this request, or is too old: call \
                again without it and without `inputResponses`";
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text).with_code(-32602)
}

fn internal(text: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::Internal, Delivery::Unknown, text.into())
}

/// Writes the questions of a round.
fn written(questions: impl Iterator<Item = (String, Value)>) -> String {
    Value::Object(questions.collect()).to_string()
}
