//! The future of a call through a breaker.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use callward_core::{ErrorKind, Share, ToolError, ToolOutput};
use pin_project_lite::pin_project;

use crate::Verdict;
use crate::permit::Permit;
use crate::person::Listener;
use crate::streak::Fault;
use crate::verdict::{judge, judge_transport, may_be_the_tool};

pin_project! {
    /// The answer of a [`Breaker`](crate::Breaker): the inner one, or a refusal.
    pub struct BreakerFuture<F> {
        // `None` for a call that was refused
        #[pin]
        answer: Option<F>,
        refusal: Option<ToolError>,
        // dropped unsettled, the permit counts as nothing
        held: Option<Held>,
    }
}

impl<F> BreakerFuture<F> {
    pub(crate) const fn admitted(answer: F, held: Held) -> Self {
        Self {
            answer: Some(answer),
            refusal: None,
            held: Some(held),
        }
    }

    pub(crate) const fn refused(error: ToolError) -> Self {
        Self {
            answer: None,
            refusal: Some(error),
            held: None,
        }
    }
}

impl<F> Future for BreakerFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = match (this.answer.as_pin_mut(), this.refusal.take()) {
            (Some(answer), _) => ready!(answer.poll(cx)),
            (None, Some(error)) => Err(error),
            // polled after its end it stays pending: there is only one answer
            (None, None) => return Poll::Pending,
        };
        if let Some(held) = this.held.take() {
            held.settle(&result);
        }
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for BreakerFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerFuture").finish_non_exhaustive()
    }
}

/// What is held for as long as the call runs.
pub(crate) struct Held {
    pub(crate) permit: Permit,
    /// The breaker is for the whole server, rather than for the tool.
    pub(crate) is_of_server: bool,
    /// The tool that is called, and whether an earlier attempt of the call failed here.
    pub(crate) fault: Fault,
    /// The attempt's share of the time to the deadline, if it may end the attempt too soon to say
    /// anything about the server.
    pub(crate) short_share: Option<Share>,
    /// Measures how long the call waits for a person, if calls are timed.
    pub(crate) person: Option<Arc<Listener>>,
}

impl Held {
    fn settle(mut self, result: &Result<ToolOutput, ToolError>) {
        self.permit.waited = self.person.map(|one| one.waited()).unwrap_or_default();
        let verdict = if self.is_of_server {
            judge_transport(result)
        } else {
            judge(result)
        };
        let share_ended = |share: Share| share.has_ended();
        match (verdict, result) {
            (Verdict::Success, _) => self.permit.succeed(),
            (Verdict::Failure, Err(error))
                if error.kind() != ErrorKind::Timeout
                    || !self.short_share.is_some_and(share_ended) =>
            {
                let is_tool = self.is_of_server && may_be_the_tool(error);
                self.fault.tool = self.fault.tool.filter(|_| is_tool);
                self.permit.fail_of(self.fault, error);
            }
            // the place of a probe goes back
            _ => drop(self.permit),
        }
    }
}
