//! `[approvals.webhook]`: sends each new state of a request for approval to a service of the
//! operator, which may answer.
//!
//! The states of a request are sent one after the other, and each until the service takes it, or
//! the request expires. A state that cannot be sent is left out when there is a newer one. No call
//! and no decision waits for it. After a restart, what is pending is sent again, with the same
//! `webhook-id`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use callward::approval::{Approvals, Request, RequestId, State};
use callward::core::BoxFuture;
use callward::telemetry::names::metric::{APPROVAL_DELIVERIES, label};
use callward_auth::signed::SignedClient;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{sleep, timeout};

use crate::api::{left, whole};
use crate::config::ApprovalWebhook;
use crate::runtime::Runtime;

/// How long the service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many messages are sent at a time.
const MAX_RUNNING: usize = 16;
/// Of how many requests states wait to be sent: more than may be pending by default.
const MAX_REQUESTS: usize = 16 * 1024;
/// How many states of one request wait.
const MAX_STATES: usize = 8;
/// The pause after a first failure; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The outcomes that are counted: of attempts, and of states that are not sent any more.
const DELIVERED: &str = "delivered";
const FAILED: &str = "failed";
const LOST: &str = "lost";

/// The service, and why it does not take the states of which requests.
#[derive(Debug)]
pub(crate) struct Webhook {
    pub(crate) client: SignedClient,
    failing: Mutex<HashMap<RequestId, String>>,
}

impl Webhook {
    /// Takes the settings.
    ///
    /// # Errors
    ///
    /// Which setting cannot be used, why, and what is expected.
    pub(crate) fn new(config: &ApprovalWebhook) -> Result<Self, String> {
        Ok(Self {
            client: SignedClient::new(&config.url, &config.secret)?,
            failing: Mutex::default(),
        })
    }

    /// Returns why the service does not know a state of a request yet; `None` if it does, or is not
    /// asked any more.
    pub(crate) fn failing(&self, id: &RequestId) -> Option<String> {
        let failing = self.failing.lock();
        failing.get(id).map(|why| format!("failing: {why}"))
    }
}

/// Counts attempts to send a state, and states that are not sent any more.
#[derive(Debug, Clone)]
pub(crate) struct Deliveries(Counter<u64>);

impl Deliveries {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = meter.u64_counter(APPROVAL_DELIVERIES.name);
        let counter = counter
            .with_unit(APPROVAL_DELIVERIES.unit)
            .with_description(APPROVAL_DELIVERIES.description)
            .build();
        let deliveries = Self(counter);
        // they exist before the first delivery
        for outcome in [DELIVERED, FAILED, LOST] {
            deliveries.add(0, outcome);
        }
        deliveries
    }

    fn add(&self, count: u64, outcome: &'static str) {
        self.0.add(count, &[KeyValue::new(label::OUTCOME, outcome)]);
    }
}

/// Sends what happens from now on, until the gateway has answered its last call.
pub(crate) fn start(runtime: &Arc<Runtime>) {
    let Some(approvals) = runtime.stack.approvals().cloned() else {
        return;
    };
    if runtime.webhook.is_none() {
        return;
    }
    let (events, runtime) = (approvals.events(), runtime.clone());
    let drained = runtime.stop.drained.clone();
    tokio::spawn(async move {
        let sending = send(&runtime, &approvals, events);
        drained.run_until_cancelled(sending).await;
    });
}

async fn send(runtime: &Runtime, approvals: &Approvals, mut events: Receiver<Arc<Request>>) {
    let Some(webhook) = &runtime.webhook else {
        return;
    };
    let mut queue = Queue {
        runtime,
        webhook,
        running: Arc::new(Semaphore::new(MAX_RUNNING)),
        waiting: HashMap::new(),
        attempts: FuturesUnordered::new(),
        is_down: false,
    };
    queue.add_pending(approvals).await;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(request) => queue.add(request),
                Err(RecvError::Lagged(_)) => queue.add_pending(approvals).await,
                Err(RecvError::Closed) => return,
            },
            Some(ended) = queue.attempts.next() => queue.ended(ended),
        }
    }
}

/// An attempt that ended: the state, how many failed in a row, and why this one did.
type Ended = (Arc<Request>, u32, Result<Vec<u8>, String>);

/// The states that are to be sent.
struct Queue<'r> {
    runtime: &'r Runtime,
    webhook: &'r Webhook,
    running: Arc<Semaphore>,
    /// Of each request the states in their order; the first is being sent.
    waiting: HashMap<RequestId, VecDeque<Arc<Request>>>,
    attempts: FuturesUnordered<BoxFuture<'r, Ended>>,
    /// Whether the last attempt failed; the first failure in a row is logged.
    is_down: bool,
}

impl Queue<'_> {
    /// Adds what is pending: after a restart, and in place of events that were missed.
    async fn add_pending(&mut self, approvals: &Approvals) {
        match approvals.list().await {
            Ok(all) => {
                let pending = all.into_iter();
                let pending = pending.filter(|request| request.state == State::Pending);
                pending.for_each(|request| self.add(request));
            }
            Err(error) => tracing::warn!(%error, "pending approvals are not sent to the webhook"),
        }
    }

    fn add(&mut self, request: Arc<Request>) {
        let (all, deliveries) = (self.waiting.len(), &self.runtime.telemetry.deliveries);
        match self.waiting.get_mut(&request.id) {
            // that it runs is no decision, and no end
            _ if request.state == State::Consumed => {}
            Some(states) => {
                if states.len() == MAX_STATES {
                    states.remove(1);
                    deliveries.add(1, LOST);
                }
                let last = states.back().map(|last| last.revision);
                if last < Some(request.revision) {
                    states.push_back(request);
                }
            }
            None if all == MAX_REQUESTS => deliveries.add(1, LOST),
            None => {
                let states = VecDeque::from([request.clone()]);
                self.waiting.insert(request.id.clone(), states);
                self.attempt(request, 0, Duration::ZERO);
            }
        }
    }

    fn attempt(&mut self, request: Arc<Request>, failures: u32, after: Duration) {
        let (webhook, runtime) = (self.webhook, self.runtime);
        let running = self.running.clone();
        self.attempts.push(Box::pin(async move {
            sleep(after).await;
            let _permit = running.acquire().await;
            let id = format!("{}-{}", request.id, request.revision);
            let body = message(&request, runtime);
            let sent = timeout(TIMEOUT, webhook.client.send(&id, body, 0)).await;
            let sent = sent.unwrap_or_else(|_| Err("it does not answer".to_owned()));
            (request, failures, sent)
        }));
    }

    fn ended(&mut self, (request, failures, sent): Ended) {
        let was_down = std::mem::replace(&mut self.is_down, sent.is_err());
        let Some(states) = self.waiting.get_mut(&request.id) else {
            return;
        };
        let (failing, deliveries) = (&self.webhook.failing, &self.runtime.telemetry.deliveries);
        let (mut failures, mut after) = (failures, Duration::ZERO);
        match sent {
            Ok(_) => {
                failures = 0;
                deliveries.add(1, DELIVERED);
                failing.lock().remove(&request.id);
                states.pop_front();
            }
            Err(error) => {
                if !was_down {
                    let so = "the webhook of approvals fails: who is asked there does not know";
                    tracing::warn!(%error, "{so}");
                }
                after = pause(failures, fastrand::f64());
                failures = failures.saturating_add(1);
                deliveries.add(1, FAILED);
                failing.lock().insert(request.id.clone(), error);
                if states.len() > 1 || after >= left(&request) {
                    deliveries.add(1, LOST);
                    states.pop_front();
                }
            }
        }
        match states.front().cloned() {
            Some(next) => self.attempt(next, failures, after),
            None => {
                self.waiting.remove(&request.id);
                failing.lock().remove(&request.id);
            }
        }
    }
}

/// Describes a request as `GET /api/approvals/ID` does, without what is of the moment: each time
/// that a state is sent, the message is the same.
fn message(request: &Request, runtime: &Runtime) -> String {
    let mut view = whole(request, runtime);
    if let Some(members) = view.as_object_mut() {
        members.retain(|name, _| !["delivery", "left_s"].contains(&name.as_str()));
    }
    view.to_string()
}

/// Returns the pause after this many failures in a row, counted from 0; `random` is from 0 to 1.
fn pause(failures: u32, random: f64) -> Duration {
    let full = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures));
    full.min(LONGEST_PAUSE).mul_f64(0.5 + random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_half_of_each_is_random() {
        let longest = [0, 1, 2, 8, u32::MAX].map(|failures| pause(failures, 1.0).as_millis());
        assert_eq!(longest, [250, 500, 1_000, 60_000, 60_000]);
        assert_eq!(pause(1, 0.0).as_millis(), 250);
    }
}
