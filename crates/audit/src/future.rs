//! The response future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;

use crate::watch::{After, Watch};

type Answer = Result<ToolOutput, ToolError>;
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// The response future of [`Audit`](crate::Audit).
    pub struct AuditFuture<S: ToolService> {
        #[pin]
        stage: Stage<S, S::Future>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<S, F> {
        // no record
        Passed { #[pin] answer: F },
        // waits for permits before the call is sent
        Waiting { permit: Boxed<(Result<(), ToolError>, Box<Watch>)>, then: Option<Box<Held<S>>> },
        // dropped in this order: the inner future still updates the record
        Running { #[pin] answer: F, watch: Option<Box<Watch>> },
        // waits for its record
        Kept { after: Boxed<()>, answer: Option<Answer> },
        Refused { error: Option<ToolError> },
    }
}

/// The call that waits, and the service.
struct Held<S> {
    inner: S,
    call: ToolCall,
}

impl<S: ToolService> AuditFuture<S> {
    pub(crate) fn passed(answer: S::Future) -> Self {
        Self {
            stage: Stage::Passed { answer },
        }
    }

    pub(crate) fn running(answer: S::Future, watch: Box<Watch>) -> Self {
        Self {
            stage: Stage::Running {
                answer,
                watch: Some(watch),
            },
        }
    }

    pub(crate) fn waiting(inner: S, call: ToolCall, mut watch: Box<Watch>) -> Self {
        let permit = Box::pin(async move {
            let permit = watch.wait().await;
            (permit, watch)
        });
        Self {
            stage: Stage::Waiting {
                permit,
                then: Some(Box::new(Held { inner, call })),
            },
        }
    }

    pub(crate) fn refused(error: ToolError, watch: Box<Watch>) -> Self {
        let answer = Err(error);
        // the refusal is recorded without waiting
        let _after: Option<After> = watch.end(&answer);
        Self {
            stage: Stage::Refused {
                error: answer.err(),
            },
        }
    }
}

impl<S: ToolService> Future for AuditFuture<S> {
    type Output = Answer;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        if let StageProj::Passed { answer } = self.as_mut().project().stage.project() {
            return answer.poll(cx);
        }
        self.poll_watched(cx)
    }
}

impl<S: ToolService> AuditFuture<S> {
    /// Polls a call that leaves a record.
    fn poll_watched(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        loop {
            let mut stage = self.as_mut().project().stage;
            let next = match stage.as_mut().project() {
                StageProj::Passed { answer } => return answer.poll(cx),
                StageProj::Waiting { permit, then } => {
                    let (permit, watch) = ready!(permit.as_mut().poll(cx));
                    match (permit, then.take()) {
                        (Ok(()), Some(held)) => {
                            let Held { mut inner, call } = *held;
                            Stage::Running {
                                answer: inner.call(call),
                                watch: Some(watch),
                            }
                        }
                        (Ok(()), None) => return Poll::Pending,
                        (Err(error), _) => {
                            let answer = Err(error);
                            let _after: Option<After> = watch.end(&answer);
                            Stage::Refused {
                                error: answer.err(),
                            }
                        }
                    }
                }
                StageProj::Running { answer, watch } => {
                    let result = ready!(answer.poll(cx));
                    match watch.take().and_then(|watch| watch.end(&result)) {
                        None => return Poll::Ready(result),
                        Some(after) => Stage::Kept {
                            after: Box::pin(after.done()),
                            answer: Some(result),
                        },
                    }
                }
                StageProj::Kept { after, answer } => {
                    ready!(after.as_mut().poll(cx));
                    match answer.take() {
                        Some(answer) => return Poll::Ready(answer),
                        None => return Poll::Pending,
                    }
                }
                StageProj::Refused { error } => match error.take() {
                    Some(error) => return Poll::Ready(Err(error)),
                    None => return Poll::Pending,
                },
            };
            stage.set(next);
        }
    }
}

impl<S: ToolService> fmt::Debug for AuditFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditFuture").finish_non_exhaustive()
    }
}
