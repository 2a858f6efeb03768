//! The second attempt: waits until it is due, asks whether it may, and runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use callward_core::trail::{Decision, Stage as TrailStage, Verdict};
use callward_core::{
    ChosenServer, Delivery, HedgeStatus, ServerId, ToolCall, ToolError, ToolOutput, ToolService,
};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::ServiceExt;
use tower::util::Oneshot;
use tracing::debug;

use super::shared::Shared;

pin_project! {
    /// The second attempt of a call, while the first runs.
    pub(crate) struct Second<S: ToolService> {
        shared: Arc<Shared>,
        // the call as the second attempt sends it, but for whom to avoid
        call: ToolCall,
        // which server has the first attempt
        first: ChosenServer,
        #[pin]
        stage: Stage<S>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<S: ToolService> {
        // the timer is made when the first attempt first keeps us waiting
        Waiting { due: Instant, #[pin] timer: Option<Sleep>, service: Option<S> },
        Running { #[pin] answer: Oneshot<S, ToolCall>, counted: bool, chosen: ChosenServer },
        // it failed, or was not sent
        Over,
    }
}

impl<S: ToolService> Second<S> {
    /// Prepares the second attempt of a call, and has the first tell where it goes.
    pub(crate) fn new(shared: Arc<Shared>, service: S, call: &mut ToolCall, due: Instant) -> Self {
        let spare = call.clone();
        let first = call.attempt_mut().chosen.get_or_insert_default().clone();
        Self {
            shared,
            call: spare,
            first,
            stage: Stage::Waiting {
                due,
                timer: None,
                service: Some(service),
            },
        }
    }

    /// Says whether it runs: the call then goes on if the first attempt fails.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running { .. })
    }

    /// Waits for its end. Never comes to one if it is not sent.
    pub(crate) fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ToolOutput, ToolError>> {
        if let StageProj::Waiting {
            due,
            mut timer,
            service,
        } = self.as_mut().project().stage.project()
        {
            if timer.is_none() {
                timer.set(Some(sleep_until(*due)));
            }
            if let Some(timer) = timer.as_pin_mut() {
                ready!(timer.poll(cx));
            }
            let service = service.take();
            let next = service.map_or(Stage::Over, |service| self.as_ref().send(service));
            self.as_mut().project().stage.set(next);
        }
        let mut this = self.project();
        let StageProj::Running {
            answer,
            counted,
            chosen,
        } = this.stage.as_mut().project()
        else {
            return Poll::Pending;
        };
        let answer = answer.poll(cx);
        let unsent = matches!(&answer, Poll::Ready(Err(e)) if e.delivery() == Delivery::NotSent);
        if unsent {
            this.shared.refund(this.call);
        }
        if !unsent && !std::mem::replace(counted, true) {
            this.shared.counts.sent.fetch_add(1, Ordering::Relaxed);
            note(this.call, HedgeStatus::Sent);
            decided(this.call, Verdict::Sent, "the first is slow", chosen.get());
        }
        let result = ready!(answer);
        if !*counted {
            this.shared.counts.no_server.fetch_add(1, Ordering::Relaxed);
            decided(
                this.call,
                Verdict::Skip,
                "no other server can take it",
                None,
            );
            debug!(tool = %this.call.tool().name(), "has no other server for a slow call");
        }
        if result.is_ok() {
            this.shared.counts.won.fetch_add(1, Ordering::Relaxed);
            note(this.call, HedgeStatus::Won);
            decided(this.call, Verdict::Won, "it answered first", chosen.get());
            debug!(tool = %this.call.tool().name(), "takes the answer of the second attempt");
        } else {
            this.stage.set(Stage::Over);
        }
        Poll::Ready(result)
    }

    /// Says to the call's record whose answer it is: the router wrote who was asked last.
    pub(crate) fn name_winner(&self, second: bool) {
        let (Some(record), Stage::Running { chosen, .. }) = (self.call.record(), &self.stage)
        else {
            return;
        };
        let (chosen, reason) = match second {
            true => (chosen, "answered before a slow attempt"),
            false => (&self.first, "answered before its hedge"),
        };
        if let Some(server) = chosen.get() {
            record.set_server(server, reason);
        }
    }

    /// Begins the second attempt, if there is somewhere to send it and the budget pays.
    fn send(self: Pin<&Self>, service: S) -> Stage<S> {
        let first = self.first.get();
        let tool = self.call.tool().name();
        if first.is_none() && !self.shared.config.unnamed_servers {
            debug!(%tool, "does not hedge a slow call: no server has it yet");
            decided(
                &self.call,
                Verdict::Skip,
                "no server has the first yet",
                None,
            );
            return Stage::Over;
        }
        if !self.shared.withdraw(&self.call) {
            self.shared.counts.no_budget.fetch_add(1, Ordering::Relaxed);
            debug!(%tool, "does not hedge a slow call: the retry budget is spent");
            decided(&self.call, Verdict::Skip, "the retry budget is spent", None);
            return Stage::Over;
        }
        let chosen = ChosenServer::default();
        let mut call = self.call.clone();
        let attempt = call.attempt_mut();
        attempt.chosen = Some(chosen.clone());
        attempt.elsewhere_only = true;
        if let Some(first) = &first
            && !attempt.avoid.contains(first)
        {
            attempt.avoid.push(first.clone());
        }
        debug!(%tool, slow = first.as_ref().map(tracing::field::display), "hedges a slow call");
        Stage::Running {
            answer: service.oneshot(call),
            counted: false,
            chosen,
        }
    }
}

/// Writes down what becomes of the second attempt.
fn decided(call: &ToolCall, verdict: Verdict, why: &'static str, server: Option<ServerId>) {
    call.decided(|| {
        let decision = Decision::new(TrailStage::Hedge, verdict, why);
        match server {
            Some(server) => decision.at(server),
            None => decision,
        }
    });
}

fn note(call: &ToolCall, status: HedgeStatus) {
    if let Some(record) = call.record() {
        record.note_hedge(status);
    }
}
