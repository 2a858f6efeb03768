//! The handle: one MCP server as a tool server.

mod owned;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::lint;
use callward_core::{
    BoxFuture, BoxStream, CallClient, Caller, Delivery, ErrorKind, FreshnessMode, InstanceStatus,
    Instances, InvalidOutput, Method, OutputStatus, PeerOutcome, ServerEvent, ServerId, Tool,
    ToolCall, ToolDefinition, ToolError, ToolOutput, ToolServer, Watch,
};
use futures_util::future::join_all;
use futures_util::stream;
use memchr::memmem;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use super::answer::RequestError;
use super::ask::Ask;
use super::asked::Asker;
use super::http::HttpLink;
use super::info::ServerInfo;
use super::instances::{Heard, Pool};
use super::list::Pages;
use super::options::UpstreamOptions;
use super::peer;
use super::pipe::{self, PipeLink};
use super::rounds::{self, InputRequired, MAX_ROUNDS};
use super::shared::{Shared, UpstreamStatus};
use super::target::Target;
use crate::observed::RequestTimer;
use crate::wire::{Era, code, object, write};

/// How long a listing may take, all pages of it.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// One MCP server, connected for as long as a handle or a call lives.
///
/// See the [module](super) for what it promises. Cloning copies a pointer.
#[derive(Clone)]
pub struct Upstream(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    link: Link,
    /// The instances that owners have of their own; `None` for one of them.
    pool: Option<Arc<Pool>>,
    /// Ends the tasks when the last handle goes.
    _last: DropGuard,
}

enum Link {
    Pipe(Arc<PipeLink>),
    Http(Arc<HttpLink>),
}

impl Upstream {
    /// Sets up a server under the given id and starts connecting, in the background. Never fails:
    /// see [`ready`](Self::ready).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn start(id: ServerId, target: Target, options: UpstreamOptions) -> Self {
        let shared = Shared::new(id, options, None);
        // the instance that lists the tools; others follow when owners call
        let pool = Pool::new(shared.clone(), target.clone());
        Self::connect(shared, target, Some(pool))
    }

    /// Starts an instance, with the pool of further ones if it is the first.
    pub(super) fn connect(shared: Arc<Shared>, target: Target, pool: Option<Arc<Pool>>) -> Self {
        let link = match target {
            Target::Command(spec) => Link::Pipe(PipeLink::start(&shared, pipe::End::Command(spec))),
            Target::Io(io) => Link::Pipe(PipeLink::start(&shared, pipe::End::Io(io))),
            Target::Http(spec) => Link::Http(HttpLink::start(&shared, spec)),
        };
        Self(Arc::new(Inner {
            _last: shared.stop.clone().drop_guard(),
            shared,
            link,
            pool,
        }))
    }

    /// Waits until the server is connected. One that is [idle](UpstreamStatus::Idle) counts as
    /// connected.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConnectFailed`] with the reason of the last failure if that takes longer than
    /// `timeout`, or if the upstream was shut down. Attempts go on after it.
    pub async fn ready(&self, timeout: Duration) -> Result<(), ToolError> {
        let shared = &self.0.shared;
        let end = shared.until(|status| status.is_up() || *status == UpstreamStatus::Closed);
        let end = tokio::time::timeout(timeout, end).await;
        if end.is_ok_and(|status| status.is_up()) {
            return Ok(());
        }
        let text = format!("not connected within {timeout:?}: {}", self.status());
        let error = ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, text);
        Err(self.attach(error))
    }

    /// Returns the state of the connection.
    #[must_use]
    pub fn status(&self) -> UpstreamStatus {
        self.0.shared.status()
    }

    /// Returns why the server's command could not be started, if that is why the last attempt to
    /// connect failed: the program does not exist, or may not be executed. Attempts go on all the
    /// same. For operators: it may quote what the command wrote to standard error.
    #[must_use]
    pub fn start_failure(&self) -> Option<String> {
        self.0.shared.start_failure()
    }

    /// Returns what the server last said about itself; nothing before the first connection.
    #[must_use]
    pub fn server_info(&self) -> Option<Arc<ServerInfo>> {
        self.0.shared.info()
    }

    /// Shuts the connection down in good order, for all handles, and waits until that is done: a
    /// child has ended, a session is deleted.
    pub async fn shutdown(&self) {
        let shared = &self.0.shared;
        shared.stop.cancel();
        if let Some(pool) = &self.0.pool {
            pool.shutdown().await;
        }
        shared
            .until(|status| *status == UpstreamStatus::Closed)
            .await;
    }

    /// Notifies the instances of a caller that the folders which its client works in have changed.
    /// Does not block.
    pub fn roots_changed(&self, caller: &Caller) {
        let Some(pool) = &self.0.pool else {
            return;
        };
        let mut instances = pool.of_session(caller);
        let shared = &self.0.shared;
        // it has an instance before its first call
        if instances.is_empty()
            && shared.options.only_client.is_some()
            && shared.declares().announces_roots()
        {
            instances.extend(pool.opened_lead());
        }
        for handle in instances {
            let instance = handle.upstream.as_ref().unwrap_or(self);
            let message = write::notification("notifications/roots/list_changed", None);
            match &instance.0.link {
                Link::Pipe(link) => link.say(message),
                Link::Http(link) => link.say(message),
            }
        }
    }

    /// Sets the resources whose updates are announced as events. Each instance of the server is
    /// asked for them, also after each reconnect, if it [offers](ServerInfo::subscribes) that; what
    /// may have been missed in between is announced. Default: none.
    pub fn watch_resources(&self, uris: BTreeSet<Arc<str>>) {
        if let Some(pool) = &self.0.pool {
            pool.keep_lead(!uris.is_empty());
        }
        self.0.shared.watched.want(uris);
    }

    /// Waits until each instance that is not down was asked for a resource, for 5 s at most.
    pub async fn watching(&self, uri: &str) {
        let pool = self.0.pool.as_ref();
        let mut all = pool.map_or_else(Vec::new, |pool| pool.upstreams());
        all.push(self.clone());
        all.retain(|one| !one.status().is_down());
        join_all(all.iter().map(|one| one.0.shared.watched.knows(uri))).await;
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Lists the tools as the server wrote them: all elements of all pages, also those that are not
    /// tools. [`list_tools`](ToolServer::list_tools) keeps a thousand of those that cannot be used.
    ///
    /// # Errors
    ///
    /// As [`list_tools`](ToolServer::list_tools).
    pub async fn list_raw(&self) -> Result<Vec<Bytes>, ToolError> {
        Ok(self.all_pages_in_time(None).await?.elements)
    }

    fn attach(&self, error: ToolError) -> ToolError {
        error.with_server(self.0.shared.id.clone())
    }

    async fn request(&self, ask: &Ask<'_>) -> Result<Bytes, RequestError> {
        match &self.0.link {
            Link::Pipe(link) => link.request(ask).await,
            Link::Http(link) => link.request(ask).await,
        }
    }

    async fn run(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let method = call.tool().definition.method;
        let mut timer = self.timer(method.as_str(), Some(call.tool()));
        let result = self.run_untimed(call).await;
        timer.end(PeerOutcome::of(&result));
        result
    }

    fn timer<'a>(&'a self, method: &'static str, tool: Option<&'a Arc<Tool>>) -> RequestTimer<'a> {
        let shared = &self.0.shared;
        RequestTimer {
            observer: shared.options.observer.as_deref(),
            method,
            server: &shared.id,
            tool,
            began: Instant::now(),
        }
    }

    async fn run_untimed(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        self.set_log_level(call).await;
        let mut round = None;
        for left in (0..=MAX_ROUNDS).rev() {
            let ask = Ask::call(call)?;
            let ask = match &round {
                Some(round) => ask.with_round(round),
                None => ask,
            };
            let output = self.run_round(call, &ask).await?;
            if output.status() == OutputStatus::Task && !self.may_make_task(call) {
                let text = "the server answered with a task, which the client did not declare";
                // not a fault of the server that counts: any client could cause it
                let error = ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, text);
                return Err(error.with_code(code::MISSING_CLIENT_CAPABILITY));
            }
            if output.status() != OutputStatus::InputRequired {
                return Ok(output);
            }
            if self
                .server_info()
                .is_some_and(|info| info.era == Era::Legacy)
            {
                return Err(rounds::of_legacy());
            }
            let required = InputRequired::read(&output, call.capabilities)?;
            if call.client.as_ref().is_some_and(CallClient::takes_rounds) {
                return Ok(output);
            }
            if left > 0 {
                round = Some(required.answered(Asker::of(call)).await?);
            }
        }
        Err(rounds::too_many())
    }

    fn may_make_task(&self, call: &ToolCall) -> bool {
        let is_modern = self.server_info().map(|info| info.era) == Some(Era::Modern);
        let is_call = call.tool().definition.method == Method::CallTool;
        is_modern && is_call && call.capabilities.take_tasks()
    }

    /// Sets the level of log messages that the client wants at a legacy server. One connection has
    /// one level: where clients share it, the lowest.
    async fn set_log_level(&self, call: &ToolCall) {
        let level = call
            .client
            .as_ref()
            .and_then(|client| client.peer().log_level());
        let info = self.server_info();
        let (Some(level), Some(info)) = (level, info) else {
            return;
        };
        if info.era == Era::Modern || !info.logging {
            return;
        }
        let is_new = {
            let mut known = self.0.shared.log_level.lock();
            let is_owned = self.0.shared.is_owned();
            let is_new = known.is_none_or(|known| level < known || (is_owned && level != known));
            if is_new {
                *known = Some(level);
            }
            is_new
        };
        if is_new {
            let params = format!(r#"{{"level":"{level}"}}"#);
            // one that refuses sends what it likes, which is filtered
            let _ = self.request(&Ask::new("logging/setLevel", params)).await;
        }
    }

    async fn run_round(&self, call: &ToolCall, ask: &Ask<'_>) -> Result<ToolOutput, ToolError> {
        let answer = self.request(ask).await;
        if let (Err(error), Link::Http(link)) = (&answer, &self.0.link)
            && error.refuses_headers()
            && link.mirrors()
        {
            // What is known of the mirrored arguments is stale: the next attempt has the headers of
            // a fresh list. The call is not sent again here, as the server may have run it.
            let _refusal_stands = self.list(None).await;
        }
        let method = call.tool().definition.method;
        let body = answer.map_err(|error| failed(method, error))?;
        let length = body.len();
        let Shared {
            long_messages,
            options,
            ..
        } = &*self.0.shared;
        let rewrite = options.rewrite.clone();
        let reads = |info: Arc<ServerInfo>| info.methods.contains(&Method::ReadResource);
        let has_resources = rewrite.is_some() && self.server_info().is_some_and(reads);
        let read = move || {
            let output = read_output(method, body)?;
            Ok(match rewrite {
                Some(rewrite) => rewrite.result(method, output, has_resources),
                None => output,
            })
        };
        long_messages.read(length, read).await
    }

    /// Sends the cheapest request of the server's era: `ping`, or `server/discover` where there is
    /// no `ping` any more.
    ///
    /// Sends nothing, and starts nothing, while the connection is closed because no client needs
    /// it.
    async fn sign_of_life(&self) -> Result<(), ToolError> {
        let open = self.0.pool.as_ref().map(|pool| pool.opened_lead());
        if matches!(open, Some(None)) || self.0.shared.is_reopening() {
            return Ok(());
        }
        // nothing is connected before there is an era, and so nothing is sent
        let era = self.server_info().map_or(Era::Modern, |info| info.era);
        match self.request(&peer::sign_of_life(era)).await {
            Ok(_) | Err(RequestError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into_tool_error()),
        }
    }

    async fn list(&self, watch: Option<Watch>) -> Result<Vec<ToolDefinition>, ToolError> {
        let pages = self.all_pages_in_time(watch).await?;
        let mirrored = match &self.0.link {
            Link::Pipe(_) => false,
            Link::Http(link) => link.mirrors(),
        };
        let id = self.0.shared.id.clone();
        let era = self.server_info().map_or(Era::Modern, |info| info.era);
        let long = &self.0.shared.long_messages;
        let listing = long
            .read(pages.bytes, move || pages.finish(&id, mirrored, era))
            .await;
        if let Link::Http(link) = &self.0.link {
            link.mirror(listing.headers);
        }
        let methods = self.server_info().map(|info| info.methods.clone());
        let methods = methods.into_iter().flatten();
        // a request about a task is a call of the tool that made it
        let methods = methods.filter(|it| *it != Method::CallTool && !it.is_of_task());
        // before the tools, of which not all may be offered
        let mut listed: Vec<_> = methods.map(ToolDefinition::method).collect();
        if let Some(pool) = &self.0.pool {
            pool.set_looks_stateful(lint::looks_stateful(&listing.tools).is_some());
        }
        listed.extend(listing.tools);
        Ok(listed)
    }

    /// Returns `true` if an error says that the server has no tools, only prompts or resources.
    fn has_no_tools(&self, error: &RequestError) -> bool {
        matches!(error, RequestError::Refused(error) if error.code == code::METHOD_NOT_FOUND)
            && !self.declares_tools()
    }

    async fn all_pages_in_time(&self, watch: Option<Watch>) -> Result<Pages, ToolError> {
        let pages = async {
            let _open = match &self.0.pool {
                Some(pool) => Some(pool.open_lead(false).await?),
                None => None,
            };
            let pages = tokio::time::timeout(LIST_TIMEOUT, self.all_pages(watch)).await;
            let late = |_| {
                let text = format!("no complete list of tools within {LIST_TIMEOUT:?}");
                Err(ToolError::new(ErrorKind::Timeout, Delivery::Unknown, text).into())
            };
            pages.unwrap_or_else(late)
        };
        let pages = pages.await.map_err(RequestError::into_tool_error);
        pages.map_err(|error| self.attach(error))
    }

    async fn all_pages(&self, watch: Option<Watch>) -> Result<Pages, RequestError> {
        // a scan right after the start waits for the first attempt; later ones fail at once
        self.0.shared.tried().await;
        let mut pages = Pages::default();
        let mut ask = Ask::new("tools/list", "{}");
        loop {
            ask.watch.clone_from(&watch);
            let mut timer = self.timer("tools/list", None);
            let page = self.request(&ask).await;
            let outcome = page.as_ref().map(|_| PeerOutcome::Answered);
            timer.end(outcome.unwrap_or_else(RequestError::outcome));
            let page = match page {
                Err(error) if self.has_no_tools(&error) => return Ok(pages),
                page => page?,
            };
            match pages.take(&page).map_err(RequestError::protocol)? {
                Some(next) => ask = next,
                None => return Ok(pages),
            }
        }
    }
}

/// Returns the error of a request. Prompts and resources have no other answer than an error for
/// what does not exist or lacks an argument, and servers give it any code: it says nothing about
/// the server.
fn failed(method: Method, error: RequestError) -> ToolError {
    let is_refused = matches!(error, RequestError::Refused(_)) && method != Method::CallTool;
    let mut error = error.into_tool_error();
    let is_fault = error.http_status.is_some_and(|status| status >= 500);
    if is_refused && error.kind == ErrorKind::ServerFault && !is_fault {
        error.kind = ErrorKind::InvalidCall;
    }
    error
}

fn read_output(method: Method, body: Bytes) -> Result<ToolOutput, ToolError> {
    let body = match method {
        Method::GetTask => with_ours_nested_in_result(body),
        _ => body,
    };
    let output = ToolOutput::from_json(body).and_then(ToolOutput::with_ours_nested);
    if let Ok(output) = &output
        && let Some(member) = lacking(method, output)
    {
        let text =
            format!("the server's answer is not a result of `{method}`: it has no `{member}`");
        return Err(RequestError::protocol(text).into_tool_error());
    }
    output.map_err(|error| {
        let message = match &error {
            InvalidOutput::Unreadable(why) => {
                format!("the server's result {why}: many clients cannot read it")
            }
            _ => "the server's answer is not a tool result".to_owned(),
        };
        ToolError::new(ErrorKind::Protocol, Delivery::Answered, message).with_source(error)
    })
}

/// Treats the result of a task as that of a call: what its `_meta` has under keys of ours is the
/// server's.
fn with_ours_nested_in_result(body: Bytes) -> Bytes {
    const RESULT: &str = "result";
    let nested = || {
        let result = object::get_member(&body, RESULT).ok()??;
        let nested = callward_core::nest_ours(result).ok()??;
        object::set_member(&body, RESULT, &nested).ok()
    };
    nested().unwrap_or(body)
}

/// Returns the member that a result lacks and each revision of the protocol requires. A tool's may
/// have `structuredContent` instead of `content`; without both, it does not show that the tool ran.
fn lacking(method: Method, output: &ToolOutput) -> Option<&'static str> {
    let body = output.body();
    let lacks = |name| matches!(object::get_member(body, name), Ok(None));
    if output.status() != OutputStatus::Complete {
        return None;
    }
    if let Some(member) = method.result_member() {
        return lacks(member).then_some(member);
    }
    // nearly every result has the word, so it need not be read for that
    let says_nothing = method == Method::CallTool
        && memmem::find(body, b"ontent\"").is_none()
        && lacks("content")
        && lacks("structuredContent");
    says_nothing.then_some("content")
}

impl ToolServer for Upstream {
    fn id(&self) -> &ServerId {
        &self.0.shared.id
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        Box::pin(self.list(None))
    }

    fn list_tools_watched(
        &self,
        watch: Watch,
    ) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        Box::pin(self.list(Some(watch)))
    }

    fn declares_tools(&self) -> bool {
        let info = self.server_info();
        info.is_some_and(|info| info.methods.contains(&Method::CallTool))
    }

    fn version(&self) -> Option<String> {
        self.server_info()?.software.clone()
    }

    fn call(&self, mut call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        // a running call is a handle: the connection stays until it has its answer
        let upstream = self.clone();
        // a call that no layer retries may still be sent again here
        call.ensure_idempotency_key();
        Box::pin(async move {
            upstream
                .run_at_owner(&call)
                .await
                .map_err(|error| upstream.attach(error))
        })
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move {
            let answer = self.sign_of_life().await;
            answer.map_err(|error| self.attach(error))
        })
    }

    fn freshness(&self) -> FreshnessMode {
        FreshnessMode::Learned
    }

    fn events(&self) -> Option<BoxStream<'static, ServerEvent>> {
        let pool = self.0.pool.as_ref().map(Arc::downgrade).unwrap_or_default();
        let heard = Heard::new(self.0.shared.subscribe(), pool);
        Some(Box::pin(stream::unfold(heard, async |mut heard| {
            let event = heard.next().await?;
            Some((event, heard))
        })))
    }

    /// Per session for a child and whatever else is behind a pipe, and for an HTTP server that
    /// opens sessions; any other HTTP server keeps nothing of its clients.
    fn instances(&self) -> Instances {
        match &self.0.link {
            Link::Pipe(_) => Instances::Session,
            Link::Http(_) if self.opens_sessions() => Instances::Session,
            Link::Http(_) => Instances::Shared,
        }
    }

    fn session_ended(&self, caller: &Caller) {
        if let Some(pool) = &self.0.pool {
            pool.session_ended(caller);
        }
    }

    fn instance_statuses(&self) -> Vec<InstanceStatus> {
        let pool = self.0.pool.as_ref();
        pool.map_or_else(Vec::new, |pool| pool.statuses())
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("id", &self.0.shared.id)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
