//! The service of one server, with a breaker for each of its tools, or one for all.

use std::fmt;
use std::future::{self, Future, Ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict as Outcome};
use callward_core::{
    Delivery, ErrorKind, PersonClock, ProgressSink, ServerId, Share, ToolCall, ToolError,
    ToolOutput, ToolService,
};
use futures_util::future::Either;
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::state::is_unsafe_write;
use crate::streak::Fault;
use crate::verdict::{judge_error, judge_error_of_transport, may_be_the_tool};
use crate::{BreakerSet, BreakerState, Circuit, Permit, Rejection, Subject, Verdict};

/// Puts a [`Breaker`] around the service of one server.
///
/// ```
/// use serde_json::json;
/// use callward_breaker::{BreakerLayer, BreakerSet};
/// use callward_core::{Delivery, ErrorKind, ServerId, ToolError};
/// use callward_testkit::{MockService, call, tool};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let down = MockService::new(|_, _| async {
///     Err(ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "connection refused"))
/// });
/// let breakers = BreakerSet::default();
/// let orders = ServerId::new("orders").expect("a valid id");
/// let service = ServiceBuilder::new()
///     .layer(BreakerLayer::new(breakers.clone(), orders.clone()))
///     .service(down.clone());
/// let get_order = tool("get_order").read_only().build();
/// for _ in 0..5 {
///     let result = service.clone().oneshot(call(&get_order, json!({}))).await;
///     assert!(result.is_err());
/// }
/// assert_eq!(down.started(), 3, "two calls were refused at once");
/// assert!(!breakers.circuit(&orders, get_order.name()).is_available());
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct BreakerLayer(Arc<Shared>);

/// Refuses calls of tools that keep failing on this server, or of a server that keeps failing.
#[derive(Debug, Clone)]
pub struct Breaker<S> {
    inner: S,
    shared: Arc<Shared>,
}

/// Which server's breakers, and where they are kept.
#[derive(Debug)]
struct Shared {
    server: ServerId,
    set: BreakerSet,
    /// One breaker for the whole server, or one for each tool.
    is_of_server: bool,
}

impl BreakerLayer {
    /// Makes the layer with a breaker for each tool of a server; the breakers are kept in the set.
    pub fn new(set: BreakerSet, server: ServerId) -> Self {
        Self::with(set, server, false)
    }

    /// Makes the layer with one breaker for a whole server, which is kept in the set.
    pub fn of_server(set: BreakerSet, server: ServerId) -> Self {
        Self::with(set, server, true)
    }

    fn with(set: BreakerSet, server: ServerId, is_of_server: bool) -> Self {
        Self(Arc::new(Shared {
            server,
            set,
            is_of_server,
        }))
    }
}

impl<S> Layer<S> for BreakerLayer {
    type Service = Breaker<S>;

    fn layer(&self, inner: S) -> Breaker<S> {
        Breaker {
            inner,
            shared: self.0.clone(),
        }
    }
}

impl Shared {
    fn subject(&self, call: &ToolCall) -> Subject {
        match self.is_of_server {
            true => Subject::Server,
            false => call.tool().name().into(),
        }
    }

    fn admit(&self, circuit: &Arc<Circuit>, call: &ToolCall) -> Result<Permit, ToolError> {
        let is_write = is_unsafe_write(call.plan());
        let is_extra = call.attempt().ignores_open_breakers && !is_write;
        let admitted = circuit.admit_call(is_write, is_extra);
        let is_open = || matches!(circuit.state(), BreakerState::HalfOpen | BreakerState::Open);
        match &admitted {
            Ok(_) if call.record.is_some() && is_open() => {
                self.record(call, Outcome::Probe, "to find out whether it is well again");
            }
            Ok(_) => {}
            Err(rejection) => self.record(call, Outcome::Refused, rejection.why()),
        }
        admitted.map_err(|rejection| self.refusal(call, &rejection))
    }

    /// Records that the breaker refused a call, or admits it as a probe.
    fn record(&self, call: &ToolCall, verdict: Outcome, why: &str) {
        call.decided(|| {
            let whose = match self.is_of_server {
                true => "the server",
                false => "the tool there",
            };
            let reason = format!("{whose}: {why}");
            Decision::new(Stage::Breaker, verdict, reason).at(self.server.clone())
        });
    }

    fn refusal(&self, call: &ToolCall, rejection: &Rejection) -> ToolError {
        let (tool, server) = (call.tool().name(), &self.server);
        let message = match self.is_of_server {
            true => format!("server `{server}` was not asked for `{tool}`; {rejection}"),
            false => format!("`{tool}` on server `{server}` was not called: {rejection}"),
        };
        let mut error = ToolError::new(ErrorKind::BreakerOpen, Delivery::NotSent, message)
            .with_server(server.clone());
        error.retry_after = rejection.retry_after();
        error
    }
}

impl<S: ToolService> Service<ToolCall> for Breaker<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<BreakerFuture<S::Future>, Ready<Result<ToolOutput, ToolError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let shared = &*self.shared;
        let (server, subject) = (&shared.server, shared.subject(&call));
        let circuit = shared.set.of_call(server, &subject, &call);
        let mut permit = match shared.admit(&circuit, &call) {
            Ok(permit) => permit,
            Err(refusal) => return Either::Right(future::ready(Err(refusal))),
        };
        permit.fault = Fault {
            tool: Some(call.tool().digest()),
            is_retry: call.attempt().avoid.contains(server),
        };
        let mut person = None;
        if circuit.takes_time {
            let listener = Arc::new(Listener::new(call.progress().cloned()));
            call = call.with_progress(listener.clone());
            person = Some(listener);
        }
        Either::Left(BreakerFuture {
            short_share: short_share(&call),
            is_of_server: shared.is_of_server,
            call: self.inner.call(call),
            permit: Some(permit),
            person,
        })
    }
}

/// Returns the attempt's share of the time to the caller's deadline, if it is so short that it may
/// end the attempt although the server is well.
fn short_share(call: &ToolCall) -> Option<Share> {
    let limit = PATIENCE.min(call.plan().limits.attempt_timeout);
    let share = call.attempt().share.as_ref();
    share.filter(|share| share.time() < limit).cloned()
}

/// A server that has this much time and does not answer is at fault, even if its tool's own timeout
/// is longer. Otherwise one that hangs would never open where all callers have deadlines.
const PATIENCE: Duration = Duration::from_secs(5);

pin_project! {
    /// The call of a [`Breaker`](crate::Breaker) that was admitted.
    pub struct BreakerFuture<F> {
        #[pin]
        call: F,
        // dropped unsettled, it counts as nothing
        permit: Option<Permit>,
        // the breaker is for the whole server, rather than for the tool
        is_of_server: bool,
        // the attempt's share of the time, if it may end the attempt too soon to say anything
        // about the server
        short_share: Option<Share>,
        // measures how long the call waits for a person, if calls are timed
        person: Option<Arc<Listener>>,
    }
}

impl<F: Future<Output = Result<ToolOutput, ToolError>>> Future for BreakerFuture<F> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.call.poll(cx));
        if let Some(mut permit) = this.permit.take() {
            if let Some(person) = this.person {
                permit.waited = person.waited();
            }
            let share = this.short_share.as_ref();
            settle(permit, &result, *this.is_of_server, share);
        }
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for BreakerFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerFuture").finish_non_exhaustive()
    }
}

fn settle(
    mut permit: Permit,
    result: &Result<ToolOutput, ToolError>,
    is_of_server: bool,
    short_share: Option<&Share>,
) {
    let Err(error) = result else {
        return permit.succeed();
    };
    let verdict = match is_of_server {
        true => judge_error_of_transport(error),
        false => judge_error(error),
    };
    let was_in_a_hurry =
        error.kind == ErrorKind::Timeout && short_share.is_some_and(|share| share.has_ended());
    match verdict {
        Verdict::Success => permit.succeed(),
        Verdict::Failure if !was_in_a_hurry => {
            if !(is_of_server && may_be_the_tool(error)) {
                permit.fault.tool = None;
            }
            permit.fail(error);
        }
        // the place of a probe goes back
        _ => drop(permit),
    }
}

/// Measures how long a call waits for a person, and forwards everything to the sink it had before.
struct Listener {
    outer: Option<Arc<dyn ProgressSink>>,
    clock: Mutex<PersonClock>,
}

impl Listener {
    fn new(outer: Option<Arc<dyn ProgressSink>>) -> Self {
        let clock = Mutex::default();
        Self { outer, clock }
    }

    /// Returns how long the call waited for a person up to now.
    fn waited(&self) -> Duration {
        self.clock.lock().time(Instant::now().into_std())
    }
}

impl ProgressSink for Listener {
    fn report(&self, params: &[u8]) {
        if let Some(outer) = &self.outer {
            outer.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        self.clock.lock().wait(waits, Instant::now().into_std());
        if let Some(outer) = &self.outer {
            outer.waits_for_person(waits);
        }
    }
}
