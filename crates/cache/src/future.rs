//! The answer of a cache.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower_service::Service;

use crate::write::{Write, WriteFuture};

pin_project! {
    /// The answer of a [`Cache`](crate::Cache).
    ///
    /// What reaches the inner service is boxed: a hit would otherwise carry the bytes of all that is
    /// inside of the cache, which are moved wherever the future is moved, and cost more than the look-up.
    /// What is boxed costs a round trip, beside which one allocation does not show.
    pub struct CacheFuture<S>
    where
        S: Service<ToolCall>,
    {
        #[pin]
        stage: Stage<S>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<S>
    where
        S: Service<ToolCall>,
    {
        // a hit
        Hit { #[pin] answer: Ready<Result<ToolOutput, ToolError>> },
        // nothing of the cache's business
        Pass { answer: Pin<Box<Oneshot<S, ToolCall>>> },
        // a read that was not found
        Read { answer: BoxFuture<'static, Result<ToolOutput, ToolError>> },
        Write { answer: Pin<Box<WriteFuture<S>>> },
    }
}

impl<S: ToolService> CacheFuture<S> {
    pub(crate) fn hit(output: ToolOutput) -> Self {
        let answer = ready(Ok(output));
        Self {
            stage: Stage::Hit { answer },
        }
    }

    pub(crate) fn pass(inner: S, call: ToolCall) -> Self {
        let answer = Box::pin(Oneshot::new(inner, call));
        Self {
            stage: Stage::Pass { answer },
        }
    }

    pub(crate) fn read(answer: BoxFuture<'static, Result<ToolOutput, ToolError>>) -> Self {
        Self {
            stage: Stage::Read { answer },
        }
    }

    #[inline]
    pub(crate) fn write(inner: S, call: ToolCall, write: Write) -> Self {
        // made where it stays: it has room for all that is inside, and is copied in long steps
        let place = Box::new_uninit();
        let answer = Box::write(place, WriteFuture::new(inner, call, write));
        Self {
            stage: Stage::Write {
                answer: Box::into_pin(answer),
            },
        }
    }
}

impl<S: ToolService> Future for CacheFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().stage.project() {
            StageProj::Hit { answer } => answer.poll(cx),
            StageProj::Pass { answer } => answer.as_mut().poll(cx),
            StageProj::Read { answer } => answer.as_mut().poll(cx),
            StageProj::Write { answer } => answer.as_mut().poll(cx),
        }
    }
}

impl<S: Service<ToolCall>> fmt::Debug for CacheFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Hit { .. } => "hit",
            Stage::Pass { .. } => "pass",
            Stage::Read { .. } => "read",
            Stage::Write { .. } => "write",
        };
        f.debug_tuple("CacheFuture").field(&stage).finish()
    }
}
