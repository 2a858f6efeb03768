//! A call on its way to one server, or to the next if that one refuses.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};
use tower_service::Service;

use crate::choose::Selection;
use crate::decision;
use crate::outcome::Outcome;
use crate::state::InFlight;

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
    selection: Selection<S>,
    /// The place of the server asked last.
    asked: usize,
    /// The call, if it may be needed for another server or for a record.
    call: Option<ToolCall>,
    /// The refusal that states the shortest wait.
    refusal: Option<ToolError>,
}

impl<S: ToolService> RouteFuture<S> {
    pub(crate) fn failed(error: ToolError) -> Self {
        Self {
            stage: Stage::Failed { error },
            route: None,
        }
    }

    pub(crate) fn start(mut selection: Selection<S>, call: ToolCall) -> Self {
        let Some(begun) = begin(&mut selection, &call) else {
            let error = decision::error(&selection, &call);
            decision::failed(&selection, &call, &error);
            return Self::failed(error);
        };
        let is_needed =
            selection.has_more(&call) || decision::is_wanted(&selection.routing().events, &call);
        let spare = is_needed.then(|| call.clone());
        let asked = begun.place;
        Self {
            stage: begun.ask(call),
            route: Some(Route {
                selection,
                asked,
                call: spare,
                refusal: None,
            }),
        }
    }
}

impl<S: ToolService> Route<S> {
    /// Returns where to continue after a failure, or the error to end with.
    fn after(&mut self, error: ToolError) -> Result<Stage<S, S::Future>, ToolError> {
        let asked = self.selection.set().endpoints().get(self.asked);
        let error = match asked {
            Some(asked) if error.server().is_none() => error.with_server(asked.server().clone()),
            _ => error,
        };
        if !is_refusal(&error) {
            let call = self.call.as_ref();
            let has_others = call.is_some_and(|call| self.selection.has_more(call));
            // a retry goes to one of them, and need not wait for this one
            return Err(match error.reopening() {
                Some(_) if has_others => error.without_reopening(),
                _ => error,
            });
        }
        let refusal = match self.refusal.take() {
            Some(earlier) if !passes_sooner(&error, &earlier) => earlier,
            _ => error,
        };
        let Some(call) = &self.call else {
            return Err(refusal);
        };
        let Some(begun) = begin(&mut self.selection, call) else {
            decision::failed(&self.selection, call, &refusal);
            return Err(refusal);
        };
        self.asked = begun.place;
        self.refusal = Some(refusal);
        Ok(begun.ask(call.clone()))
    }
}

/// A server that was chosen, with the call counted as in flight there.
struct Begun<S> {
    place: usize,
    service: S,
    in_flight: InFlight,
    ignores_open_breakers: bool,
}

/// Chooses the next server. One that is drained or made lighter since it was chosen is skipped.
fn begin<S: ToolService>(selection: &mut Selection<S>, call: &ToolCall) -> Option<Begun<S>> {
    let min_weight = call.plan().route.min_weight.unwrap_or(0);
    loop {
        let choice = selection.next(call)?;
        let endpoint = selection.set().endpoints().get(choice.place)?;
        let service = selection.set().service_at(choice.place)?.clone();
        let Some(in_flight) = endpoint.state.begin(min_weight) else {
            continue;
        };
        decision::chosen(selection, call, choice);
        return Some(Begun {
            place: choice.place,
            service,
            in_flight,
            ignores_open_breakers: choice.ignores_open_breakers,
        });
    }
}

impl<S: ToolService> Begun<S> {
    fn ask(self, mut call: ToolCall) -> Stage<S, S::Future> {
        if call.attempt().ignores_open_breakers != self.ignores_open_breakers {
            call.attempt_mut().ignores_open_breakers = self.ignores_open_breakers;
        }
        Stage::Waiting {
            service: self.service,
            call,
            in_flight: self.in_flight,
            timer: None,
        }
    }
}

/// A call that runs has a route, so this error means that the router is wrong.
fn no_route() -> ToolError {
    ToolError::new(
        ErrorKind::Internal,
        Delivery::NotSent,
        "a call ran without a route; this is a fault of the router",
    )
}

/// Returns `true` if our own breaker or queue refused the call, with nothing sent.
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
            mut in_flight,
            ..
        } = self.as_mut().project_replace(Self::Done)
        {
            in_flight.send();
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
                    in_flight,
                    timer,
                } => match ready!(poll_ready(service, call.deadline(), timer, cx)) {
                    Ok(()) => {
                        this.stage.as_mut().send();
                        continue;
                    }
                    Err(error) => {
                        in_flight.end(Outcome::of_error(&error));
                        error
                    }
                },
                StageProj::Running { answer, in_flight } => {
                    let result = ready!(answer.poll(cx));
                    in_flight.end(Outcome::of(&result));
                    match result {
                        Ok(output) => {
                            this.stage.set(Stage::Done);
                            return Poll::Ready(Ok(output));
                        }
                        Err(error) => error,
                    }
                }
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
                None => return Poll::Ready(Err(no_route())),
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
