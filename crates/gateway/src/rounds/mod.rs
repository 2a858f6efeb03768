//! Requests in several rounds (2026-07-28): a result asks the client for input, and the client
//! sends the request again with its answers.
//!
//! A server of that revision asks so by itself: its state is sealed, and the next round goes to the
//! same server. A server of an earlier revision asks while its call runs: the call stays open, and
//! the next round finds it.

mod open;
mod seal;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use callward::core::{CallClient, Method, OutputStatus, Round};
use callward::{
    CallRecord, Caller, Delivery, ErrorKind, Principal, ServerId, ToolError, ToolOutput,
};
use callward_mcp::server::CallRequest;
use callward_mcp::wire::object;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::open::{Asks, OpenCall, RoundsClient};
use self::seal::{Sealer, State};

/// How many calls may wait for the next round of their clients, in all and of one principal.
const MAX_OPEN: usize = 256;
const MAX_OPEN_EACH: usize = 16;

/// The rounds of all clients.
pub(crate) struct Rounds {
    sealer: Sealer,
    /// By number: the first is the oldest.
    open: Mutex<BTreeMap<u64, Waiting>>,
    next: AtomicU64,
    /// Nothing waits for a client any more once it fires.
    closing: CancellationToken,
}

/// An open call that waits for the next round of its client.
struct Waiting {
    principal: Principal,
    until: Instant,
    call: OpenCall,
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
    /// The client, and its questions, if it is asked by results.
    pub(crate) asks: Option<Asks>,
    /// The request, if its client takes results that ask it to call again.
    pub(crate) binding: Option<Binding>,
    /// How many rounds it has waited for approval.
    pub(crate) waited: u8,
}

impl Exchange {
    /// SDKs end a call after 10 rounds with an error of their own; before, it gets an answer.
    const MAX_WAITS: u8 = 8;

    /// Returns `true` if the call may be asked to come again.
    pub(crate) fn takes_rounds(&self) -> bool {
        self.binding.is_some() && self.waited < Self::MAX_WAITS
    }
}

/// The request that a state belongs to.
#[derive(Clone)]
pub(crate) struct Binding {
    caller: Arc<Caller>,
    method: Method,
    name: String,
    arguments: Bytes,
}

impl Binding {
    fn of(request: &CallRequest) -> Self {
        Self {
            caller: request.caller.clone(),
            method: request.method,
            name: request.name.clone(),
            arguments: request.arguments.clone(),
        }
    }
}

impl Rounds {
    /// `closing` fires when the process stops: what waits for a client then is given up.
    pub(crate) fn new(closing: CancellationToken) -> Arc<Self> {
        let rounds = Arc::new(Self {
            sealer: Sealer::new(),
            open: Mutex::default(),
            next: AtomicU64::new(0),
            closing: closing.clone(),
        });
        let weak = Arc::downgrade(&rounds);
        tokio::spawn(async move {
            closing.cancelled().await;
            if let Some(rounds) = weak.upgrade() {
                let _given_up = std::mem::take(&mut *rounds.open.lock());
            }
        });
        rounds
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
        let binding = Binding::of(request);
        if request.request_state.is_some() || request.input_responses.is_some() {
            let state = request.request_state.as_ref();
            let bound = self.sealer.binding(&binding);
            let state = state.and_then(|state| self.sealer.open(&bound, state));
            let answers = open::answers(request.input_responses.as_ref())?;
            match state.ok_or_else(unknown)? {
                State::Server { id, state } => {
                    let round = Round {
                        responses: request.input_responses.clone(),
                        state: state.map(|state| Bytes::from(state.get().to_owned())),
                    };
                    exchange.round = Some((Arc::new(round), id));
                }
                State::Task(_) => return Err(unknown()),
                // its request is found by the call itself
                State::Approval(rounds) => exchange.waited = rounds,
                State::Open(number) => {
                    let waiting = self.open.lock().remove(&number);
                    let mut open = waiting.ok_or_else(unknown)?.call;
                    open.client.calls(request);
                    open.answer(&answers);
                    return Ok(Turn::Open(open, binding));
                }
            }
        }
        if !request.capabilities.is_empty() || request.client.is_some() {
            let (client, questions) = RoundsClient::new();
            client.calls(request);
            exchange.client = Some(CallClient::new(client.clone(), true));
            exchange.asks = Some((client, questions));
        }
        exchange.binding = Some(binding);
        Ok(Turn::Call(exchange))
    }

    /// Waits until an open call has an answer or asks. If it asks, it stays open for the next
    /// round.
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
        self.keep(number, open, binding.caller.principal.clone())?;
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{asked},"requestState":{state}}}"#
        );
        ToolOutput::from_json(result).map_err(|error| internal(error.to_string()))
    }

    /// Keeps a call open for the next round of its client. Of one principal the oldest is given up
    /// for it if there are too many: its client may have left.
    fn keep(&self, number: u64, open: OpenCall, principal: Principal) -> Result<(), ToolError> {
        let refused = |text: &str| {
            let text = format!("the tool asks for input, and {text}");
            Err(ToolError::new(
                ErrorKind::Overloaded,
                Delivery::Unknown,
                text,
            ))
        };
        if open.is_over() {
            return refused("its client was asked too often");
        }
        let now = Instant::now();
        // dropped outside of the lock
        let mut given_up = Vec::new();
        let mut waiting = self.open.lock();
        given_up.extend(waiting.extract_if(.., |_, one| one.until <= now));
        let own = waiting.iter().filter(|(_, one)| one.principal == principal);
        let own: Vec<_> = own.map(|(number, _)| *number).collect();
        if let Some(oldest) = own.first().filter(|_| own.len() >= MAX_OPEN_EACH) {
            given_up.extend(waiting.remove_entry(oldest));
        }
        if waiting.len() >= MAX_OPEN {
            return refused("too many calls wait for input: call again later");
        }
        if self.closing.is_cancelled() {
            return refused("the gateway is stopping: call again once it runs");
        }
        let until = now + seal::LIFETIME;
        let call = open.apart();
        waiting.insert(
            number,
            Waiting {
                principal,
                until,
                call,
            },
        );
        drop(waiting);
        Ok(())
    }

    /// Runs a call to its answer, or until it asks its client.
    pub(crate) async fn run(
        self: &Arc<Self>,
        call: impl Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
        asks: Option<(Asks, Binding)>,
    ) -> Result<ToolOutput, ToolError> {
        match asks {
            None => call.await,
            Some((asks, binding)) => {
                let open = OpenCall::new(call, asks);
                self.go_on(open, binding).await
            }
        }
    }

    /// Seals the state of a result that asks for input; others stay as they are. The record has the
    /// server that answered.
    pub(crate) fn seal(
        &self,
        output: ToolOutput,
        exchange: &Exchange,
        record: Option<&Arc<CallRecord>>,
    ) -> Result<ToolOutput, ToolError> {
        let waited = exchange.waited;
        let is_asking = match output.status() {
            OutputStatus::Waits => false,
            OutputStatus::InputRequired => true,
            _ => return Ok(output),
        };
        let Some(binding) = &exchange.binding else {
            return Err(internal("it is not known which request asks for input"));
        };
        if !is_asking {
            let rounds = waited.saturating_add(1);
            let state = self.sealed(binding, State::Approval(rounds))?;
            return with_state(&output, &state);
        }
        let Some(id) = answerer(record) else {
            return Err(internal("it is not known which server asks for input"));
        };
        let own = object::get_member(output.body(), "requestState");
        let own = own.map_err(|error| internal(error.to_string()))?;
        let own = own.map(serde_json::from_slice::<Box<RawValue>>);
        let state = own
            .transpose()
            .map_err(|error| internal(error.to_string()))?;
        let state = self.sealed(binding, State::Server { id, state })?;
        with_state(&output, &state)
    }

    fn sealed(&self, binding: &Binding, state: State) -> Result<String, ToolError> {
        let bound = self.sealer.binding(binding);
        let sealed = self.sealer.seal(&bound, state, seal::LIFETIME);
        sealed.map_err(|_| internal("the state of the exchange cannot be sealed"))
    }
}

/// Puts a state, a JSON string, in place of the one of a result.
fn with_state(output: &ToolOutput, state: &str) -> Result<ToolOutput, ToolError> {
    let sealed = object::set_member(output.body(), "requestState", state.as_bytes());
    let sealed = sealed.map_err(|error| internal(error.to_string()))?;
    ToolOutput::from_json(sealed).map_err(|error| internal(error.to_string()))
}

/// Returns the server that answered a call.
fn answerer(record: Option<&Arc<CallRecord>>) -> Option<ServerId> {
    let (server, _) = record?.facts().server?;
    Some(server)
}

/// The error of a state that cannot be used.
fn unknown() -> ToolError {
    let text = "`requestState` is not one of this gateway for this request, or is too old: call \
                again without it and without `inputResponses`";
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text).with_code(-32602)
}

fn internal(text: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::Internal, Delivery::Unknown, text.into())
}
