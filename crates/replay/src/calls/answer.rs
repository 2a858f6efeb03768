//! A server that gives the recorded answer of one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{ErrorKind, ToolError, ToolOutput};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::tally::{Facts, Kept};

/// The recorded answer of one call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) facts: Facts,
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
        if let Some(delivery) = self.facts.lost {
            let text = "recorded as without an answer";
            return Err(ToolError::new(ErrorKind::ConnectionLost, delivery, text));
        }
        if self.facts.error {
            return Ok(ToolOutput::error_text("recorded as a failure"));
        }
        let bytes = self.facts.bytes.min(self.max_length);
        Ok(ToolOutput::text(write(self.facts.result, bytes)))
    }
}

/// Makes a result that names its digest and cost, padded to this length.
fn write(result: Kept, bytes: u64) -> String {
    let digest = result.digest.map(|digest| format!("{digest:x}"));
    let cost = result.cost.map(|cost| cost.as_nanos().to_string());
    let (digest, cost) = (digest.unwrap_or_default(), cost.unwrap_or_default());
    let mut text = format!("{digest} {cost} ");
    let around = ToolOutput::text("").body().len() + text.len();
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
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
        let known = Kept {
            digest: Some(7 << 100),
            cost: Some(Duration::from_millis(3)),
        };
        let unknown = Kept {
            digest: None,
            cost: None,
        };
        for kept in [known, unknown] {
            let output = ToolOutput::text(write(kept, 1_000));
            assert_eq!((output.body().len(), read(&output)), (1_000, kept));
            assert_eq!(read(&ToolOutput::text(write(kept, 0))), kept);
        }
    }
}
