//! The stack as the backend of the MCP endpoint.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::readable::{self, Unreadable};
use callward::core::{
    BoxFuture, BoxStream, CallClient, CallMeta, ClientCapabilities, ClientPeer, Inbound, List,
    Method, PeerObserver, PeerOutcome, PeerRequest, PeerSide,
};
use callward::registry::Entry;
use callward::{
    CallRecord, Caller, Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolOutput, ToolServer,
};
use callward_mcp::client::{OnlyClient, Upstream};
use callward_mcp::server::{Asked, Backend, CallRequest, Introduction, Subscriber, ToolListing};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::assemble::with;
use crate::config::ListingMode;
use crate::listings::{Listings, Seen};
use crate::rounds::{Exchange, Turn};
use crate::runtime::Runtime;
use crate::subscriptions::Subscribed;
use crate::{builtin, instructions, missing, relay, report, view};

/// The key of `_meta` under which a request for the list asks for plans, and the list has them.
const PLANS: &str = "io.callward/plans";

/// Returns `true` unless the caller does not see the tool that an error names to check with.
fn knows_verifier(runtime: &Runtime, caller: &Caller, error: &ToolError) -> bool {
    let outcome = error.outcome.as_ref();
    let verifier = outcome.and_then(|it| it.verify_with.as_ref());
    let catalogue = runtime.stack.catalogue();
    let entry = verifier.and_then(|verifier| catalogue.find(verifier));
    entry.is_none_or(|entry| runtime.shows(caller, entry))
}

/// Serves a stack.
pub(crate) struct StackBackend {
    runtime: Arc<Runtime>,
    listings: Arc<Listings>,
    /// Where the client goes, if this process serves only one.
    introduced: Option<watch::Sender<Option<OnlyClient>>>,
}

impl StackBackend {
    pub(crate) fn new(runtime: Arc<Runtime>) -> Arc<Self> {
        Arc::new(Self {
            listings: Listings::new(runtime.listing),
            runtime,
            introduced: None,
        })
    }

    /// Serves one client alone.
    pub(crate) fn for_one(
        runtime: Arc<Runtime>,
        introduced: watch::Sender<Option<OnlyClient>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            listings: Listings::new(runtime.listing),
            runtime,
            introduced: Some(introduced),
        })
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

    fn seen(&self, caller: &Caller) -> Seen {
        let (stack, toolsets) = (&self.runtime.stack, self.runtime.toolsets.as_ref());
        self.listings.of(stack, toolsets, caller)
    }

    /// Returns `true` if some server has the extension for tasks.
    fn have_tasks(&self) -> bool {
        let upstreams = self.runtime.upstreams.iter();
        let mut said = upstreams.filter_map(Upstream::server_info);
        said.any(|said| said.methods.contains(&Method::GetTask))
    }
}

fn start(
    runtime: &Runtime,
    request: &CallRequest,
    exchange: &Exchange,
) -> Result<ToolCall, ToolError> {
    let meta = check(runtime, request)?;
    let (stack, caller) = (&runtime.stack, request.caller.clone());
    if let Some(active) = runtime.active(&caller) {
        let entry = stack.catalogue().find(&request.name).cloned();
        if entry.is_none_or(|entry| active.listed(&entry).is_none()) {
            let hint = format_args!("the toolset `{}` has no such tool", active.name);
            return Err(ToolError::unknown_tool(&request.name, hint));
        }
    }
    let call = stack.prepare_as(&request.name, request.arguments.clone(), caller)?;
    let call = of_client(runtime, call, request, meta, exchange);
    let key = request.idempotency_key.clone();
    Ok(with(call, key, ToolCall::with_idempotency_key))
}

/// Starts a call, with the arguments that the person at the client adds.
async fn start_whole(
    runtime: &Runtime,
    mut request: CallRequest,
    exchange: &Exchange,
) -> Result<ToolCall, ToolError> {
    let call = start(runtime, &request, exchange)?;
    if !runtime.ask_missing {
        return Ok(call);
    }
    let Some(arguments) = missing::whole(runtime, &call, &request.name).await? else {
        return Ok(call);
    };
    request.arguments = arguments;
    // the time that the person took is not the call's
    start(runtime, &request, exchange)
}

/// Reports a refused request. The name is left out: a name that no tool has is in no metric.
fn refuse(runtime: &Runtime, method: Method, error: ToolError) -> ToolError {
    let request = PeerRequest {
        side: PeerSide::Server,
        method: method.as_str(),
        tool: None,
        server: None,
        outcome: PeerOutcome::Failed(&error),
    };
    let observer = runtime.telemetry.observer();
    observer.request_ended(&request, Duration::ZERO);
    error
}

/// Checks a request of any method before calls are made for it, and reads what of its `_meta` goes
/// to servers.
fn check(runtime: &Runtime, request: &CallRequest) -> Result<Option<Arc<CallMeta>>, ToolError> {
    let not_sent = |kind, why: String| ToolError::new(kind, Delivery::NotSent, why);
    if runtime.stop.cut_off.is_cancelled() {
        let why = "the gateway is stopping; call again once it runs".into();
        return Err(not_sent(ErrorKind::Overloaded, why));
    }
    let refused = |why| not_sent(ErrorKind::InvalidCall, why);
    // a server that cannot read them may break its connection, which would count against it
    if let Err(Unreadable::Depth(levels)) = readable::check(&request.arguments) {
        return Err(refused(format!(
            "the arguments nest deeper than {levels} levels; make them flatter"
        )));
    }
    let meta = request.meta.as_deref().map(CallMeta::parse).transpose();
    let meta = meta.map_err(|error| refused(error.to_string()))?;
    Ok(meta.flatten().map(Arc::new))
}

/// Adds the context of a client's request to a call.
fn of_client(
    runtime: &Runtime,
    call: ToolCall,
    request: &CallRequest,
    meta: Option<Arc<CallMeta>>,
    exchange: &Exchange,
) -> ToolCall {
    let mut call = call.with_caller(request.caller.clone());
    let baggage = request.baggage.as_deref();
    let baggage = baggage.and_then(|baggage| runtime.baggage.pass(baggage));
    let context = call.context_mut();
    context.meta = meta;
    context.trace.clone_from(&request.trace);
    context.inbound.clone_from(&request.inbound);
    context.baggage = baggage;
    context.capabilities = request.capabilities;
    context.client.clone_from(&exchange.client);
    context.takes_rounds = exchange.takes_rounds();
    if exchange.client.is_some() || request.capabilities.take_tasks() {
        // it names the server that asks, or runs the task
        context
            .record
            .get_or_insert_with(|| Arc::new(CallRecord::for_counting()));
    }
    if let Some((round, server)) = &exchange.round {
        context.round = Some(round.clone());
        context.pin = Some(server.clone());
    }
    with(call, request.progress.clone(), ToolCall::with_progress)
}

/// Answers a request of a method other than `tools/call`, and returns who has what it is about.
pub(crate) async fn relayed(
    runtime: &Runtime,
    request: CallRequest,
    exchange: Exchange,
    refusal: Option<ToolError>,
) -> Result<(Option<relay::Owner>, ToolOutput), ToolError> {
    let (method, stack) = (request.method, &runtime.stack);
    let refused = |error| {
        let error = stack.admit_unknown(&request.caller).err().unwrap_or(error);
        let name = format!("{method} {}", request.name);
        stack.note_refused(&name, &request.caller, request.inbound.as_ref(), &error);
        refuse(runtime, method, error)
    };
    if let Some(error) = refusal {
        return Err(refused(error));
    }
    let meta = check(runtime, &request).map_err(refused)?;
    if method.is_of_task() {
        let (call, task) = runtime.rounds.of_task(stack, &request).map_err(refused)?;
        let call = of_client(runtime, call, &request, meta, &exchange);
        let shown = task.shown(stack.run(call).await, &request)?;
        return Ok((None, shown));
    }
    let pin = exchange.round.as_ref().map(|(_, server)| server);
    let relayed = relay::Request {
        pin,
        stack,
        caller: &request.caller,
        method,
        name: &request.name,
        params: &request.arguments,
        is_modern: request.is_modern,
    };
    let run = async |call| {
        let call = of_client(runtime, call, &request, meta.clone(), &exchange);
        let record = call.record.clone();
        let output = stack.run(call).await?;
        runtime.rounds.seal(output, &exchange, record.as_ref())
    };
    relayed.answer(run, refused).await
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
        let mut servers = self.runtime.stack.servers().into_iter();
        let all_up = servers.all(|server| server.up);
        let upstreams = self.runtime.upstreams.iter();
        let said: Vec<_> = upstreams.filter_map(Upstream::server_info).collect();
        info.logging = !all_up || said.iter().any(|said| said.logging);
        info.subscribe = !all_up || said.iter().any(|said| said.subscribes);
        info.methods = match all_up {
            true => relay::methods(&self.runtime.stack, caller),
            // one that is not up may answer any of them
            false => Method::ALL.to_vec(),
        };
        // an extension is declared only if a server is known to have it
        info.methods.retain(|method| !method.is_of_task());
        if self.have_tasks() {
            info.methods.push(Method::GetTask);
        }
        info
    }

    fn tools(&self, caller: &Arc<Caller>) -> Arc<ToolListing> {
        self.seen(caller).listed
    }

    fn callable(&self, caller: &Arc<Caller>) -> Arc<ToolListing> {
        self.seen(caller).tools
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
        let seen = self.seen(caller);
        let listed =
            |entry: &&Arc<Entry>| self.runtime.shows(caller, entry) && seen.lists(entry.tool());
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
        // these two are about all tools
        let searches = self.runtime.listing.mode != ListingMode::All;
        let asked = match asked {
            Asked::Call(tool) if searches && builtin::is_finder_name(tool) => Asked::Tools,
            asked => asked,
        };
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

    fn call(&self, mut request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let counted = self.runtime.stop.calls.token();
        // first, so that everything is about the target
        let aimed = builtin::aim(&self.runtime, &mut request);
        let (name, rounds) = (request.name.clone(), self.runtime.rounds.clone());
        let turn = aimed.and_then(|()| rounds.turn(&request));
        let (mut exchange, refused) = match turn {
            Ok(Turn::Open(open, binding)) => {
                let admitted = self.runtime.stack.admit_unknown(&request.caller);
                return Box::pin(async move {
                    admitted?;
                    rounds.go_on(open, binding).await
                });
            }
            Ok(Turn::Call(exchange)) => (exchange, None),
            Err(error) => (Exchange::default(), Some(error)),
        };
        let asks = exchange.asks.take();
        let progress = asks.as_ref().map(|(client, _)| client.clone());
        if let (Some(client), Some(_)) = (progress, &request.progress) {
            // that of the latest round
            request.progress = Some(client);
        }
        let asks = asks.zip(exchange.binding.clone());
        if request.method != Method::CallTool {
            let runtime = self.runtime.clone();
            let call = async move {
                let _counted = counted;
                let answered = relayed(&runtime, request, exchange, refused).await;
                answered.map(|(_, output)| output)
            };
            return Box::pin(async move { rounds.run(call, asks).await });
        }
        let reports = self.runtime.reports.or_asked(request.meta.as_ref());
        let (caller, inbound) = (request.caller.clone(), request.inbound.clone());
        let (runtime, listings, asked) =
            (self.runtime.clone(), self.listings.clone(), name.clone());
        let call = async move {
            let _counted = counted;
            let stack = &runtime.stack;
            let call = match refused {
                Some(error) => Err(error),
                None => start_whole(&runtime, request, &exchange).await,
            };
            let call = call.map_err(|mut error| {
                let seen = || listings.of(stack, runtime.toolsets.as_ref(), &caller);
                if error.kind == ErrorKind::UnknownTool && seen().searches() {
                    error.message = builtin::with_finder(stack, &name, &error).into();
                }
                // no call was made, so no layer saw it
                let error = stack.admit_unknown(&caller).err().unwrap_or(error);
                stack.note_refused(&name, &caller, inbound.as_ref(), &error);
                refuse(&runtime, Method::CallTool, error)
            });
            let (call, taken) = reports.begin(call?);
            let (record, called) = (call.record.clone(), call.tool().clone());
            let result = runtime.recorder.run(stack, &name, call).await;
            let result = result.map_err(|error| match knows_verifier(&runtime, &caller, &error) {
                true => error,
                false => error.without_verifier(),
            });
            let result = match taken {
                Some(taken) => taken.tell(result),
                None => result,
            };
            let sealed = &runtime.rounds;
            let output = sealed.seal(result?, &exchange, record.as_ref())?;
            sealed.seal_task(output, &caller.principal, &called, record.as_ref())
        };
        let runtime = self.runtime.clone();
        let answer = move |error| builtin::answer(&runtime, &asked, &error).ok_or(error);
        let call = call.map(move |done| done.or_else(answer));
        match asks {
            None => Box::pin(call),
            asks => Box::pin(async move { rounds.run(call, asks).await }),
        }
    }

    fn observer(&self) -> Option<Arc<dyn PeerObserver>> {
        Some(self.runtime.telemetry.observer())
    }

    fn refused(&self, tool: &str, caller: &Arc<Caller>, inbound: &Arc<Inbound>, why: &ToolError) {
        let stack = &self.runtime.stack;
        stack.note_refused(tool, caller, Some(inbound), why);
    }

    fn introduced(&self, capabilities: ClientCapabilities, client: Option<Arc<dyn ClientPeer>>) {
        if let Some(introduced) = &self.introduced {
            let client = client.map(|client| CallClient::new(client, false));
            let only = OnlyClient::new(capabilities, client);
            introduced.send_if_modified(|known| known.replace(only).is_none());
        }
    }

    fn roots_changed(&self, caller: &Arc<Caller>) {
        for upstream in &self.runtime.upstreams {
            upstream.roots_changed(caller);
        }
    }

    fn session_ended(&self, caller: &Arc<Caller>) {
        self.runtime.stack.end_session(caller);
        if let Some(toolsets) = &self.runtime.toolsets {
            toolsets.session_ended(caller);
        }
    }

    fn subscriber(&self, _: &Arc<Caller>) -> Option<Arc<dyn Subscriber>> {
        Some(Arc::new(Subscribed::new(self.runtime.clone())))
    }

    fn changes(&self, caller: &Caller) -> BoxStream<'static, List> {
        let (stack, toolsets) = (&self.runtime.stack, self.runtime.toolsets.as_ref());
        self.listings.changes(stack, toolsets, caller)
    }

    fn answers(&self, caller: &Caller, method: Method) -> bool {
        match method.is_of_task() {
            true => self.have_tasks(),
            false => relay::answers(&self.runtime.stack, caller, method),
        }
    }
}
