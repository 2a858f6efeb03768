//! Following one server: what it lists, and whether it is there.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tollgate_breaker::{BreakerSet, Permit, Verdict, judge_error_of_transport};
use tollgate_cache::CacheHandle;
use tollgate_core::{
    BoxFuture, BoxStream, Delivery, ErrorKind, ReplicaSetId, ServerEvent, ToolDefinition,
    ToolError, ToolServer,
};
use tollgate_registry::Registry;

use crate::DiscoveryConfig;

/// The pause before a failed listing is tried again, doubled up to [`SCAN_PAUSE_MAX`]; and the least
/// time from the start of one listing to the next: a server that says with each listing that its
/// tools changed is not listed without end.
const SCAN_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause between two listings that fail, but for what the breaker makes of it.
const SCAN_PAUSE_MAX: Duration = Duration::from_secs(30);

/// A listing on its way. Dropping it gives it up, and counts as nothing.
struct Listing {
    listed: BoxFuture<'static, Result<Vec<ToolDefinition>, ToolError>>,
    discovery: Permit,
    /// A listing tells of the way to the server, too; `None` where that breaker needs no probe, or has
    /// one.
    server: Option<Permit>,
}

/// The longest a server's wish to be asked again later is followed.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// What every scan writes into.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) breakers: BreakerSet,
    pub(crate) cache: CacheHandle,
    pub(crate) changed: watch::Sender<u64>,
}

/// What is known of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Liveness {
    pub(crate) up: bool,
    pub(crate) last_error: Option<String>,
}

/// Follows one server for as long as the stack lives: one listing at a time, again whenever the
/// server says its tools changed or its connection is back.
pub(crate) struct Scan {
    pub(crate) server: Arc<dyn ToolServer>,
    pub(crate) set: ReplicaSetId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) liveness: Arc<Mutex<Liveness>>,
    /// Told once, when the first attempt to list has an outcome, good or bad.
    pub(crate) settled: Option<oneshot::Sender<()>>,
    /// How long one listing may take.
    pub(crate) timeout: Duration,
}

impl Scan {
    pub(crate) async fn run(mut self) {
        let breakers = &self.shared.breakers;
        let discovery = breakers.discovery_circuit(self.server.id());
        let server = breakers.server_circuit(self.server.id());
        // a server without events is simply there
        let mut events = self.server.events();
        let mut due = events.is_none().then(Instant::now);
        let mut is_down = false;
        let mut earliest = Instant::now();
        let mut pause = SCAN_PAUSE;
        let mut running: Option<Listing> = None;
        loop {
            tokio::select! {
                event = next(&mut events) => match event {
                    ServerEvent::Up => {
                        // whatever tripped them belongs to a connection that is gone, and so does
                        // a listing that still runs
                        self.shared.breakers.reset_server(self.server.id());
                        // it may have been started anew, and remember nothing that was written
                        self.shared.cache.purge_set(&self.set);
                        running = None;
                        is_down = false;
                        (due, pause) = (Some(earliest), SCAN_PAUSE);
                    }
                    ServerEvent::ToolsChanged => {
                        // a tool that is listed as before may do something else from now on
                        self.shared.cache.purge_set(&self.set);
                        // a listing that runs may have read what was before
                        due = Some(earliest);
                    }
                    ServerEvent::Down(reason) => {
                        tracing::warn!(server = %self.server.id(), reason, "server is down");
                        if running.take().is_some() {
                            due = Some(Instant::now() + pause);
                        }
                        is_down = true;
                        self.note(false, Some(reason));
                        self.settle();
                    }
                    _ => {}
                },
                listed = end_of(&mut running) => {
                    running = None;
                    match listed {
                        Ok(definitions) => {
                            pause = SCAN_PAUSE;
                            self.register(definitions);
                        }
                        Err(error) => {
                            tracing::warn!(server = %self.server.id(), %error, "tools not listed");
                            self.note(false, Some(error.to_string()));
                            let asked = error.retry_after().unwrap_or_default();
                            due = Some(Instant::now() + asked.min(LONGEST_ASKED).max(pause));
                            pause = (pause * 2).min(SCAN_PAUSE_MAX);
                        }
                    }
                    self.settle();
                }
                // nobody's call has to be the probe of a server that can be asked for its tools; one
                // that is known to be down says itself when it is back
                () = server.probe_due(), if due.is_none() && running.is_none() && !is_down => {
                    due = Some(earliest);
                }
                () = until(due), if due.is_some() && running.is_none() => {
                    match discovery.clone().admit() {
                        Ok(permit) => {
                            due = None;
                            earliest = Instant::now() + SCAN_PAUSE;
                            running = Some(Listing {
                                listed: list(self.server.clone(), self.timeout),
                                discovery: permit,
                                server: server.clone().admit().ok(),
                            });
                        }
                        Err(rejection) => {
                            // held open by an operator, it is looked at again now and then
                            let wait = rejection.time_to_probe().unwrap_or(SCAN_PAUSE_MAX);
                            due = Some(Instant::now() + wait);
                        }
                    }
                }
            }
        }
    }

    fn register(&self, definitions: Vec<ToolDefinition>) {
        let tools = definitions.len();
        let changes = self
            .shared
            .registry
            .register(&self.set, self.server.id(), definitions);
        self.note(true, None);
        // what is gone may come back under its name and definition, and be another one
        for other in changes.changed.iter().chain(&changes.removed) {
            self.shared.cache.purge_tool(&self.set, other);
        }
        if !changes.is_empty() {
            tracing::info!(
                server = %self.server.id(), tools,
                added = changes.added.len(), changed = changes.changed.len(),
                removed = changes.removed.len(), "tools registered"
            );
            self.shared.changed.send_modify(|count| *count += 1);
        }
    }

    fn note(&self, up: bool, last_error: Option<String>) {
        *self.liveness.lock() = Liveness { up, last_error };
    }

    fn settle(&mut self) {
        if let Some(settled) = self.settled.take() {
            // nobody waits any more: fine
            let _ = settled.send(());
        }
    }
}

/// Lists a server's tools. One that panics has failed, and is followed on.
fn list(
    server: Arc<dyn ToolServer>,
    timeout: Duration,
) -> BoxFuture<'static, Result<Vec<ToolDefinition>, ToolError>> {
    let listed = async move { server.list_tools().await };
    let listed = tokio::time::timeout(timeout, AssertUnwindSafe(listed).catch_unwind());
    Box::pin(async move {
        match listed.await {
            Ok(Ok(listed)) => listed,
            Ok(Err(_)) => Err(ToolError::new(
                ErrorKind::Internal,
                Delivery::Unknown,
                "listing the tools panicked",
            )),
            Err(_) => {
                let text = format!(
                    "the tools were not listed within {} s, the timeout of discovery (never below \
                     {} s)",
                    timeout.as_secs_f64(),
                    DiscoveryConfig::LEAST_TIMEOUT.as_secs()
                );
                Err(ToolError::new(ErrorKind::Timeout, Delivery::Unknown, text))
            }
        }
    })
}

/// Waits for the end of a listing, which the breakers are told; for ever, where none runs.
async fn end_of(running: &mut Option<Listing>) -> Result<Vec<ToolDefinition>, ToolError> {
    let Some(listing) = running else {
        return std::future::pending().await;
    };
    let listed = listing.listed.as_mut().await;
    if let Some(listing) = running.take() {
        listing.settle(listed.as_ref().err());
    }
    listed
}

impl Listing {
    fn settle(self, error: Option<&ToolError>) {
        match error {
            None => self.discovery.succeed(),
            // it asked for time and gets it; that is no failure
            Some(error) if error.kind() == ErrorKind::RateLimited => drop(self.discovery),
            Some(error) => self.discovery.fail(error),
        }
        let Some(server) = self.server else {
            return;
        };
        let verdict = error.map_or(Verdict::Success, judge_error_of_transport);
        match (verdict, error) {
            (Verdict::Success, _) => server.succeed(),
            (Verdict::Failure, Some(error)) => server.fail(error),
            (Verdict::Failure | Verdict::Nothing, _) => drop(server),
        }
    }
}

async fn until(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due).await;
    }
}

/// Waits for the next event; for ever, where there is none.
async fn next(events: &mut Option<BoxStream<'static, ServerEvent>>) -> ServerEvent {
    let Some(stream) = events else {
        return std::future::pending().await;
    };
    if let Some(event) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        return event;
    }
    *events = None;
    ServerEvent::Down("it was shut down".to_owned())
}
