//! Follows the tools and the connection of one server.

use std::mem;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use callward_breaker::{Permit, Subject};
use callward_core::{
    BoxFuture, BoxStream, Delivery, ErrorKind, List, Method, ReplicaSetId, ServerEvent, Tool,
    ToolDefinition, ToolError, ToolServer,
};
use callward_router::RouteEvent;
use futures_util::future::OptionFuture;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use crate::discovery::Discovery;
use crate::order::DiscoverySpan;
use crate::plugin::{after, around};
use crate::roster::Listings;
use crate::shared::Shared;

/// How long a listing may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// The shortest timeout of a listing: slow starts delay the first listing.
pub(crate) const MIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before a failed listing is tried again, doubled up to [`SCAN_PAUSE_MAX`]; and the
/// least time from the start of one listing to the next: a server that says with each listing that
/// its tools changed is not listed without end.
const SCAN_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause between two listings that fail; the breaker may demand a longer one.
const SCAN_PAUSE_MAX: Duration = Duration::from_secs(30);
/// The longest time that a server's own wish to be asked later is followed.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// The pause after a listing, before another that the server asks for, as a multiple of the time
/// it took to register, from [`LEAST_PAUSE`] up to [`SCAN_PAUSE_MAX`]: a long list that changes
/// all the time leaves time for calls.
const PAUSES: u32 = 20;
pub(crate) const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// A listing in flight, with the permit of the breaker that admitted it. Dropped, it counts as
/// nothing.
type Listing = BoxFuture<'static, (Result<Vec<ToolDefinition>, ToolError>, Permit)>;

/// The state of one server. Its subscribers see each change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Liveness {
    pub(crate) is_connected: bool,
    /// Whether it has listed its tools since it connected.
    pub(crate) up: bool,
    /// Whether the first attempt to list has an outcome, good or bad.
    pub(crate) is_settled: bool,
    pub(crate) last_error: Option<String>,
    /// It was removed, and what it lists no longer counts. Held while a list is registered, so that
    /// a removal comes before or after.
    pub(crate) is_gone: Arc<Mutex<bool>>,
    pub(crate) listings: Listings,
    /// The last listing, if it succeeded.
    pub(crate) discovery: Option<Arc<Discovery>>,
}

/// Follows one server for as long as the stack lives: one listing at a time, again whenever the
/// server says its tools changed or its connection is back.
pub(crate) struct Scan {
    pub(crate) server: Arc<dyn ToolServer>,
    pub(crate) set: ReplicaSetId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) liveness: Arc<watch::Sender<Liveness>>,
    /// How long one listing may take.
    pub(crate) timeout: Duration,
    /// How long after a listing the next one is due that no event asks for.
    pub(crate) refresh: Option<Duration>,
    /// Asks for a listing.
    pub(crate) wanted: Arc<Notify>,
}

impl Scan {
    pub(crate) async fn run(self) {
        let breakers = &self.shared.breakers;
        let discovery = breakers.circuit(self.server.id(), Subject::Discovery);
        let server = breakers.circuit(self.server.id(), Subject::Server);
        // a server without events counts as up
        let mut events = self.server.events();
        let mut due = events.is_none().then(Instant::now);
        self.note(|now| now.is_connected = due.is_some());
        let mut is_down = false;
        // the earliest start of a listing after a reconnect, and of one that the server asks for
        let mut earliest = Instant::now();
        let mut quiet = earliest;
        let mut began = earliest;
        let mut pause = SCAN_PAUSE;
        let mut running: Option<Listing> = None;
        let mut is_empty = false;
        let mut refresh = None;
        loop {
            tokio::select! {
                event = next(&mut events) => match event {
                    ServerEvent::Up => {
                        // the failures that opened them belong to a connection that is gone, and so
                        // does a listing that still runs
                        self.shared.breakers.reset_server(self.server.id());
                        // it may have been restarted, and have lost what was written
                        self.shared.cache.purge_set(&self.set);
                        running = None;
                        if mem::take(&mut is_down) {
                            self.announce(List::Prompts);
                            self.announce(List::Resources);
                        }
                        server.set_connected(true);
                        let (set, server) = (self.set.clone(), self.server.id().clone());
                        self.shared.events.send(|| RouteEvent::ServerUp { set, server });
                        self.shared.retry.server_is_back(&self.set);
                        self.note(|now| now.is_connected = true);
                        (due, pause) = (Some(earliest), SCAN_PAUSE);
                    }
                    ServerEvent::Stale => {
                        // some instance was restarted
                        self.shared.breakers.reset_instances(self.server.id());
                        self.shared.cache.purge_set(&self.set);
                    }
                    ServerEvent::ListChanged(List::Tools) => {
                        // a tool that is listed as before may do something else from now on
                        self.shared.cache.purge_set(&self.set);
                        // a listing that runs may have read what was before
                        due = Some(earliest.max(quiet));
                    }
                    ServerEvent::ListChanged(list) => self.announce(list),
                    ServerEvent::ResourceUpdated(_) => {
                        let read = ToolDefinition::method(Method::ReadResource).name;
                        self.shared.cache.purge_tool(&self.set, &read);
                    }
                    ServerEvent::Down(reason) => {
                        // one that cannot be started says so at each attempt
                        if is_down {
                            tracing::debug!(server = %self.server.id(), reason, "still down");
                        } else {
                            tracing::warn!(server = %self.server.id(), reason, "server is down");
                            self.shared.events.send(|| RouteEvent::ServerDown {
                                set: self.set.clone(),
                                server: self.server.id().clone(),
                                reason: reason.clone(),
                            });
                        }
                        if running.take().is_some() {
                            due = Some(Instant::now() + pause);
                        }
                        refresh = None;
                        is_down = true;
                        server.set_connected(false);
                        self.note(|now| {
                            (now.is_connected, now.up) = (false, false);
                            now.last_error = Some(reason);
                        });
                        self.settle();
                    }
                    _ => {}
                },
                Some((listed, permit)) = OptionFuture::from(running.as_mut()) => {
                    running = None;
                    // requests from while it ran are answered by it
                    let _ = self.wanted.notified().now_or_never();
                    let ended = Instant::now();
                    match listed {
                        Ok(definitions) => {
                            permit.succeed();
                            // the server was reached
                            let _ = server.admit().map(Permit::succeed);
                            let was_empty = is_empty;
                            is_empty = self.lists_none(&definitions);
                            if is_empty && !was_empty {
                                tracing::warn!(server = %self.server.id(), "{NO_TOOLS}");
                            }
                            self.register(definitions, began, is_empty).await;
                            refresh = self.refresh.map(|time| ended + jittered(time));
                            quiet = Instant::now() + pause_after(ended.elapsed());
                            // while it ran, the server asked for another
                            due = due.map(|due| due.max(quiet));
                            if is_empty {
                                due = due.or_else(|| Some(quiet.max(ended + pause)));
                                pause = (pause * 2).min(SCAN_PAUSE_MAX);
                            } else {
                                pause = SCAN_PAUSE;
                            }
                        }
                        Err(error) => {
                            tracing::warn!(server = %self.server.id(), %error, "tools not listed");
                            self.note(|now| {
                                now.listings.failed += 1;
                                now.discovery = None;
                                // more is known of a lost connection than calls report
                                if !is_down {
                                    (now.up, now.last_error) = (false, Some(error.to_string()));
                                }
                            });
                            self.shared.events.send(|| RouteEvent::DiscoveryFailed {
                                set: self.set.clone(),
                                server: self.server.id().clone(),
                                error: error.to_string(),
                            });
                            // a server that asks for time has not failed
                            if error.kind == ErrorKind::RateLimited {
                                drop(permit);
                            } else {
                                permit.fail(&error);
                            }
                            let asked = error.retry_after.unwrap_or_default();
                            quiet = ended + asked.min(LONGEST_ASKED).max(pause);
                            due = Some(quiet);
                            pause = (pause * 2).min(SCAN_PAUSE_MAX);
                        }
                    }
                    self.settle();
                }
                () = self.wanted.notified(), if running.is_none() => {
                    due = Some(due.map_or(earliest, |due| due.min(earliest)));
                }
                () = sleep_until(refresh.unwrap_or(quiet)), if refresh.is_some() => {
                    refresh = None;
                    due = due.or(Some(earliest));
                }
                () = sleep_until(due.unwrap_or(quiet)), if due.is_some() && running.is_none() => {
                    due = match discovery.admit() {
                        Ok(permit) => {
                            began = Instant::now();
                            earliest = began + SCAN_PAUSE;
                            running = Some(self.list(permit));
                            None
                        }
                        // held open by an operator, it is checked again from time to time
                        Err(_) => {
                            let wait = discovery.time_to_probe().unwrap_or(SCAN_PAUSE_MAX);
                            Some(Instant::now() + wait)
                        }
                    };
                }
            }
        }
    }

    /// Lists the server's tools. A server that panics has failed, and is followed on.
    fn list(&self, permit: Permit) -> Listing {
        let (server, timeout) = (self.server.clone(), self.timeout);
        let id = server.id().clone();
        let span = DiscoverySpan::begin(&id);
        let watch = span.watch();
        let listed = async move {
            match watch {
                Some(watch) => server.list_tools_watched(watch).await,
                None => server.list_tools().await,
            }
        };
        let listed = tokio::time::timeout(timeout, AssertUnwindSafe(listed).catch_unwind());
        let listed = span.follow(async move {
            let (kind, text) = match listed.await {
                Ok(Ok(listed)) => return listed,
                Ok(Err(_)) => (ErrorKind::Internal, "listing the tools panicked".into()),
                Err(_) => {
                    let (secs, least) = (timeout.as_secs_f64(), MIN_TIMEOUT.as_secs());
                    let text = format!(
                        "the tools were not listed within {secs} s, the timeout of discovery \
                         (never below {least} s)"
                    );
                    (ErrorKind::Timeout, text)
                }
            };
            Err(ToolError::new(kind, Delivery::Unknown, text))
        });
        let (set, plugins) = (self.set.clone(), self.shared.plugins.clone());
        Box::pin(async move { (around(&plugins, listed, &set, &id).await, permit) })
    }

    /// Registers a list beside the runtime's threads: it may have thousands of tools, and calls of
    /// other servers must not wait for them.
    async fn register(&self, definitions: Vec<ToolDefinition>, began: Instant, is_empty: bool) {
        let (shared, liveness) = (self.shared.clone(), self.liveness.clone());
        let (set, server) = (self.set.clone(), self.server.clone());
        let registered = spawn_blocking(move || {
            let is_gone = liveness.borrow().is_gone.clone();
            let is_gone = is_gone.lock();
            if *is_gone {
                return;
            }
            let warning = is_empty.then(|| NO_TOOLS.to_owned());
            liveness.send_modify(|now| (now.up, now.last_error) = (true, warning));
            let (server, instances) = (server.id(), server.instances());
            let registry = &shared.registry;
            let listed = definitions.iter().filter(|it| is_tool(it)).count();
            let changes = registry.register(&set, server, definitions, instances);
            drop(is_gone);
            shared.follow(&set, &changes);
            let catalogue = registry.peek();
            let discovery = Discovery::new(&set, server, listed, &changes, &catalogue, began);
            let discovery = Arc::new(discovery);
            shared.events.send(|| discovery.completed());
            let after = after(shared.plugins.clone(), discovery.clone());
            shared.spawn(after, &Handle::current());
            liveness.send_modify(|now| {
                now.listings.listed += 1;
                now.discovery = Some(discovery);
            });
            if !changes.is_empty() {
                tracing::info!(
                    %server, tools = registry.peek().offered_by(server),
                    added = changes.added.len(), changed = changes.changed.len(),
                    removed = changes.removed.len(), "tools registered"
                );
            }
        });
        // cancelled only when the runtime ends
        if let Err(error) = registered.await
            && let Ok(panicked) = error.try_into_panic()
        {
            resume_unwind(panicked);
        }
    }

    /// Returns `true` if the server declares tools and lists none, as one may that is not ready.
    fn lists_none(&self, definitions: &[ToolDefinition]) -> bool {
        self.server.declares_tools() && !definitions.iter().any(is_tool)
    }

    fn note(&self, change: impl FnOnce(&mut Liveness)) {
        self.liveness.send_modify(change);
    }

    /// Purges what was read of a list of the set, and notifies clients that it changed, if the set
    /// has it.
    fn announce(&self, list: List) {
        let mut changed = None;
        let catalogue = self.shared.registry.peek();
        let of_list = |tool: &&Arc<Tool>| {
            tool.definition.method.list() == Some(list) && *tool.set() == self.set
        };
        let methods = catalogue.methods().iter().map(|entry| entry.tool());
        for tool in methods.filter(of_list) {
            self.shared.cache.purge_tool(&self.set, tool.name());
            changed = Some(list);
        }
        self.shared.note_changed(changed.into_iter());
    }

    fn settle(&self) {
        if !self.liveness.borrow().is_settled {
            let changes = self.shared.registry.unexpect(&self.set, self.server.id());
            self.shared.follow(&self.set, &changes);
            self.note(|now| now.is_settled = true);
        }
    }
}

const NO_TOOLS: &str = "it declares tools and lists none; it is asked again";

fn is_tool(definition: &ToolDefinition) -> bool {
    definition.method == Method::CallTool
}

/// Returns a time up to a tenth shorter or longer, so that many servers are not listed at once.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.9 + 0.2 * fastrand::f64())
}

/// Returns the pause before another requested listing, after one that took this long to process.
fn pause_after(busy: Duration) -> Duration {
    let pause = busy.saturating_mul(PAUSES);
    pause.clamp(LEAST_PAUSE, SCAN_PAUSE_MAX)
}

/// Waits for the next event; for ever, where there is none.
async fn next(events: &mut Option<BoxStream<'static, ServerEvent>>) -> ServerEvent {
    let Some(stream) = events else {
        return std::future::pending().await;
    };
    if let Some(event) = stream.next().await {
        return event;
    }
    *events = None;
    ServerEvent::Down("it was shut down".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_after_a_listing_is_twenty_times_what_it_took() {
        let millis = Duration::from_millis;
        for (busy, pause) in [(0, 1000), (100, 2000), (600, 12_000), (60_000, 30_000)] {
            assert_eq!(pause_after(millis(busy)), millis(pause));
        }
    }
}
