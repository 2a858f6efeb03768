//! The future of a call that may be hedged.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::quantile::Quantile;
use super::second::Second;
use super::shared::{Shared, is_observation, more_telling};

pin_project! {
    /// The answer of a [`Hedge`](crate::hedge::Hedge): of the attempt that answers first.
    ///
    /// What is needed for a second attempt is boxed, so that calls without one carry a pointer.
    pub struct HedgeFuture<S: ToolService> {
        // gone once it failed while the second runs
        #[pin]
        first: Option<S::Future>,
        // the failure of the one that failed while the other still runs
        failed: Option<ToolError>,
        observation: Option<Observation>,
        second: Option<Pin<Box<Second<S>>>>,
    }
}

/// A first attempt whose duration is measured.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) shared: Arc<Shared>,
    pub(crate) measure: Arc<Quantile>,
    pub(crate) started: Instant,
}

impl Observation {
    fn end(self) {
        self.shared.observe(&self.measure, self.started.elapsed());
    }
}

impl<S: ToolService> HedgeFuture<S> {
    pub(crate) const fn passing(first: S::Future) -> Self {
        Self {
            first: Some(first),
            failed: None,
            observation: None,
            second: None,
        }
    }

    pub(crate) const fn observed(
        first: S::Future,
        observation: Observation,
        second: Option<Pin<Box<Second<S>>>>,
    ) -> Self {
        Self {
            first: Some(first),
            failed: None,
            observation: Some(observation),
            second,
        }
    }
}

impl<S: ToolService> Future for HedgeFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(first) = this.first.as_mut().as_pin_mut()
            && let Poll::Ready(result) = first.poll(cx)
        {
            this.first.set(None);
            if let Some(observation) = this.observation.take()
                && is_observation(&result)
            {
                observation.end();
            }
            let second = this.second.take();
            match (result, second) {
                (Err(error), Some(second)) if second.is_running() => {
                    *this.failed = Some(error);
                    *this.second = Some(second);
                }
                (Ok(output), second) => {
                    if let Some(second) = second {
                        second.name_winner(false);
                    }
                    return Poll::Ready(Ok(output));
                }
                (Err(error), _) => {
                    return Poll::Ready(Err(match this.failed.take() {
                        Some(hedge) => more_telling(error, hedge),
                        None => error,
                    }));
                }
            }
        }
        let Some(second) = this.second else {
            return Poll::Pending;
        };
        match std::task::ready!(second.as_mut().poll(cx)) {
            Ok(output) => {
                // it took at least this long; without it, only quick ones would be measured
                if let Some(observation) = this.observation.take() {
                    observation.end();
                }
                second.name_winner(true);
                // the loser is cancelled before the answer is passed on
                this.first.set(None);
                *this.second = None;
                Poll::Ready(Ok(output))
            }
            Err(error) => match this.failed.take() {
                Some(first) => Poll::Ready(Err(more_telling(first, error))),
                None => {
                    *this.failed = Some(error);
                    Poll::Pending
                }
            },
        }
    }
}

impl<S: ToolService> fmt::Debug for HedgeFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgeFuture")
            .field("may_hedge", &self.second.is_some())
            .finish_non_exhaustive()
    }
}
