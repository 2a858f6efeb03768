//! The service of one server, with a breaker for each of its tools, or one for all.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict as Outcome};
use callward_core::{
    Delivery, ErrorKind, ServerId, Share, ToolCall, ToolError, ToolOutput, ToolService,
};
use tower_layer::Layer;
use tower_service::Service;

use crate::future::Held;
use crate::permit::Permit;
use crate::person::Listener;
use crate::state::Risk;
use crate::streak::Fault;
use crate::{BreakerFuture, BreakerSet, BreakerState, Circuit, Rejection, Subject};

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
        if self.is_of_server {
            Subject::Server
        } else {
            call.tool().name().into()
        }
    }

    /// Records that the breaker refused a call, or admits it as a probe.
    fn record(&self, call: &ToolCall, verdict: Outcome, why: &str) {
        call.decided(|| {
            let whose = if self.is_of_server {
                "the server"
            } else {
                "the tool there"
            };
            let reason = format!("{whose}: {why}");
            Decision::new(Stage::Breaker, verdict, reason).at(self.server.clone())
        });
    }

    fn refusal(&self, call: &ToolCall, rejection: &Rejection) -> ToolError {
        let (tool, server) = (call.tool().name(), &self.server);
        let message = if self.is_of_server {
            format!("server `{server}` was not asked for `{tool}`: {rejection}")
        } else {
            format!("`{tool}` on server `{server}` was not called: {rejection}")
        };
        let error = ToolError::new(ErrorKind::BreakerOpen, Delivery::NotSent, message)
            .with_server(server.clone());
        match rejection.retry_after() {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }
}

impl<S: ToolService> Service<ToolCall> for Breaker<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BreakerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let shared = &*self.shared;
        let circuit = shared
            .set
            .of_call(&shared.server, shared.subject(&call), &call);
        let permit = match admit(&circuit, &call) {
            Ok(permit) => permit,
            Err(rejection) => {
                shared.record(&call, Outcome::Refused, rejection.why());
                return BreakerFuture::refused(shared.refusal(&call, &rejection));
            }
        };
        if call.record().is_some()
            && matches!(circuit.state(), BreakerState::HalfOpen | BreakerState::Open)
        {
            let why = "to find out whether it is well again";
            shared.record(&call, Outcome::Probe, why);
        }
        let progress = call.progress().cloned();
        let person = circuit
            .takes_time()
            .then(|| Arc::new(Listener::new(progress)));
        if let Some(listener) = &person {
            call = call.with_progress(listener.clone());
        }
        let held = Held {
            permit,
            is_of_server: shared.is_of_server,
            fault: Fault {
                tool: Some(call.tool().digest()),
                is_retry: call.attempt().avoid.contains(&shared.server),
            },
            short_share: short_share(&call),
            person,
        };
        BreakerFuture::admitted(self.inner.call(call), held)
    }
}

fn admit(circuit: &Arc<Circuit>, call: &ToolCall) -> Result<Permit, Rejection> {
    let risk = Risk::of(call.plan());
    circuit.admit_risk(risk).or_else(|rejection| {
        let may_pass = call.attempt().ignores_open_breakers && risk == Risk::Safe;
        let extra = may_pass.then(|| circuit.admit_extra()).flatten();
        extra.ok_or(rejection)
    })
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
