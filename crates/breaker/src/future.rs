//! The future of a call that a breaker admitted.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use callward_core::{ErrorKind, Share, ToolError, ToolOutput};
use pin_project_lite::pin_project;

use crate::person::Listener;
use crate::streak::Fault;
use crate::verdict::{judge_error, judge_error_of_transport, may_be_the_tool};
use crate::{Permit, Verdict};

pin_project! {
    /// The call of a [`Breaker`](crate::Breaker) that was admitted.
    pub struct BreakerFuture<F> {
        #[pin]
        pub(crate) call: F,
        // dropped unsettled, the permit counts as nothing
        pub(crate) held: Option<Held>,
    }
}

impl<F> Future for BreakerFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.call.poll(cx));
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
        let Err(error) = result else {
            return self.permit.succeed();
        };
        let verdict = match self.is_of_server {
            true => judge_error_of_transport(error),
            false => judge_error(error),
        };
        let was_in_a_hurry = error.kind() == ErrorKind::Timeout
            && self.short_share.is_some_and(|share| share.has_ended());
        match verdict {
            Verdict::Success => self.permit.succeed(),
            Verdict::Failure if !was_in_a_hurry => {
                let is_tool = self.is_of_server && may_be_the_tool(error);
                self.fault.tool = self.fault.tool.filter(|_| is_tool);
                self.permit.fail_of(self.fault, error);
            }
            // the place of a probe goes back
            Verdict::Failure | Verdict::Nothing => drop(self.permit),
        }
    }
}
