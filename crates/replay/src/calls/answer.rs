//! A server that answers one call as it was recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::{BoxFuture, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use tokio::task::yield_now;
use tokio::time::sleep;
use tower_service::Service;

use super::tally::{Facts, Kept};

/// A server that answers one call as it was recorded, and knows whether it was asked.
#[derive(Debug, Clone)]
pub(crate) struct Recorded(Arc<Answer>);

#[derive(Debug)]
struct Answer {
    facts: Facts,
    /// How far the call got, if it had no answer.
    lost: Option<Delivery>,
    takes: Duration,
    /// How large the result is made; a larger one is cut.
    longest: u64,
    asked: AtomicBool,
}

impl Recorded {
    pub(crate) fn new(facts: Facts, lost: Option<Delivery>, takes: Duration, longest: u64) -> Self {
        Self(Arc::new(Answer {
            facts,
            lost,
            takes,
            longest,
            asked: AtomicBool::new(false),
        }))
    }

    /// Says whether the call came through to the server.
    pub(crate) fn was_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }
}

impl Answer {
    fn give(&self) -> Result<ToolOutput, ToolError> {
        if let Some(delivery) = self.lost {
            let text = "recorded as without an answer";
            return Err(ToolError::new(ErrorKind::ConnectionLost, delivery, text));
        }
        if self.facts.error {
            return Ok(ToolOutput::error_text("recorded as a failure"));
        }
        Ok(ToolOutput::text(write(&self.facts, self.longest)))
    }
}

impl Service<ToolCall> for Recorded {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        let answer = self.0.clone();
        answer.asked.store(true, Ordering::Relaxed);
        Box::pin(async move {
            if answer.takes.is_zero() {
                // calls made at once must all be on their way before the first one ends
                yield_now().await;
            } else {
                sleep(answer.takes).await;
            }
            answer.give()
        })
    }
}

/// Between the parts of what a result says of itself.
const BETWEEN: char = ' ';

/// Makes a result that says what it is, as long as the recorded one if that is long enough.
fn write(facts: &Facts, longest: u64) -> String {
    let digest = facts.digest.map(|digest| digest.to_string());
    let cost = facts.cost.map(|cost| cost.as_nanos().to_string());
    let mut text = format!(
        "{}{BETWEEN}{}{BETWEEN}",
        digest.unwrap_or_default(),
        cost.unwrap_or_default()
    );
    let around = ToolOutput::text("").body().len() + text.len();
    let bytes = usize::try_from(facts.bytes.min(longest)).unwrap_or(usize::MAX);
    text.extend(std::iter::repeat_n('.', bytes.saturating_sub(around)));
    text
}

/// Reads whose result it is.
pub(crate) fn read(output: &ToolOutput) -> Kept {
    let text = output.to_text();
    let mut parts = text.split(BETWEEN);
    Kept {
        digest: parts.next().and_then(|digest| digest.parse().ok()),
        cost: parts
            .next()
            .and_then(|nanos| nanos.parse().ok())
            .map(Duration::from_nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::ResultDigest;

    #[test]
    fn a_result_says_whose_it_is_and_is_as_long_as_recorded() {
        let facts = Facts {
            key: 1,
            bytes: 1_000,
            digest: Some(ResultDigest::new([7; 20])),
            error: false,
            answered: true,
            write: false,
            repeats: false,
            cost: Some(Duration::from_millis(3)),
        };
        let kept = |facts: &Facts| Kept {
            digest: facts.digest,
            cost: facts.cost,
        };
        let output = ToolOutput::text(write(&facts, 1 << 20));
        assert_eq!(output.body().len(), 1_000);
        assert_eq!(read(&output), kept(&facts));
        assert_eq!(ToolOutput::text(write(&facts, 500)).body().len(), 500);
        let bare = Facts {
            digest: None,
            cost: None,
            bytes: 0,
            ..facts
        };
        assert_eq!(read(&ToolOutput::text(write(&bare, 1 << 20))), kept(&bare));
    }
}
