//! A call on its way to one server, or to the next if that one refuses.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};
use tollgate_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::choose::Candidates;
use crate::ineligible;
use crate::member::InFlight;

pin_project! {
    /// The answer of a [`Router`](crate::Router).
    pub struct RouteFuture<S>
    where
        S: Service<ToolCall>,
    {
        #[pin]
        stage: Stage<S, S::Future>,
        route: Option<Route<S>>,
    }
}

pin_project! {
    #[project = StageProj]
    #[project_replace = StageOwn]
    enum Stage<S, F> {
        // no server may take the call
        Failed { error: ToolError },
        // a server is chosen, but not yet ready
        Waiting {
            service: S,
            call: ToolCall,
            in_flight: InFlight,
            // made for a server that keeps us waiting; boxed, as all calls would carry its bytes
            timer: Option<Pin<Box<Sleep>>>,
        },
        // the server has the call
        Running {
            #[pin]
            answer: F,
            in_flight: InFlight,
        },
        Done,
    }
}

/// What is needed to ask another server.
struct Route<S> {
    candidates: Candidates<S>,
    /// The member asked last.
    asked: usize,
    /// The call, if there is another server to send it to.
    call: Option<ToolCall>,
    /// The refusal that passes first.
    refusal: Option<ToolError>,
}

impl<S: ToolService> RouteFuture<S> {
    pub(crate) fn failed(error: ToolError) -> Self {
        Self {
            stage: Stage::Failed { error },
            route: None,
        }
    }

    pub(crate) fn start(mut candidates: Candidates<S>, call: ToolCall) -> Self {
        let Some(choice) = candidates.next(&call) else {
            return Self::failed(ineligible::error(&call, candidates.set()));
        };
        let spare = candidates.are_left(&call).then(|| call.clone());
        let Some(stage) = ask(&candidates, choice.index, choice.reason, call) else {
            return Self::failed(lost_member());
        };
        Self {
            stage,
            route: Some(Route {
                candidates,
                asked: choice.index,
                call: spare,
                refusal: None,
            }),
        }
    }
}

impl<S: ToolService> Route<S> {
    /// Returns where to go on after a failure, or the error to end with.
    fn after(&mut self, error: ToolError) -> Result<Stage<S, S::Future>, ToolError> {
        let error = self.name_server(error);
        if !is_refusal(&error) {
            return Err(error);
        }
        let refusal = match self.refusal.take() {
            Some(earlier) if !passes_sooner(&error, &earlier) => earlier,
            _ => error,
        };
        let Some(call) = &self.call else {
            return Err(refusal);
        };
        let Some(choice) = self.candidates.next(call) else {
            return Err(refusal);
        };
        self.asked = choice.index;
        self.refusal = Some(refusal);
        ask(&self.candidates, choice.index, choice.reason, call.clone()).ok_or_else(lost_member)
    }

    fn name_server(&self, error: ToolError) -> ToolError {
        match self.candidates.set().members().get(self.asked) {
            Some(member) if error.server().is_none() => error.with_server(member.server().clone()),
            _ => error,
        }
    }
}

/// Begins to ask a member; it counts as in flight from here.
fn ask<S: ToolService>(
    candidates: &Candidates<S>,
    index: usize,
    reason: &'static str,
    call: ToolCall,
) -> Option<Stage<S, S::Future>> {
    let member = candidates.set().members().get(index)?;
    if let Some(record) = call.record() {
        record.set_server(member.server().clone(), reason);
    }
    if let Some(chosen) = &call.attempt().chosen {
        chosen.set(member.server().clone());
    }
    Some(Stage::Waiting {
        service: member.service().clone(),
        call,
        in_flight: member.begin(),
        timer: None,
    })
}

/// A candidate is an index into the very set it was chosen from, so this says the router is wrong.
fn lost_member() -> ToolError {
    ToolError::new(
        ErrorKind::Internal,
        Delivery::NotSent,
        "the chosen server is not in its replica set; this is a fault of the router",
    )
}

/// Says whether a gate of our own refused: certainly not sent, and nothing used up.
fn is_refusal(error: &ToolError) -> bool {
    error.delivery() == Delivery::NotSent
        && matches!(error.kind(), ErrorKind::BreakerOpen | ErrorKind::Overloaded)
}

fn passes_sooner(error: &ToolError, than: &ToolError) -> bool {
    match (error.retry_after(), than.retry_after()) {
        (Some(wait), Some(longer)) => wait < longer,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

impl<S, F> Stage<S, F>
where
    S: Service<ToolCall, Future = F, Error = ToolError>,
{
    /// Gives the call to the server, which is ready.
    fn send(mut self: Pin<&mut Self>) {
        if let StageOwn::Waiting {
            mut service,
            call,
            in_flight,
            ..
        } = self.as_mut().project_replace(Self::Done)
        {
            let answer = service.call(call);
            self.set(Self::Running { answer, in_flight });
        }
    }
}

/// Waits for readiness, but not beyond the deadline.
fn poll_ready<S>(
    service: &mut S,
    deadline: Option<Instant>,
    timer: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), ToolError>>
where
    S: Service<ToolCall, Error = ToolError>,
{
    if let Poll::Ready(ready) = service.poll_ready(cx) {
        return Poll::Ready(ready);
    }
    let Some(deadline) = deadline else {
        return Poll::Pending;
    };
    let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
    match timer.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(Err(ToolError::new(
            ErrorKind::DeadlineExceeded,
            Delivery::NotSent,
            "the call's deadline passed before its server was ready; nothing was sent",
        ))),
        Poll::Pending => Poll::Pending,
    }
}

impl<S: ToolService> Future for RouteFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let error = match this.stage.as_mut().project() {
                StageProj::Waiting {
                    service,
                    call,
                    timer,
                    ..
                } => match std::task::ready!(poll_ready(service, call.deadline(), timer, cx)) {
                    Ok(()) => {
                        this.stage.as_mut().send();
                        continue;
                    }
                    Err(error) => error,
                },
                StageProj::Running { answer, .. } => match std::task::ready!(answer.poll(cx)) {
                    Ok(output) => {
                        this.stage.set(Stage::Done);
                        return Poll::Ready(Ok(output));
                    }
                    Err(error) => error,
                },
                StageProj::Failed { .. } | StageProj::Done => {
                    return match this.stage.as_mut().project_replace(Stage::Done) {
                        StageOwn::Failed { error } => Poll::Ready(Err(error)),
                        _ => panic!("polled after it was done"),
                    };
                }
            };
            // the failed call ends before another begins: it must not count while we choose
            this.stage.set(Stage::Done);
            match this.route.as_mut().map(|route| route.after(error)) {
                Some(Ok(next)) => this.stage.set(next),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Err(lost_member())),
            }
        }
    }
}

impl<S: Service<ToolCall>> fmt::Debug for RouteFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteFuture")
            .field(
                "stage",
                &match &self.stage {
                    Stage::Failed { .. } => "failed",
                    Stage::Waiting { .. } => "waiting",
                    Stage::Running { .. } => "running",
                    Stage::Done => "done",
                },
            )
            .finish_non_exhaustive()
    }
}
