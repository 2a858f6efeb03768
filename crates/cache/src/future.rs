//! The future of a cache.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, ToolError, ToolOutput};

type Answer = Result<ToolOutput, ToolError>;

/// The future of a [`Cache`](crate::Cache): a hit is ready at once, everything else is boxed.
pub struct CacheFuture(Stage);

enum Stage {
    Hit(Ready<Answer>),
    Pending(BoxFuture<'static, Answer>),
}

impl CacheFuture {
    pub(crate) fn hit(output: ToolOutput) -> Self {
        Self(Stage::Hit(ready(Ok(output))))
    }

    pub(crate) fn pending(answer: impl Future<Output = Answer> + Send + 'static) -> Self {
        Self(Stage::Pending(Box::pin(answer)))
    }
}

impl Future for CacheFuture {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        match &mut self.0 {
            Stage::Hit(answer) => Pin::new(answer).poll(cx),
            Stage::Pending(answer) => answer.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for CacheFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheFuture").finish_non_exhaustive()
    }
}
