//! The future of a call through a concurrency limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use callward_core::{BoxFuture, ToolCall, ToolError, ToolName, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use super::site::{Places, Site};

/// Resolves to the call and its places.
type InLine = BoxFuture<'static, Result<(ToolCall, Places), ToolError>>;

pin_project! {
    /// The answer of a [`ConcurrencyLimit`](super::ConcurrencyLimit): the inner one, or a refusal.
    pub struct ConcurrencyLimitFuture<S>
    where
        S: Service<ToolCall>,
    {
        #[pin]
        stage: Stage<S, S::Future>,
    }
}

pin_project! {
    #[project = StageProj]
    #[project_replace = StageOwn]
    enum Stage<S, F> {
        // not yet polled: asks for places first
        Arriving { inner: S, call: ToolCall, site: Arc<Site> },
        // one was taken
        Waiting { inner: S, line: InLine, site: Arc<Site> },
        // the server has the call
        Running {
            #[pin]
            answer: F,
            places: Places,
            learns: Option<Learns>,
        },
        Done,
    }
}

/// What a call tells about the server when it ends.
struct Learns {
    site: Arc<Site>,
    tool: ToolName,
    began: Instant,
}

impl<S: Service<ToolCall>> ConcurrencyLimitFuture<S> {
    pub(super) const fn arriving(inner: S, call: ToolCall, site: Arc<Site>) -> Self {
        Self {
            stage: Stage::Arriving { inner, call, site },
        }
    }
}

impl<S, F> Stage<S, F>
where
    S: Service<ToolCall, Future = F, Error = ToolError>,
{
    fn run(inner: &mut S, call: ToolCall, places: Places, site: Arc<Site>) -> Self {
        let learns = site.begins().map(|began| Learns {
            tool: call.tool().name().clone(),
            began,
            site,
        });
        Self::Running {
            answer: inner.call(call),
            places,
            learns,
        }
    }
}

impl<S: ToolService> Future for ConcurrencyLimitFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        let result = loop {
            match stage.as_mut().project() {
                StageProj::Arriving { .. } => {
                    let StageOwn::Arriving {
                        mut inner,
                        call,
                        site,
                    } = stage.as_mut().project_replace(Stage::Done)
                    else {
                        return Poll::Pending;
                    };
                    stage.set(match site.enter_at_once(&call) {
                        Ok(places) => Stage::run(&mut inner, call, places, site),
                        Err(tool) => Stage::Waiting {
                            inner,
                            line: Box::pin(site.clone().enter(call, tool)),
                            site,
                        },
                    });
                }
                StageProj::Waiting { line, .. } => {
                    let entered = ready!(line.as_mut().poll(cx));
                    let StageOwn::Waiting {
                        mut inner, site, ..
                    } = stage.as_mut().project_replace(Stage::Done)
                    else {
                        return Poll::Pending;
                    };
                    let (call, places) = entered?;
                    stage.set(Stage::run(&mut inner, call, places, site));
                }
                StageProj::Running { answer, learns, .. } => {
                    let result = ready!(answer.poll(cx));
                    if let Some(learns) = learns.take() {
                        learns.site.ended(&learns.tool, learns.began, &result);
                    }
                    break result;
                }
                // polled again after its end it never ends: there is no second answer
                StageProj::Done => return Poll::Pending,
            }
        };
        // frees the places now, not when the future is dropped
        stage.set(Stage::Done);
        Poll::Ready(result)
    }
}

impl<S: Service<ToolCall>> fmt::Debug for ConcurrencyLimitFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Arriving { .. } => "arriving",
            Stage::Waiting { .. } => "waiting",
            Stage::Running { .. } => "running",
            Stage::Done => "done",
        };
        f.debug_struct("ConcurrencyLimitFuture")
            .field("stage", &stage)
            .finish_non_exhaustive()
    }
}
