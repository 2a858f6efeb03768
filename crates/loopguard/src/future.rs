//! The future of a call whose end may count.

use std::fmt;
use std::future::{Future, Ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use callward_core::{ToolError, ToolOutput};
use pin_project_lite::pin_project;

use crate::shared::Watch;

pin_project! {
    /// The answer of a [`LoopGuard`](crate::LoopGuard).
    pub struct LoopGuardFuture<F> {
        #[pin]
        stage: Stage<F>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F> {
        // in the server's place
        Answered { #[pin] answer: Ready<Result<ToolOutput, ToolError>> },
        Sent { #[pin] answer: F, watch: Option<Watch> },
    }
}

impl<F> LoopGuardFuture<F> {
    pub(crate) fn answered(output: ToolOutput) -> Self {
        let answer = std::future::ready(Ok(output));
        Self {
            stage: Stage::Answered { answer },
        }
    }

    pub(crate) const fn sent(answer: F, watch: Option<Watch>) -> Self {
        Self {
            stage: Stage::Sent { answer, watch },
        }
    }
}

impl<F> Future for LoopGuardFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().stage.project() {
            StageProj::Answered { answer } => answer.poll(cx),
            StageProj::Sent { answer, watch } => {
                let result = ready!(answer.poll(cx));
                if let Some(watch) = watch.take() {
                    watch.end(&result);
                }
                Poll::Ready(result)
            }
        }
    }
}

impl<F> fmt::Debug for LoopGuardFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopGuardFuture").finish_non_exhaustive()
    }
}
