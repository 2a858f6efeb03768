//! A call on its way to one server, or to the next if that one refuses.

use std::future::{poll_fn, ready};

use callward_core::{BoxFuture, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService};
use tokio::time::timeout_at;

use crate::choose::Selection;
use crate::decision;
use crate::outcome::Outcome;
use crate::state::InFlight;

type Output = Result<ToolOutput, ToolError>;

/// Sends a call to one server after the other until one takes it. The first is chosen at once, so
/// that the call counts as in flight there before its future is polled.
pub(crate) fn send<S>(mut selection: Selection<S>, call: ToolCall) -> BoxFuture<'static, Output>
where
    S: ToolService + Sync,
{
    let Some(first) = begin(&mut selection, &call) else {
        let error = decision::error(&selection, &call);
        decision::failed(&selection, &call, &error);
        return Box::pin(ready(Err(error)));
    };
    // another server or a record may need the call
    let is_needed =
        selection.has_more(&call) || decision::is_wanted(&selection.routing.events, &call);
    let spare = is_needed.then(|| call.clone());
    Box::pin(async move {
        let (mut begun, mut call) = (first, call);
        // the refusal that states the shortest wait
        let mut refusal: Option<ToolError> = None;
        loop {
            let place = begun.place;
            let error = match begun.send(call).await {
                Ok(output) => return Ok(output),
                Err(error) => error,
            };
            let asked = selection.set.endpoints().get(place);
            let mut error = match asked {
                Some(asked) if error.server.is_none() => error.with_server(asked.server().clone()),
                _ => error,
            };
            if !is_refusal(&error) {
                let has_others = spare.as_ref().is_some_and(|call| selection.has_more(call));
                // a retry goes to one of them, and need not wait for this one
                error.reopening = error.reopening.take().filter(|_| !has_others);
                return Err(error);
            }
            let shortest = match refusal {
                Some(earlier) if !passes_sooner(&error, &earlier) => earlier,
                _ => error,
            };
            let Some(spare) = &spare else {
                return Err(shortest);
            };
            let Some(next) = begin(&mut selection, spare) else {
                decision::failed(&selection, spare, &shortest);
                return Err(shortest);
            };
            refusal = Some(shortest);
            (begun, call) = (next, spare.clone());
        }
    })
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
        let endpoint = selection.set.endpoints().get(choice.place)?;
        let service = selection.set.services.get(choice.place)?.clone();
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
    /// Gives the call to the server once that is ready, which must be before the deadline. The call
    /// is no longer in flight when this returns: it must not count while another server is chosen.
    async fn send(mut self, mut call: ToolCall) -> Output {
        if call.attempt().ignores_open_breakers != self.ignores_open_breakers {
            call.attempt_mut().ignores_open_breakers = self.ignores_open_breakers;
        }
        let is_ready = poll_fn(|cx| self.service.poll_ready(cx));
        let is_ready = match call.deadline {
            None => is_ready.await,
            Some(deadline) => timeout_at(deadline.into(), is_ready)
                .await
                .unwrap_or_else(|_| Err(never_ready())),
        };
        let client = call.client.clone();
        let result = match is_ready {
            Ok(()) => {
                self.in_flight.send();
                self.service.call(call).await
            }
            Err(error) => Err(error),
        };
        let outcome = match Outcome::of(&result) {
            Outcome::Answered if client.is_some_and(|client| client.was_asked()) => Outcome::Asked,
            outcome => outcome,
        };
        self.in_flight.end(outcome);
        result
    }
}

fn never_ready() -> ToolError {
    ToolError::new(
        ErrorKind::DeadlineExceeded,
        Delivery::NotSent,
        "the call's deadline passed before its server was ready; nothing was sent",
    )
}

/// Returns `true` if our own breaker or queue refused the call, with nothing sent.
fn is_refusal(error: &ToolError) -> bool {
    error.delivery == Delivery::NotSent
        && matches!(error.kind, ErrorKind::BreakerOpen | ErrorKind::Overloaded)
}

fn passes_sooner(error: &ToolError, than: &ToolError) -> bool {
    match (error.retry_after, than.retry_after) {
        (Some(wait), Some(longer)) => wait < longer,
        (Some(_), None) => true,
        (None, _) => false,
    }
}
