//! The service of one server, with a breaker for each of its tools, or one for all.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict as Told};
use callward_core::{
    ByTool, Delivery, ErrorKind, ServerId, Share, ToolCall, ToolError, ToolName, ToolOutput,
    ToolService,
};
use tower_service::Service;

use crate::circuit::News;
use crate::future::{Held, Judge};
use crate::mark::Mark;
use crate::person::Listener;
use crate::{BreakerFuture, BreakerSet, Circuit, Permit, Rejection, Risk, judge, judge_transport};

/// Refuses calls of tools that keep failing on this server, or of a server that keeps failing.
#[derive(Debug, Clone)]
pub struct Breaker<S> {
    inner: S,
    /// One pointer: a service is cloned for each call.
    site: Arc<Site>,
}

/// Which server's breakers, and where they are.
#[derive(Debug)]
pub(crate) struct Site {
    server: ServerId,
    set: BreakerSet,
    breakers: Breakers,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of them for each server, behind a pointer"
)]
enum Breakers {
    /// One for all tools.
    Server(Arc<Circuit>),
    /// One for each.
    Tools { recent: ByTool<Arc<Circuit>> },
}

impl Site {
    pub(crate) fn of_tools(set: BreakerSet, server: ServerId) -> Self {
        let recent = ByTool::new();
        Self {
            server,
            set,
            breakers: Breakers::Tools { recent },
        }
    }

    pub(crate) fn of_server(set: &BreakerSet, server: ServerId) -> Self {
        Self {
            breakers: Breakers::Server(set.server_circuit(&server)),
            set: set.clone(),
            server,
        }
    }

    fn circuit(&self, call: &ToolCall) -> Arc<Circuit> {
        if let Some(owner) = call.owner() {
            return self
                .set
                .owned_circuit(&self.server, self.subject(call), owner);
        }
        match &self.breakers {
            Breakers::Server(circuit) => circuit.clone(),
            Breakers::Tools { recent } => recent.with(
                call.tool(),
                || self.set.circuit(&self.server, call.tool().name()),
                Arc::clone,
            ),
        }
    }

    pub(crate) fn lets_through(&self, call: &ToolCall) -> bool {
        let risk = Risk::of(call.plan());
        if let Some(owner) = call.owner() {
            let subject = self.subject(call);
            return self
                .set
                .owned_lets_through(&self.server, subject, owner, risk);
        }
        match &self.breakers {
            Breakers::Server(circuit) => circuit.is_available_to(risk),
            Breakers::Tools { recent } => {
                let tool = call.tool();
                recent
                    .ask(tool, |circuit| circuit.is_available_to(risk))
                    .unwrap_or_else(|| self.set.tool_lets_through(&self.server, tool.name(), risk))
            }
        }
    }

    /// The tool, where each has a breaker.
    fn subject<'a>(&self, call: &'a ToolCall) -> Option<&'a ToolName> {
        match self.breakers {
            Breakers::Server(_) => None,
            Breakers::Tools { .. } => Some(call.tool().name()),
        }
    }

    fn judge(&self) -> Judge {
        match self.breakers {
            Breakers::Server(_) => judge_transport,
            Breakers::Tools { .. } => judge,
        }
    }

    /// The tool that may be all that is wrong with a call, where others stand behind the same breaker.
    fn suspect(&self, call: &ToolCall) -> Option<Mark> {
        match self.breakers {
            Breakers::Server(_) => Some(Mark::of(call.tool())),
            Breakers::Tools { .. } => None,
        }
    }

    /// Writes down that the breaker refused a call, or lets it through to find out how the server is.
    fn tell(&self, call: &ToolCall, verdict: Told, why: &str) {
        call.decided(|| {
            let whose = match self.breakers {
                Breakers::Server(_) => "the server",
                Breakers::Tools { .. } => "the tool there",
            };
            let reason = format!("{whose}: {why}");
            Decision::new(Stage::Breaker, verdict, reason).at(self.server.clone())
        });
    }

    fn refusal(&self, call: &ToolCall, circuit: &Arc<Circuit>, rejection: &Rejection) -> ToolError {
        let (tool, server) = (call.tool().name(), &self.server);
        // the rejection goes on with "its breaker"
        let message = match self.breakers {
            Breakers::Server(_) => {
                format!("server `{server}` was not asked for `{tool}`: {rejection}")
            }
            Breakers::Tools { .. } => {
                format!("`{tool}` on server `{server}` was not called: {rejection}")
            }
        };
        let error = ToolError::new(ErrorKind::BreakerOpen, Delivery::NotSent, message)
            .with_server(server.clone());
        let error = match rejection.news() {
            Some(seen) => error.with_reopening(News::of(circuit, seen)),
            None => error,
        };
        match rejection.time_to_probe() {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }
}

impl<S> Breaker<S> {
    /// Wraps the service of a server with a breaker for each tool; the breakers live in the set.
    #[must_use]
    pub fn new(inner: S, set: BreakerSet, server: ServerId) -> Self {
        Self::at(inner, Arc::new(Site::of_tools(set, server)))
    }

    /// Wraps the service of a server with one breaker for all of it, which lives in the set.
    #[must_use]
    pub fn of_server(inner: S, set: &BreakerSet, server: ServerId) -> Self {
        Self::at(inner, Arc::new(Site::of_server(set, server)))
    }

    pub(crate) const fn at(inner: S, site: Arc<Site>) -> Self {
        Self { inner, site }
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
        let circuit = self.site.circuit(&call);
        let ticket = match circuit.enter(Risk::of(call.plan())) {
            Ok(ticket) => ticket,
            Err(rejection) => {
                self.site.tell(&call, Told::Refused, rejection.why());
                return BreakerFuture::refused(self.site.refusal(&call, &circuit, &rejection));
            }
        };
        if call.record().is_some() && circuit.is_probing() {
            let why = "to find out whether it is well again";
            self.site.tell(&call, Told::Probe, why);
        }
        let mut person = None;
        if circuit.takes_time() {
            let listener = Arc::new(Listener::new(call.progress().cloned()));
            call = call.with_progress(listener.clone());
            person = Some(listener);
        }
        let held = Held {
            permit: Permit::counted(circuit, ticket),
            judge: self.site.judge(),
            tool: self.site.suspect(&call),
            session: call.caller().session.as_ref().map(Mark::of_session),
            hurry: hurry(&call),
            person,
        };
        BreakerFuture::admitted(self.inner.call(call), held)
    }
}

/// Returns the attempt's share of the time to the caller's deadline, if it is so short that the
/// attempt may be ended although the server is well.
fn hurry(call: &ToolCall) -> Option<Share> {
    let limit = PATIENCE.min(call.plan().limits.attempt_timeout);
    let share = call.attempt().share.as_ref();
    share.filter(|share| share.time() < limit).cloned()
}

/// A server that has so much time and does not answer is at fault, however much more its tool's own
/// timeout would allow. If only that timeout counted, one that hangs would never be left alone where
/// all callers have deadlines.
const PATIENCE: Duration = Duration::from_secs(5);
