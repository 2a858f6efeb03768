//! A server that gives the recorded answer of one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::{BoxFuture, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use tokio::task::yield_now;
use tokio::time::sleep;
use tower_service::Service;

use super::tally::{Facts, Kept};

/// Gives the recorded answer of one call, and knows whether it was called.
#[derive(Debug, Clone)]
pub(crate) struct Recorded(Arc<Answer>);

#[derive(Debug)]
struct Answer {
    facts: Facts,
    /// The delivery, if the call had no answer.
    lost: Option<Delivery>,
    takes: Duration,
    /// The maximum length of the result; a longer one is cut.
    max_length: u64,
    asked: AtomicBool,
}

impl Recorded {
    pub(crate) fn new(
        facts: Facts,
        lost: Option<Delivery>,
        takes: Duration,
        max_length: u64,
    ) -> Self {
        Self(Arc::new(Answer {
            facts,
            lost,
            takes,
            max_length,
            asked: AtomicBool::new(false),
        }))
    }

    /// Returns `true` if the call reached the server.
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
        Ok(ToolOutput::text(write(&self.facts, self.max_length)))
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
                // concurrent calls must all begin before the first one ends
                yield_now().await;
            } else {
                sleep(answer.takes).await;
            }
            answer.give()
        })
    }
}

/// Makes a result that names its digest and cost, padded to the recorded length.
fn write(facts: &Facts, max_length: u64) -> String {
    let digest = facts.digest.map(|digest| format!("{digest:x}"));
    let cost = facts.cost.map(|cost| cost.as_nanos().to_string());
    let (digest, cost) = (digest.unwrap_or_default(), cost.unwrap_or_default());
    let mut text = format!("{digest} {cost} ");
    let around = ToolOutput::text("").body().len() + text.len();
    let bytes = usize::try_from(facts.bytes.min(max_length)).unwrap_or(usize::MAX);
    text.extend(std::iter::repeat_n('.', bytes.saturating_sub(around)));
    text
}

/// Reads the digest and the cost from a result.
pub(crate) fn read(output: &ToolOutput) -> Kept {
    let text = output.to_text();
    let (digest, rest) = text.split_once(' ').unwrap_or_default();
    let (nanos, _) = rest.split_once(' ').unwrap_or_default();
    Kept {
        digest: u128::from_str_radix(digest, 16).ok(),
        cost: nanos.parse().ok().map(Duration::from_nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_names_its_call_and_has_the_recorded_length() {
        let facts = Facts {
            key: 1,
            bytes: 1_000,
            digest: Some(7 << 100),
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
