//! The requests of a process: makes, decides and runs them.

use std::collections::HashSet;
use std::fmt;
use std::iter::from_fn;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use callward_core::Principal;
use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::clock::now_ms;
use crate::step::{self, Step};
use crate::{
    ApprovalConfig, ApprovalError, Asked, Bounds, Decision, Execution, Outcome, Put, Request,
    RequestId, State, Store, StoreError, sweep,
};

/// What is called with each change.
type Observer = Box<dyn Fn(&Request, Option<&Principal>) + Send + Sync>;

/// A request as it is now.
type Answer = Result<Arc<Request>, ApprovalError>;

/// The requests for approval. Cloning copies a pointer.
///
/// Several may share one store, each with its own [`ApprovalConfig::instance`]. All that is decided
/// at one holds at the others; those who wait there learn of it within a second.
#[derive(Debug, Clone)]
pub struct Approvals(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: ApprovalConfig,
    events: broadcast::Sender<Arc<Request>>,
    /// Becomes `true` when no call waits any more.
    closed: watch::Sender<bool>,
    observer: OnceLock<Observer>,
    /// What changed at the start, for the observer.
    unseen: Mutex<Option<broadcast::Receiver<Arc<Request>>>>,
    /// The requests that clients are being asked about.
    asking: Mutex<HashSet<RequestId>>,
    sweeper: AbortHandle,
    /// How many requests were approved by grants.
    pub(crate) granted: AtomicUsize,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Approvals");
        shown
            .field("store", &self.store)
            .field("config", &self.config);
        shown.finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sweeper.abort();
    }
}

impl Approvals {
    /// Starts with what the store has. A call that this instance ran, and left without an outcome,
    /// becomes `unknown`.
    ///
    /// # Errors
    ///
    /// [`ApprovalError`] if a setting is invalid, or the store fails.
    pub async fn open(store: impl Store, config: ApprovalConfig) -> Result<Self, ApprovalError> {
        config.validate()?;
        let approvals = Self(Arc::new_cyclic(|inner| Inner {
            store: Arc::new(store),
            config,
            events: broadcast::Sender::new(MAX_EVENTS),
            closed: watch::Sender::default(),
            observer: OnceLock::new(),
            unseen: Mutex::default(),
            asking: Mutex::default(),
            sweeper: tokio::spawn(sweep::run(inner.clone())).abort_handle(),
            granted: AtomicUsize::new(0),
        }));
        *approvals.0.unseen.lock() = Some(approvals.events());
        for request in approvals.0.store.list().await? {
            let is_ours = request.consumed_by.as_ref() == Some(&approvals.0.config.instance);
            if is_ours && request.state == State::Consumed {
                approvals.try_step(&request.id, Step::Lose).await?;
            }
        }
        approvals.sweep().await?;
        Ok(approvals)
    }

    /// Returns the settings.
    #[must_use]
    pub fn config(&self) -> &ApprovalConfig {
        &self.0.config
    }

    /// Returns the request that answers for a call: one that is pending, approved and not yet run,
    /// or denied lately; otherwise a new one, which a [`Grant`](crate::Grant) may approve.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::TooMany`], or the failure of the store.
    pub async fn request(&self, asked: Asked) -> Answer {
        let config = &self.0.config;
        let bounds = Bounds {
            of_principal: config.pending_per_principal,
            in_all: config.pending,
        };
        loop {
            let latest = self.0.store.latest(asked.key()).await?;
            let now = now_ms();
            let id = match latest {
                Some(latest) if step::answering(&latest, now, config) => return Ok(latest),
                ref latest => latest.as_ref().map(|latest| latest.id.clone()),
            };
            let grant = self.granting(&asked).await?;
            let (new, grant) = (RequestId::random()?, grant.as_deref());
            let new = step::new(new, asked.clone(), latest.as_deref(), grant, now, config);
            let new = Arc::new(new);
            match self.0.store.put(new.clone(), id, bounds).await? {
                Put::Added => {
                    self.changed(&new);
                    if new.grant.is_some() {
                        self.bound_granted().await?;
                    }
                    return Ok(new);
                }
                Put::Changed => {}
                Put::Full(limit) => return Err(ApprovalError::TooMany(limit)),
            }
        }
    }

    /// Returns a request as it is now.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::NotFound`], or the failure of the store.
    pub async fn get(&self, id: &RequestId) -> Answer {
        loop {
            let request = self.stored(id).await?;
            if !request.is_overdue(now_ms()) {
                return Ok(request);
            }
            self.try_step(id, Step::Expire).await?;
        }
    }

    /// Lists all requests, the oldest first, those that ended lately included.
    ///
    /// # Errors
    ///
    /// The failure of the store.
    pub async fn list(&self) -> Result<Vec<Arc<Request>>, ApprovalError> {
        let (all, now) = (self.0.store.list().await?, now_ms());
        if !all.iter().any(|request| sweep::is_over(request, now)) {
            return Ok(all);
        }
        self.sweep().await?;
        Ok(self.0.store.list().await?)
    }

    /// Decides a pending request.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::DecidedByTheOneThatAsks`]; [`ApprovalError::Ended`] with the state of a
    /// request that is not pending; [`ApprovalError::NotFound`]; or the failure of the store.
    pub async fn decide(&self, id: &RequestId, decision: Decision) -> Answer {
        self.step(id, Step::Decide(decision)).await
    }

    /// Takes a request back, which its principal alone can do, until it runs.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::NotTheOneThatAsks`], and as [`decide`](Self::decide).
    pub async fn withdraw(&self, id: &RequestId, by: Principal) -> Answer {
        self.step(id, Step::Withdraw(by)).await
    }

    /// Calls a function, which must not block, with each request that is new, has another state, or
    /// is shown to a person who may decide it: to this one then. What changed when the store was
    /// opened comes first. Only the first function is called.
    pub fn observe(&self, call: impl Fn(&Request, Option<&Principal>) + Send + Sync + 'static) {
        let unseen = self.0.unseen.lock().take();
        for request in unseen
            .into_iter()
            .flat_map(|mut unseen| from_fn(move || unseen.try_recv().ok()))
        {
            call(&request, None);
        }
        let _ = self.0.observer.set(Box::new(call));
    }

    /// Notes that a request is shown to a person who may decide it.
    pub fn note_shown(&self, request: &Request, to: &Principal) {
        if let Some(observer) = self.0.observer.get() {
            observer(request, Some(to));
        }
    }

    /// Returns each request that is new or has another state, from now on, but not what changes
    /// at others that share the store. A listener that falls 1,024 events behind loses the oldest.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Arc<Request>> {
        self.0.events.subscribe()
    }

    /// Ends all waits, now and from now on: the process stops, and calls are answered. Requests
    /// stay open.
    pub fn close(&self) {
        self.0.closed.send_replace(true);
    }

    /// Returns `true` once it is [closed](Self::close).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        *self.0.closed.borrow()
    }

    /// Notes that a client is asked about a request, until the guard is dropped; `None` if one is
    /// asked already.
    pub(crate) fn asking(&self, id: &RequestId) -> Option<Asking> {
        let is_first = self.0.asking.lock().insert(id.clone());
        is_first.then(|| Asking(self.clone(), id.clone()))
    }

    /// Waits until a request is not pending any more, until this time, or until it is
    /// [closed](Self::close); returns the request as it is then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn wait(&self, id: &RequestId, until: Instant) -> Answer {
        // before the look, so that no change is missed between the two
        let mut events = self.0.events.subscribe();
        let mut closed = self.0.closed.subscribe();
        loop {
            let request = self.get(id).await?;
            let is_over = Instant::now() >= until || *closed.borrow_and_update();
            if request.state != State::Pending || is_over {
                return Ok(request);
            }
            let next = sweep::deadline(&request, self.0.store.is_shared()).min(until);
            // until an event of this request, or one that was missed
            let others = async { while events.recv().await.is_ok_and(|other| other.id != *id) {} };
            tokio::select! {
                _ = timeout_at(next, others) => {}
                _ = closed.changed() => {}
            }
        }
    }

    /// Uses an approval up, before its call is sent. When the returned guard is dropped before the
    /// call is, the approval is given back.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::Ended`] if it is not approved, as when another call was faster; and as
    /// [`get`](Self::get).
    pub async fn consume(&self, id: &RequestId) -> Result<Execution, ApprovalError> {
        self.begin(id, false).await
    }

    /// Goes on with a call whose server asked for input; `None` if there is no such call.
    ///
    /// # Errors
    ///
    /// The failure of the store.
    pub async fn resume(&self, asked: &Asked) -> Result<Option<Execution>, ApprovalError> {
        let latest = self.0.store.latest(asked.key()).await?;
        let Some(open) = latest.filter(|latest| latest.awaits_round) else {
            return Ok(None);
        };
        match self.begin(&open.id, true).await {
            Ok(execution) => Ok(Some(execution)),
            Err(ApprovalError::Ended { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the step in a task of its own: when the caller leaves meanwhile, the guard that it
    /// does not take is dropped, which undoes the step.
    async fn begin(&self, id: &RequestId, is_round: bool) -> Result<Execution, ApprovalError> {
        let (send, begun) = oneshot::channel();
        let (approvals, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            let by = approvals.0.config.instance.clone();
            let step = approvals.step(&id, Step::Begin { is_round, by }).await;
            // the rounds before were sent: of one that is not, only the round is given back
            let unsent = if is_round {
                Outcome::AwaitsRound
            } else {
                Outcome::NotSent
            };
            let begun = step.map(|request| Execution::new(approvals, request, unsent));
            let _undone = send.send(begun);
        });
        begun.await.map_err(StoreError::failed)?
    }

    async fn stored(&self, id: &RequestId) -> Answer {
        let request = self.0.store.get(id.clone()).await?;
        request.ok_or_else(|| ApprovalError::NotFound(id.clone()))
    }

    /// Takes a step, as often as another change comes between.
    pub(crate) async fn step(&self, id: &RequestId, step: Step) -> Answer {
        loop {
            let request = self.stored(id).await?;
            let next = Arc::new(step.clone().of(&request, now_ms())?);
            if self.0.store.replace(next.clone()).await? {
                self.changed(&next);
                return Ok(next);
            }
        }
    }

    /// Takes a step if the state still allows it.
    pub(crate) async fn try_step(&self, id: &RequestId, step: Step) -> Result<(), ApprovalError> {
        match self.step(id, step).await {
            Ok(_) | Err(ApprovalError::Ended { .. } | ApprovalError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn changed(&self, request: &Arc<Request>) {
        let (id, state, asked) = (&request.id, request.state, &request.asked);
        tracing::info!(%id, %state, set = %asked.set, tool = %asked.tool, "approval");
        if let Some(observer) = self.0.observer.get() {
            observer(request, None);
        }
        // fails if there is no listener
        let _ = self.0.events.send(request.clone());
    }
}

/// A request that a client is asked about.
pub(crate) struct Asking(Approvals, RequestId);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.0.asking.lock().remove(&self.1);
    }
}

/// How many events wait for a slow listener.
const MAX_EVENTS: usize = 1024;
