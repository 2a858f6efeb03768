//! The requests of a process: makes, decides and runs them.

use std::fmt;
use std::sync::Arc;

use callward_core::Principal;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::clock::now_ms;
use crate::step::{self, Step};
use crate::waiting::Waiting;
use crate::{
    ApprovalConfig, ApprovalError, Asked, Bounds, Decision, Execution, Outcome, Put, Request,
    RequestId, State, Store, StoreError, sweep,
};

/// The requests for approval. Cloning copies a pointer.
///
/// Several may share one store, each with its own [`ApprovalConfig::instance`]. All that is decided
/// at one holds at the others; those who wait there learn of it within a second.
#[derive(Clone)]
pub struct Approvals(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: ApprovalConfig,
    pub(crate) waiting: Waiting,
    events: broadcast::Sender<Arc<Request>>,
    sweeper: AbortHandle,
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
            waiting: Waiting::default(),
            events: broadcast::Sender::new(MAX_EVENTS),
            sweeper: tokio::spawn(sweep::run(inner.clone())).abort_handle(),
        }));
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
    /// or denied lately; otherwise a new one.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::TooMany`], or the failure of the store.
    pub async fn request(&self, asked: Asked) -> Result<Arc<Request>, ApprovalError> {
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
            let new = RequestId::random()?;
            let new = step::new(new, asked.clone(), latest.as_deref(), now, config);
            let new = Arc::new(new);
            match self.0.store.put(new.clone(), id, bounds).await? {
                Put::Added => {
                    self.changed(&new);
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
    pub async fn get(&self, id: &RequestId) -> Result<Arc<Request>, ApprovalError> {
        loop {
            let request = self.0.store.get(id.clone()).await?;
            let request = request.ok_or_else(|| ApprovalError::NotFound(id.clone()))?;
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
        self.sweep().await?;
        Ok(self.0.store.list().await?)
    }

    /// Decides a pending request.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::DecidedByTheOneThatAsks`]; [`ApprovalError::Ended`] with the state of a
    /// request that is not pending; [`ApprovalError::NotFound`]; or the failure of the store.
    pub async fn decide(
        &self,
        id: &RequestId,
        decision: Decision,
    ) -> Result<Arc<Request>, ApprovalError> {
        self.step(id, Step::Decide(decision)).await
    }

    /// Takes a request back, which its principal alone can do, until it runs.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::NotTheOneThatAsks`], and as [`decide`](Self::decide).
    pub async fn withdraw(
        &self,
        id: &RequestId,
        by: Principal,
    ) -> Result<Arc<Request>, ApprovalError> {
        self.step(id, Step::Withdraw(by)).await
    }

    /// Returns a stream of what changes from now on, here and not at others that share the store.
    #[must_use]
    pub fn events(&self) -> ApprovalEvents {
        ApprovalEvents(self.0.events.subscribe())
    }

    /// Waits until a request is not pending any more, or until this time; returns it as it is then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn wait(
        &self,
        id: &RequestId,
        until: Instant,
    ) -> Result<Arc<Request>, ApprovalError> {
        loop {
            // before the look, so that no change is missed between the two
            let mut changes = self.0.waiting.subscribe(id);
            let request = self.get(id).await?;
            if request.state != State::Pending || Instant::now() >= until {
                return Ok(request);
            }
            let next = sweep::deadline(&request, self.0.store.is_shared()).min(until);
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(next) => {}
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
        let step = Step::Consume(self.0.config.instance.clone());
        self.begin(id.clone(), step, Outcome::NotSent).await
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
        let step = Step::Resume(self.0.config.instance.clone());
        // the rounds before were sent: of a round that is not, only the round is given back
        match self
            .begin(open.id.clone(), step, Outcome::AwaitsRound)
            .await
        {
            Ok(execution) => Ok(Some(execution)),
            Err(ApprovalError::Ended { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the step in a task of its own: when the caller leaves meanwhile, the guard that it
    /// does not take is dropped, which undoes the step.
    async fn begin(
        &self,
        id: RequestId,
        step: Step,
        unsent: Outcome,
    ) -> Result<Execution, ApprovalError> {
        let (send, begun) = oneshot::channel();
        let approvals = self.clone();
        tokio::spawn(async move {
            let step = approvals.step(&id, step).await;
            let _undone = send.send(step.map(|request| Execution::new(approvals, request, unsent)));
        });
        let ended = |error| ApprovalError::Store(StoreError::failed(error));
        begun.await.map_err(ended)?
    }

    /// Takes a step, as often as another change comes between.
    pub(crate) async fn step(
        &self,
        id: &RequestId,
        step: Step,
    ) -> Result<Arc<Request>, ApprovalError> {
        loop {
            let request = self.0.store.get(id.clone()).await?;
            let request = request.ok_or_else(|| ApprovalError::NotFound(id.clone()))?;
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
        self.0.waiting.wake(id);
        // fails if there is no listener
        let _ = self.0.events.send(request.clone());
    }
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = &self.0.store;
        f.debug_tuple("Approvals").field(store).finish()
    }
}

/// How many events wait for a slow listener.
const MAX_EVENTS: usize = 1024;

/// What changed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ApprovalEvent {
    /// A request is new, or has another state: it is now as here.
    Changed(Arc<Request>),
    /// The listener was so slow that this many events were dropped, the oldest first.
    Missed(u64),
}

/// A bounded stream of changes. A listener that falls 1,024 events behind loses the oldest.
#[derive(Debug)]
pub struct ApprovalEvents(broadcast::Receiver<Arc<Request>>);

impl ApprovalEvents {
    /// Waits for the next change; `None` when all [`Approvals`] are gone.
    pub async fn next(&mut self) -> Option<ApprovalEvent> {
        match self.0.recv().await {
            Ok(request) => Some(ApprovalEvent::Changed(request)),
            Err(RecvError::Lagged(missed)) => Some(ApprovalEvent::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}
