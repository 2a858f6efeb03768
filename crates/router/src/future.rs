//! A call on its way to one server, or to the next if that one refuses.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use callward_core::{Delivery, ErrorKind, Share, ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};
use tower_service::Service;

use crate::choose::Candidates;
use crate::health::{self, Verdict};
use crate::ineligible;
use crate::outcome::Outcome;
use crate::state::InFlight;
use crate::trail;

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
            hurry: Option<Share>,
            // one owner's instance: its outcome says nothing of the server for others
            is_owned: bool,
        },
        Done,
    }
}

/// What is needed to ask another server.
struct Route<S> {
    candidates: Candidates<S>,
    /// The member asked last.
    asked: usize,
    /// The call, if there is another server to send it to, or somebody to tell that there is none.
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
        let Some(begun) = begin(&mut candidates, &call) else {
            let error = ineligible::error(&call, &candidates);
            trail::failed(&candidates, &call, &error);
            return Self::failed(error);
        };
        let is_needed = candidates.are_left(&call) || trail::is_wanted(candidates.events(), &call);
        let spare = is_needed.then(|| call.clone());
        let asked = begun.place;
        Self {
            stage: begun.ask(call),
            route: Some(Route {
                candidates,
                asked,
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
            let call = self.call.as_ref();
            let has_others = call.is_some_and(|call| self.candidates.are_left(call));
            // a repeat goes to one of them, and need not wait for this one
            return Err(match error.reopening() {
                Some(_) if has_others => error.without_reopening(),
                _ => error,
            });
        }
        let refusal = match self.refusal.take() {
            Some(earlier) if !passes_sooner(&error, &earlier) => reopens_with(earlier, &error),
            Some(earlier) => reopens_with(error, &earlier),
            None => error,
        };
        let Some(call) = &self.call else {
            return Err(refusal);
        };
        let Some(begun) = begin(&mut self.candidates, call) else {
            trail::failed(&self.candidates, call, &refusal);
            return Err(refusal);
        };
        self.asked = begun.place;
        self.refusal = Some(refusal);
        Ok(begun.ask(call.clone()))
    }

    /// Counts the outcome of the call for the health of the server that was asked.
    fn settle(&self, call: &mut InFlight, verdict: Verdict) {
        if let Some(asked) = self.candidates.set().endpoints().get(self.asked) {
            asked.settle(call, verdict);
        }
    }

    fn name_server(&self, error: ToolError) -> ToolError {
        match self.candidates.set().endpoints().get(self.asked) {
            Some(asked) if error.server().is_none() => error.with_server(asked.server().clone()),
            _ => error,
        }
    }
}

/// A server that was chosen, with the call counted as in flight there.
struct Begun<S> {
    place: usize,
    service: S,
    in_flight: InFlight,
}

/// Chooses the next server. One that is drained or made lighter between the choice and here is passed
/// over.
fn begin<S: ToolService>(candidates: &mut Candidates<S>, call: &ToolCall) -> Option<Begun<S>> {
    let least = call.plan().route.min_weight.unwrap_or(0);
    loop {
        let choice = candidates.next(call)?;
        let endpoint = candidates.set().endpoints().get(choice.place)?;
        let service = candidates.set().service_at(choice.place)?;
        let Some(mut in_flight) = endpoint.state().begin(least) else {
            continue;
        };
        let Some(ticket) = endpoint.admit(call, choice.doubtful) else {
            // another call was a moment before, and is its probe now
            drop(in_flight);
            candidates.take_back(choice);
            continue;
        };
        in_flight.measure(candidates.set().tools(), call.tool());
        trail::chosen(candidates, call, choice);
        return Some(Begun {
            place: choice.place,
            service: service.clone(),
            in_flight: in_flight.with_ticket(ticket),
        });
    }
}

impl<S: ToolService> Begun<S> {
    fn ask(self, call: ToolCall) -> Stage<S, S::Future> {
        Stage::Waiting {
            service: self.service,
            call,
            in_flight: self.in_flight,
            timer: None,
        }
    }
}

/// A call that runs has a route, so this says the router is wrong.
fn no_route() -> ToolError {
    ToolError::new(
        ErrorKind::Internal,
        Delivery::NotSent,
        "a call ran without a route; this is a fault of the router",
    )
}

/// Says whether a gate of our own refused: certainly not sent, and nothing used up.
fn is_refusal(error: &ToolError) -> bool {
    error.delivery() == Delivery::NotSent
        && matches!(error.kind(), ErrorKind::BreakerOpen | ErrorKind::Overloaded)
}

/// Whoever waits for the refusal hears of the other one's gate, unless it has one of its own to hear of.
fn reopens_with(refusal: ToolError, other: &ToolError) -> ToolError {
    match other.reopening() {
        Some(reopening) if refusal.reopening().is_none() => {
            refusal.with_reopening(reopening.clone())
        }
        _ => refusal,
    }
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
            let hurry = health::hurry(&call);
            let is_owned = call.owner().is_some();
            let answer = service.call(call);
            self.set(Self::Running {
                answer,
                in_flight,
                hurry,
                is_owned,
            });
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
                StageProj::Running {
                    answer,
                    in_flight,
                    hurry,
                    is_owned,
                } => {
                    let result = ready!(answer.poll(cx));
                    in_flight.end(Outcome::of(&result));
                    if let Some(route) = &this.route {
                        let verdict = match is_owned {
                            true => Verdict::Nothing,
                            false => health::judge_in_hurry(&result, hurry.as_ref()),
                        };
                        route.settle(in_flight, verdict);
                    }
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
