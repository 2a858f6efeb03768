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
use callward::telemetry::names::metric::label;
use callward_auth::signed::SignedClient;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
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

/// The outcomes of attempts, and of states that are given up.
pub(crate) const OUTCOMES: [&str; 3] = [DELIVERED, FAILED, LOST];
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

/// Counts an attempt, or a state that is given up.
pub(crate) fn count(deliveries: &Counter<u64>, count: u64, outcome: &'static str) {
    deliveries.add(count, &[KeyValue::new(label::OUTCOME, outcome)]);
}

/// Sends what happens from now on, until the gateway has answered its last call.
pub(crate) fn start(runtime: &Arc<Runtime>) {
    let events = runtime.stack.approvals().map(Approvals::events);
    let runtime = runtime.clone();
    tokio::spawn(async move {
        let webhook = runtime.webhook.as_ref();
        if let Some((webhook, events)) = webhook.zip(events) {
            let sending = send(&runtime, webhook, events);
            runtime.stop.drained.run_until_cancelled(sending).await;
        }
    });
}

async fn send(runtime: &Runtime, webhook: &Webhook, mut events: Receiver<Arc<Request>>) {
    let mut queue = Queue {
        runtime,
        webhook,
        running: Arc::new(Semaphore::new(MAX_RUNNING)),
        waiting: HashMap::new(),
        attempts: FuturesUnordered::new(),
        is_down: false,
    };
    queue.add_pending().await;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(request) => queue.add(request),
                Err(RecvError::Lagged(_)) => queue.add_pending().await,
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
    async fn add_pending(&mut self) {
        let Some(approvals) = self.runtime.stack.approvals() else {
            return;
        };
        let all = approvals.list().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "pending approvals are not sent to the webhook");
            Vec::new()
        });
        let pending = all.into_iter();
        let pending = pending.filter(|request| request.state == State::Pending);
        pending.for_each(|request| self.add(request));
    }

    fn add(&mut self, request: Arc<Request>) {
        let is_first = !self.waiting.contains_key(&request.id);
        // a call that begins to run is neither decided nor ended by that
        if request.state == State::Consumed {
            return;
        }
        if is_first && self.waiting.len() == MAX_REQUESTS {
            return self.count(LOST);
        }
        let states = self.waiting.entry(request.id.clone()).or_default();
        let last = states.back().map(|last| last.revision);
        if last >= Some(request.revision) {
            return;
        }
        let dropped = (states.len() == MAX_STATES).then(|| states.pop_back());
        states.push_back(request.clone());
        if is_first {
            self.attempt(request, 0);
        }
        if dropped.is_some() {
            self.count(LOST);
        }
    }

    fn attempt(&self, request: Arc<Request>, failures: u32) {
        let (webhook, runtime) = (self.webhook, self.runtime);
        let running = self.running.clone();
        self.attempts.push(Box::pin(async move {
            sleep(pause(failures, fastrand::f64()).min(left(request.expires_ms))).await;
            let _permit = running.acquire().await;
            let id = format!("{}-{}", request.id, request.revision);
            let body = message(&request, runtime);
            let sent = timeout(TIMEOUT, webhook.client.send(&id, body, 0)).await;
            let sent = sent.unwrap_or_else(|_| Err("it does not answer".to_owned()));
            (request, failures, sent)
        }));
    }

    fn ended(&mut self, (request, failures, sent): Ended) {
        let (id, is_sent) = (&request.id, sent.is_ok());
        let was_down = std::mem::replace(&mut self.is_down, !is_sent);
        let mut failing = self.webhook.failing.lock();
        failing.remove(id);
        let failures = if let Err(error) = sent {
            if !was_down {
                tracing::warn!(%error, "the webhook of approvals fails: it does not know requests");
            }
            failing.insert(id.clone(), error);
            failures.saturating_add(1)
        } else {
            0
        };
        self.count(if is_sent { DELIVERED } else { FAILED });
        let Some(states) = self.waiting.get_mut(id) else {
            return;
        };
        let is_over = states.len() > 1 || left(request.expires_ms).is_zero();
        if is_sent || is_over {
            states.pop_front();
        }
        let next = states.front().cloned();
        if is_over && !is_sent {
            self.count(LOST);
        }
        match next {
            Some(next) => {
                drop(failing);
                self.attempt(next, failures);
            }
            None => {
                failing.remove(id);
                self.waiting.remove(id);
            }
        }
    }

    fn count(&self, outcome: &'static str) {
        count(&self.runtime.telemetry.deliveries, 1, outcome);
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

/// Returns the pause after this many failures in a row; `random` is from 0 to 1.
fn pause(failures: u32, random: f64) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else {
        return Duration::ZERO;
    };
    let full = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(doublings));
    full.min(LONGEST_PAUSE).mul_f64(0.5 + random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_half_of_each_is_random() {
        let longest = [0, 1, 2, 3, 9, u32::MAX].map(|failures| pause(failures, 1.0).as_millis());
        assert_eq!(longest, [0, 250, 500, 1_000, 60_000, 60_000]);
        assert_eq!(pause(2, 0.0).as_millis(), 250);
    }
}
