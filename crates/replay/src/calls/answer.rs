//! A server that gives the recorded answer of one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::tally::{Facts, Kept};

/// The recorded answer of one call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) facts: Facts,
    /// The delivery, if the call had no answer.
    pub(crate) lost: Option<Delivery>,
    pub(crate) takes: Duration,
    /// The maximum length of the result; a longer one is cut.
    pub(crate) max_length: u64,
    /// The call reached the server.
    pub(crate) asked: AtomicBool,
}

impl Answer {
    pub(crate) async fn give(self: Arc<Self>) -> Result<ToolOutput, ToolError> {
        self.asked.store(true, Ordering::Relaxed);
        if self.takes.is_zero() {
            // concurrent calls must all begin before the first one ends
            yield_now().await;
        } else {
            sleep(self.takes).await;
        }
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
