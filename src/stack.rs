//! The running stack.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use callward_breaker::{BreakerSet, BreakerStatus};
use callward_cache::CacheHandle;
use callward_core::{
    BoxStream, Caller, Delivery, ErrorKind, InstanceStatus, Instances, List, ReplicaSetId,
    ServerId, Tool, ToolCall, ToolError, ToolName, ToolOutput,
};
use callward_limit::{PrincipalLimitLayer, RateLimitLayer};
use callward_loopguard::LoopGuardStats;
use callward_registry::{AcceptError, ApproveError, Catalogue, KeptName, Suggestion};
use callward_retry::hedge::HedgeStats;
use callward_retry::{BudgetStatus, RetryStats};
use callward_router::{RouteEvent, Router, SetStats};
use futures_util::stream;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::builder::{Settings, StackBuilder};
use crate::limits::{LimitStatus, ServerLimitStatus};
use crate::order::{self, Guarded, Layers};
use crate::roster::{Known, Roster, ServerStatus};
use crate::scan::LEAST_PAUSE;
use crate::service::{StackFuture, StackService};
use crate::shared::Shared;

/// A running stack. Cloning copies a pointer; the last clone to go ends what runs in the
/// background.
#[derive(Clone)]
pub struct Stack(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) layers: Layers,
    #[cfg(feature = "audit")]
    pub(crate) audit: order::AuditLayer,
    #[cfg(feature = "auth")]
    pub(crate) authorize: order::AuthorizeLayer,
    #[cfg(feature = "approval")]
    pub(crate) approvals: order::ApprovalLayer,
    #[cfg(feature = "guardrail")]
    pub(crate) guardrails: order::ArgumentGuardLayer,
    pub(crate) shared: Arc<Shared>,
    /// The handle of the one in the layers.
    pub(crate) router: Router<Guarded>,
    /// Read as a snapshot; written while `changing` is held.
    pub(crate) roster: ArcSwap<Roster>,
    pub(crate) changing: Mutex<()>,
    pub(crate) rates: RateLimitLayer,
    pub(crate) principals: PrincipalLimitLayer,
    pub(crate) settings: Arc<Settings>,
    /// Where what runs in the background runs.
    pub(crate) runtime: Handle,
}

impl Stack {
    /// Starts with the defaults and no server.
    pub fn builder() -> StackBuilder {
        StackBuilder::default()
    }

    /// Calls a tool, named `set.tool` or as clients see it, with anything that serialises to an
    /// object.
    ///
    /// # Errors
    ///
    /// [`ToolError`]: the tool is unknown, the arguments cannot be written as JSON, or the call
    /// failed. A failure of the tool itself is an answer, not an error.
    pub async fn call(
        &self,
        tool: &str,
        arguments: impl Serialize,
    ) -> Result<ToolOutput, ToolError> {
        let arguments = serde_json::to_vec(&arguments).map_err(|error| {
            let text = "the arguments cannot be written as JSON";
            ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text).with_source(error)
        });
        match arguments.and_then(|arguments| self.prepare(tool, arguments)) {
            Ok(call) => self.run(call).await,
            Err(error) => {
                // no call was made, so no layer saw it
                #[cfg(feature = "audit")]
                self.note_refused(tool, &Caller::local(), None, &error);
                Err(error)
            }
        }
    }

    /// Starts a call without sending it, so that caller, deadline, trace, progress or a record can
    /// be added. `arguments` is a raw JSON object; empty stands for `{}`.
    ///
    /// A call that cannot be prepared leaves no audit record: code that knows the caller writes one
    /// with [`note_refused`](Self::note_refused).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownTool`] if no server offers such a tool; [`ErrorKind::InvalidCall`] if it
    /// sets an argument that is the operator's.
    pub fn prepare(&self, tool: &str, arguments: impl Into<Bytes>) -> Result<ToolCall, ToolError> {
        let catalogue = self.0.shared.registry.peek();
        let entry = catalogue.find(tool);
        let entry = entry.ok_or_else(|| self.not_found(tool, &catalogue))?;
        let arguments = entry.arguments(arguments.into()).map_err(|why| {
            let text = format!("tool `{}`: {why}", entry.client_name());
            ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text)
        })?;
        let call = self.prepare_method(entry.tool().clone(), arguments);
        #[cfg(feature = "auth")]
        if self.policy().is_some() {
            let mut call = call;
            // a refusal must look like that of the same name without a tool
            call.context_mut().asked_as = Some(tool.into());
            return Ok(call);
        }
        Ok(call)
    }

    /// Starts a request of another method, as [`prepare`](Self::prepare) starts a call of a tool.
    /// `method` is one of [`Catalogue::methods`], and `params` its parameters: a raw JSON object
    /// without `_meta`.
    pub fn prepare_method(&self, method: Arc<Tool>, params: impl Into<Bytes>) -> ToolCall {
        let mut call = ToolCall::new(method, params);
        // a limit beyond the range of the clock does not apply
        let limit = self.0.settings.call_deadline;
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        if let Some(deadline) = deadline {
            call.context_mut().deadline = Some(deadline.into_std());
        }
        call
    }

    /// Returns the error for a caller that may not know of all tools, if there are rules.
    fn not_found(&self, tool: &str, catalogue: &Catalogue) -> ToolError {
        #[cfg(feature = "auth")]
        if self.policy().is_some() {
            return callward_auth::unknown_tool(tool);
        }
        self.unknown(tool, catalogue)
    }

    /// Returns the error for a tool that is not in the catalogue.
    pub(crate) fn unknown(&self, tool: &str, catalogue: &Catalogue) -> ToolError {
        if let Some(held) = catalogue.find_held(tool) {
            let hint = format_args!("it is held for review: {}", held.reason);
            return ToolError::unknown_tool(tool, hint);
        }
        let roster = self.0.roster.load();
        let is_down =
            |known: &&Known| catalogue.offered_by(known.id()) == 0 && !known.liveness.borrow().up;
        let down: Vec<_> = roster.all().filter(is_down).map(Known::id).collect();
        let down = match down[..] {
            [] => String::new(),
            [one] => format!("; server `{one}` is not connected and may offer it"),
            [one, ..] => {
                let count = down.len();
                format!("; {count} servers, such as `{one}`, are not connected and may offer it")
            }
        };
        let similar = catalogue.similar(tool);
        let hint = match (similar.is_empty(), catalogue.entries().len()) {
            (true, 1) => "1 tool is known".to_owned(),
            (true, known) => format!("{known} tools are known"),
            _ => format!("did you mean {}?", similar.join(" or ")),
        };
        ToolError::unknown_tool(tool, format_args!("{hint}{down}"))
    }

    /// Approves the definition of a tool that waits for it ([`Catalogue::held`]), by the digest of
    /// what was seen, and offers the tool at once. Grants, cached results and learned lifetimes
    /// belong to one definition, so none of the earlier one counts.
    ///
    /// Blocks where the pins are written to a [`PinStore`](callward_registry::PinStore).
    ///
    /// # Errors
    ///
    /// [`ApproveError`]; then nothing has changed.
    pub fn approve(
        &self,
        set: &ReplicaSetId,
        tool: &ToolName,
        digest: &str,
    ) -> Result<(), ApproveError> {
        let shared = &self.0.shared;
        let changes = shared.registry.approve(set, tool, digest)?;
        shared.follow(set, &changes);
        Ok(())
    }

    /// Returns the changes of plans that calls so far suggest, such as longer timeouts, each with
    /// its evidence. None applies before it is [accepted](Self::accept). May wait for a list that
    /// is registered.
    #[must_use]
    pub fn suggestions(&self) -> Vec<Suggestion> {
        self.0.shared.registry.suggestions()
    }

    /// Accepts the suggestion with this id: from now on its hints count as the operator's for this
    /// definition of the tool, where [`Server::override_tool`](crate::Server::override_tool) states
    /// nothing else.
    ///
    /// Blocks where the pins are written to a [`PinStore`](callward_registry::PinStore).
    ///
    /// # Errors
    ///
    /// [`AcceptError`]; then nothing has changed.
    pub fn accept(&self, id: &str) -> Result<Suggestion, AcceptError> {
        let (accepted, changes) = self.0.shared.registry.accept(id)?;
        self.0.shared.follow_hints(&accepted.set, &changes);
        Ok(accepted)
    }

    /// Lists the tools of a server again, or waits for a listing that runs. Returns its state when
    /// that has ended, or the timeout of a listing is over: while a breaker is open, or the server
    /// is down, there may be none. `None` if there is no server of this id.
    pub async fn relist(&self, server: &ServerId) -> Option<ServerStatus> {
        let mut liveness = {
            let known = self.0.roster.load().get(server)?;
            known.wanted.notify_one();
            known.liveness.subscribe()
        };
        let before = liveness.borrow_and_update().listings;
        let ended = liveness.wait_for(|now| now.listings != before);
        let limit = self.0.settings.listing_timeout() + LEAST_PAUSE;
        // the state has the error, if it failed
        drop(tokio::time::timeout(limit, ended).await);
        let known = self.0.roster.load().get(server)?;
        Some(known.status(&self.catalogue(), &self.0.shared.breakers))
    }

    /// Sends a call through the layers. The cache is asked at once, and nothing else happens before
    /// the future is polled. Dropping it cancels the call.
    #[must_use = "a call runs while it is awaited"]
    pub fn run(&self, call: ToolCall) -> StackFuture {
        StackFuture {
            inner: order::call(&self.0.layers, call),
        }
    }

    /// Returns the stack as a Tower service: always ready, cheap to clone.
    #[must_use]
    pub fn service(&self) -> StackService {
        StackService(self.clone())
    }

    /// Returns all tools as clients see them now.
    #[must_use]
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.0.shared.registry.catalogue()
    }

    /// Returns the names that clients know, with their tools: those for
    /// [`StackBuilder::kept_names`](crate::StackBuilder::kept_names) of the next run.
    #[must_use]
    pub fn kept_names(&self) -> Vec<KeptName> {
        self.0.shared.registry.kept_names()
    }

    /// Returns a stream with one item for each time a list changed. What changes while an item is
    /// not read yet adds one item for each list at most.
    #[must_use]
    pub fn changes(&self) -> BoxStream<'static, List> {
        let mut changed = self.0.shared.changed.subscribe();
        let read = *changed.borrow_and_update();
        Box::pin(stream::unfold(
            (changed, read),
            |(mut changed, mut read)| async move {
                let now = *changed.wait_for(|now| *now != read).await.ok()?;
                let is_unread = |list: &List| now[*list as usize] != read[*list as usize];
                let list = List::ALL.iter().copied().find(is_unread)?;
                read[list as usize] = now[list as usize];
                Some((list, (changed, read)))
            },
        ))
    }

    /// Returns the handle of the cache: what it did so far, what it holds, and how to purge it.
    #[must_use]
    pub fn cache(&self) -> &CacheHandle {
        &self.0.shared.cache
    }

    /// Returns the state of every breaker: of each server, and of its tools that were called.
    #[must_use]
    pub fn breakers(&self) -> Vec<BreakerStatus> {
        self.0.shared.breakers.snapshot()
    }

    /// Returns the state of the limits of rate and concurrency.
    #[must_use]
    pub fn limits(&self) -> LimitStatus {
        let roster = self.0.roster.load();
        let servers = roster.all().map(|known| ServerLimitStatus {
            server: known.id().clone(),
            rate: known.rate.snapshot().into_iter().next(),
            concurrency: known.concurrency.status(),
        });
        LimitStatus {
            rates: self.0.rates.snapshot(),
            servers: servers.collect(),
        }
    }

    /// Counts a request that asks what the stack is or offers, such as a list of its tools, against
    /// the [limits](StackBuilder::principal_limits) of the caller's principal.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RateLimited`] if the limit is reached.
    pub fn admit_list(&self, caller: &Caller) -> Result<(), ToolError> {
        self.0.principals.admit_list(&caller.principal)
    }

    /// Counts a call that could not be [prepared](Self::prepare) against the
    /// [limits](StackBuilder::principal_limits) of the caller's principal.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RateLimited`] if the limit is reached.
    pub fn admit_unknown(&self, caller: &Caller) -> Result<(), ToolError> {
        self.0.principals.admit_unknown(&caller.principal)
    }

    /// Returns the breakers themselves, to hold one open or closed, and to release it again.
    ///
    /// ```
    /// use callward::breaker::Subject;
    /// use callward::{ServerId, Stack};
    ///
    /// fn take_out_of_service(stack: &Stack, server: &ServerId) {
    ///     stack.breaker_set().force_open(server, Subject::Server);
    /// }
    /// ```
    #[must_use]
    pub fn breaker_set(&self) -> &BreakerSet {
        &self.0.shared.breakers
    }

    /// Lists the servers that the annotation rule gives calls of a tool to, as they are now, in the
    /// order they were added: for a destructive tool the available ones of sufficient weight, for
    /// an idempotent one the available ones of category `caching` if there are any, for any other
    /// all available ones. See [`Router::route_by_annotation`].
    ///
    /// ```
    /// use callward::{Server, ServerId, Stack, ToolSpec, Tools};
    /// # use serde_json::Value;
    /// # use callward::Annotations;
    /// # fn database(id: &str) -> Result<Tools, Box<dyn std::error::Error>> {
    /// #     let deletes = Annotations::default().with_destructive(true);
    /// #     let reads = Annotations::default().with_read_only(true);
    /// #     let done = |_: Value| std::future::ready(Ok::<_, String>("done"));
    /// #     let tools = Tools::new(id)?
    /// #         .tool(ToolSpec::new("deleteUser").annotations(deletes), done)?
    /// #         .tool(ToolSpec::new("queryUsers").annotations(reads), done)?;
    /// #     Ok(tools)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let primary = Server::new(database("primary-db")?).weight(80).category("caching");
    /// let replica = Server::new(database("replica-db")?).weight(20);
    /// let stack = Stack::builder()
    ///     .server(primary.in_set("database".parse()?))
    ///     .server(replica.in_set("database".parse()?))
    ///     .build()
    ///     .await?;
    ///
    /// // a destructive tool goes to the primary alone, a read-only one to any healthy server
    /// let names = |ids: Vec<ServerId>| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    /// assert_eq!(names(stack.route_by_annotation("database.deleteUser")?), ["primary-db"]);
    /// assert_eq!(
    ///     names(stack.route_by_annotation("database.queryUsers")?),
    ///     ["primary-db", "replica-db"]
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownTool`] if no server offers such a tool.
    pub fn route_by_annotation(&self, tool: &str) -> Result<Vec<ServerId>, ToolError> {
        let (_, entry) = self.entry(tool)?;
        Ok(self.0.router.route_by_annotation(entry.tool()))
    }

    /// Returns the figures of each server: calls in flight, the outcomes and durations of those
    /// that ended, its weight and its health. In the order of the replica sets' names, heaviest
    /// servers first.
    #[must_use]
    pub fn routes(&self) -> Vec<SetStats> {
        self.0.router.pool().stats()
    }

    /// Returns a stream of the router's events from now on: which server gets which attempt and
    /// why, and changes of servers. A listener that falls 1,024 events behind loses the oldest and
    /// receives their number; no call waits for a listener, and without listeners no event is made.
    ///
    /// ```
    /// use futures_util::StreamExt;
    /// use callward::Stack;
    ///
    /// async fn log(stack: &Stack) -> serde_json::Result<()> {
    ///     let mut events = stack.route_events();
    ///     while let Some(event) = events.next().await {
    ///         // {"type":"routeDecision","set":"orders","tool":"read_order","attempt":1,…}
    ///         println!("{}", serde_json::to_string(&event)?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn route_events(&self) -> BoxStream<'static, RouteEvent> {
        let events = self.0.router.events();
        Box::pin(stream::unfold(events, |mut events| async move {
            Some((events.next().await?, events))
        }))
    }

    /// Returns what the loop guard holds and did so far.
    #[must_use]
    pub fn loop_guard_stats(&self) -> LoopGuardStats {
        self.0.shared.loop_guard.stats()
    }

    /// Returns the remaining budgets of retries and hedges, in the order of the replica sets'
    /// names. A set has one from its first call on.
    #[must_use]
    pub fn retry_budgets(&self) -> Vec<BudgetStatus> {
        self.0.shared.retry.budgets()
    }

    /// Returns the outcomes of calls whose first attempt failed.
    #[must_use]
    pub fn retry_stats(&self) -> RetryStats {
        self.0.shared.retry.stats()
    }

    /// Returns the outcomes of hedged attempts at slow reads.
    #[must_use]
    pub fn hedge_stats(&self) -> HedgeStats {
        self.0.shared.hedge.stats()
    }

    /// Ends a session: instances of servers that only it uses end, and what is counted for them is
    /// forgotten. Code that makes calls with a session in their [`Caller`] calls this when the
    /// session is over; a session that is never ended keeps its instances until they are idle for
    /// long enough.
    pub fn end_session(&self, caller: &Caller) {
        for known in self.0.roster.load().all() {
            known.spec.server.0.session_ended(caller);
        }
        if let Some(owner) = Instances::Session.owner(caller)
            && owner.session.is_some()
        {
            self.0.shared.breakers.forget_owner(owner);
        }
    }

    /// Returns the instances of a server that run now; none for a server that all callers share,
    /// and for one that is not there.
    #[must_use]
    pub fn instances(&self, server: &ServerId) -> Vec<InstanceStatus> {
        let roster = self.0.roster.load();
        let known = roster.find(server);
        known.map_or_else(Vec::new, |known| known.spec.server.0.instance_statuses())
    }

    /// Returns the state of each server, in the order they were added.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        let catalogue = self.catalogue();
        let roster = self.0.roster.load();
        let breakers = &self.0.shared.breakers;
        let status = |known: &Known| known.status(&catalogue, breakers);
        roster.all().map(status).collect()
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("servers", &self.servers())
            .field("call_deadline", &self.0.settings.call_deadline)
            .finish_non_exhaustive()
    }
}
