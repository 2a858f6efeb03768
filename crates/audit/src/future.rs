//! The response future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use callward_core::{ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;

pub(crate) type Answer = Result<ToolOutput, ToolError>;

pin_project! {
    /// The response future of [`Audit`](crate::Audit).
    pub struct AuditFuture<S: ToolService> {
        #[pin]
        stage: Stage<S::Future>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F> {
        // no record
        Passed { #[pin] answer: F },
        Recorded { answer: Pin<Box<dyn Future<Output = Answer> + Send>> },
    }
}

impl<S: ToolService> AuditFuture<S> {
    pub(crate) fn passed(answer: S::Future) -> Self {
        Self {
            stage: Stage::Passed { answer },
        }
    }

    pub(crate) fn recorded(answer: impl Future<Output = Answer> + Send + 'static) -> Self {
        let answer = Box::pin(answer);
        Self {
            stage: Stage::Recorded { answer },
        }
    }
}

impl<S: ToolService> Future for AuditFuture<S> {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        match self.project().stage.project() {
            StageProj::Passed { answer } => answer.poll(cx),
            StageProj::Recorded { answer } => answer.as_mut().poll(cx),
        }
    }
}

impl<S: ToolService> fmt::Debug for AuditFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditFuture").finish_non_exhaustive()
    }
}
