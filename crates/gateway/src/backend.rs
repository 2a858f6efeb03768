//! The stack as the backend of the MCP endpoint.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::readable::{self, Unreadable};
use callward::core::{
    BoxFuture, BoxStream, CallMeta, Inbound, PeerObserver, PeerOutcome, PeerRequest, PeerSide,
};
use callward::registry::Entry;
use callward::{
    Caller, Delivery, ErrorKind, ServerId, Stack, ToolCall, ToolError, ToolOutput, ToolServer,
};
use callward_mcp::server::{Asked, Backend, CallRequest, Introduction, ToolListing};
use futures_util::StreamExt as _;
use serde_json::{Map, Value};

use crate::assemble::with;
use crate::listings::Listings;
use crate::runtime::Runtime;
use crate::{instructions, report, view};

/// The key of `_meta` under which a request for the list asks for plans, and the list has them.
const PLANS: &str = "io.callward/plans";

/// Returns `true` unless the rules hide the tool that an error names to check with.
fn knows_verifier(stack: &Stack, caller: &Caller, error: &ToolError) -> bool {
    let verifier = error
        .outcome
        .as_ref()
        .and_then(|it| it.verify_with.as_ref());
    let (Some(verifier), Some(policy)) = (verifier, stack.policy()) else {
        return true;
    };
    let entry = stack.catalogue().find(verifier).cloned();
    entry.is_some_and(|entry| policy.lists(caller, entry.tool()))
}

/// Serves a stack.
pub(crate) struct StackBackend {
    runtime: Arc<Runtime>,
    listings: Arc<Listings>,
}

impl StackBackend {
    pub(crate) fn new(runtime: Arc<Runtime>) -> Arc<Self> {
        let listings = Arc::default();
        Arc::new(Self { runtime, listings })
    }

    /// Reports a refused request. The name is left out: a name that no tool has is in no metric.
    fn refuse(&self, error: ToolError) -> ToolError {
        let request = PeerRequest {
            side: PeerSide::Server,
            method: "tools/call",
            tool: None,
            server: None,
            outcome: PeerOutcome::Failed(&error),
        };
        let observer = self.runtime.telemetry.observer();
        observer.request_ended(&request, Duration::ZERO);
        error
    }

    /// Returns the servers of which the rules leave no tool to this caller: their instructions name
    /// tools.
    fn hidden_from(&self, caller: &Caller) -> Vec<ServerId> {
        let Some(policy) = self.runtime.stack.policy() else {
            return Vec::new();
        };
        let catalogue = self.runtime.stack.catalogue();
        let tools = catalogue.entries().iter().map(|entry| entry.tool());
        let listed = tools.filter(|tool| policy.lists(caller, tool));
        let listed: HashSet<_> = listed.map(|tool| tool.set()).collect();
        let servers = self.runtime.stack.servers().into_iter();
        let hidden = servers.filter(|server| !listed.contains(&server.set));
        hidden.map(|server| server.id).collect()
    }

    fn start(&self, request: CallRequest) -> Result<ToolCall, ToolError> {
        let not_sent = |kind, why: String| ToolError::new(kind, Delivery::NotSent, why);
        if self.runtime.stop.cut_off.is_cancelled() {
            let why = "the gateway is stopping; call again once it runs".into();
            return Err(not_sent(ErrorKind::Overloaded, why));
        }
        let refused = |why| not_sent(ErrorKind::InvalidCall, why);
        if request.input_responses.is_some() || request.request_state.is_some() {
            // the state belongs to one upstream's exchange, and calls of the stack carry none
            return Err(refused(
                "multi-round exchanges are not carried; call the tool with all its arguments"
                    .into(),
            ));
        }
        // a server that cannot read them may break its connection, which would count against it
        if let Err(Unreadable::Depth(levels)) = readable::check(&request.arguments) {
            return Err(refused(format!(
                "the arguments nest deeper than {levels} levels; make them flatter"
            )));
        }
        let meta = request.meta.as_deref().map(CallMeta::parse).transpose();
        let meta = meta.map_err(|error| refused(error.to_string()))?.flatten();
        let mut call =
            self.runtime
                .stack
                .prepare_as(&request.name, request.arguments, request.caller)?;
        let baggage = request.baggage.as_deref();
        let baggage = baggage.and_then(|baggage| self.runtime.baggage.pass(baggage));
        let context = call.context_mut();
        context.meta = meta.map(Arc::new);
        context.trace = request.trace;
        context.inbound = request.inbound;
        context.baggage = baggage;
        let key = request.idempotency_key;
        let call = with(call, key, ToolCall::with_idempotency_key);
        Ok(with(call, request.progress, ToolCall::with_progress))
    }
}

impl Backend for StackBackend {
    fn info(&self, caller: &Arc<Caller>) -> Introduction {
        let mut info = Introduction::new("callward", env!("CARGO_PKG_VERSION"));
        info.title = Some("Callward".to_owned());
        let hidden = self.hidden_from(caller);
        // asked for each time: clients that connect after a late server see its instructions
        let said = self.runtime.upstreams.iter().map(|server| {
            let said = server
                .server_info()
                .filter(|_| !hidden.contains(server.id()));
            let instructions = said.and_then(|said| said.instructions.clone());
            (server.id().as_str(), instructions)
        });
        info.instructions = instructions::combined(said);
        info
    }

    fn tools(&self, caller: &Arc<Caller>) -> Arc<ToolListing> {
        self.listings.of(&self.runtime.stack, caller)
    }

    fn admit_list(&self, caller: &Arc<Caller>) -> Result<(), ToolError> {
        self.runtime.stack.admit_list(caller)
    }

    fn list_meta(&self, caller: &Arc<Caller>, asked: &Bytes) -> Option<Map<String, Value>> {
        if !report::is_asked(asked, PLANS) {
            return None;
        }
        let catalogue = self.runtime.stack.catalogue();
        let plan = |entry: &Arc<Entry>| {
            let tool = entry.tool();
            let plan = view::plan(tool, tool.plan(), &tool.resolved);
            (entry.client_name().to_owned(), plan)
        };
        let policy = self.runtime.stack.policy();
        let listed =
            |entry: &&Arc<Entry>| policy.is_none_or(|policy| policy.lists(caller, entry.tool()));
        let plans: Map<_, _> = catalogue
            .entries()
            .iter()
            .filter(listed)
            .map(plan)
            .collect();
        Some(Map::from_iter([(PLANS.to_owned(), plans.into())]))
    }

    fn starting(&self, asked: Asked<'_>) -> Option<BoxFuture<'static, ()>> {
        let Runtime { started, stack, .. } = &*self.runtime;
        if started.is_finished() {
            return None;
        }
        let Asked::Call(tool) = asked else {
            return Some(match asked {
                Asked::Info => Box::pin(started.soon()),
                _ => Box::pin(started.finished()),
            });
        };
        // subscribed before the catalogue is read, so that no change is missed
        let (mut changes, stack, tool) = (stack.changes(), stack.clone(), tool.to_owned());
        let listed = async move {
            while stack.catalogue().find(&tool).is_none() && changes.next().await.is_some() {}
        };
        let finished = started.finished();
        Some(Box::pin(async move {
            tokio::select! {
                () = finished => {}
                () = listed => {}
            }
        }))
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let counted = self.runtime.stop.calls.token();
        let name = request.name.clone();
        let reports = self.runtime.reports.or_asked(request.meta.as_ref());
        let (caller, inbound) = (request.caller.clone(), request.inbound.clone());
        let call = self.start(request).map_err(|error| {
            // no call was made, so no layer saw it
            let stack = &self.runtime.stack;
            let error = stack.admit_unknown(&caller).err().unwrap_or(error);
            stack.note_refused(&name, &caller, inbound.as_ref(), &error);
            self.refuse(error)
        });
        let (stack, recorder) = (self.runtime.stack.clone(), self.runtime.recorder.clone());
        Box::pin(async move {
            let _counted = counted;
            let (call, taken) = reports.begin(call?);
            let result = recorder.run(&stack, &name, call).await;
            let result = result.map_err(|error| match knows_verifier(&stack, &caller, &error) {
                true => error,
                false => error.without_verifier(),
            });
            match taken {
                Some(taken) => taken.tell(result),
                None => result,
            }
        })
    }

    fn observer(&self) -> Option<Arc<dyn PeerObserver>> {
        Some(self.runtime.telemetry.observer())
    }

    fn refused(&self, tool: &str, caller: &Arc<Caller>, inbound: &Arc<Inbound>, why: &ToolError) {
        let stack = &self.runtime.stack;
        stack.note_refused(tool, caller, Some(inbound), why);
    }

    fn session_ended(&self, caller: &Arc<Caller>) {
        self.runtime.stack.end_session(caller);
    }

    fn changes(&self, caller: &Caller) -> BoxStream<'static, ()> {
        self.listings.changes(&self.runtime.stack, caller)
    }
}
