//! How the end of a call counts, and the guard's answer. Pure.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, OutputStatus, ToolError, ToolOutput, one_line};

type Output = Result<ToolOutput, ToolError>;

/// How the end of a call counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It failed with this message.
    Failed(String),
    /// It says nothing about the call: a retry later may succeed.
    Ignored,
    Succeeded,
}

impl Outcome {
    pub(crate) fn of(result: &Output) -> Self {
        match result {
            Ok(output) if output.status() == OutputStatus::Waits => Self::Ignored,
            Ok(output) if output.is_error() => Self::failed(&output.to_text()),
            Ok(_) => Self::Succeeded,
            Err(error) if is_final(error) => Self::failed(&error.message),
            Err(_) => Self::Ignored,
        }
    }

    fn failed(message: &str) -> Self {
        Self::Failed(one_line(message, MAX_MESSAGE_CHARS))
    }
}

/// Returns `true` if a write that ended so may have changed what other calls see.
pub(crate) fn may_have_changed(result: &Output) -> bool {
    match result {
        Ok(output) => !output.is_error() && output.status() != OutputStatus::Waits,
        Err(error) => match error.delivery {
            Delivery::NotSent => false,
            Delivery::Unknown => true,
            Delivery::Answered => matches!(
                error.kind,
                ErrorKind::Protocol
                    | ErrorKind::ServerFault
                    | ErrorKind::Timeout
                    | ErrorKind::TooLarge
            ),
        },
    }
}

/// Returns `true` if the next call will fail alike: it was sent, and no time to retry is stated.
fn is_final(error: &ToolError) -> bool {
    let of_the_call = matches!(
        error.kind,
        ErrorKind::ConnectionLost
            | ErrorKind::InvalidCall
            | ErrorKind::OutcomeUnknown
            | ErrorKind::Protocol
            | ErrorKind::ServerFault
            | ErrorKind::Timeout
            | ErrorKind::TooLarge
            | ErrorKind::Unauthorized
            | ErrorKind::UnknownTool
    );
    of_the_call && error.delivery != Delivery::NotSent && error.retry_after.is_none()
}

/// Writes the guard's answer: what failed, how often, and what to do instead.
pub(crate) fn answer(tool: &str, failures: u32, message: &str, wait: Duration) -> ToolOutput {
    let last = match message {
        "" => "without a message".to_owned(),
        message => format!("last with: {message}"),
    };
    let secs = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    ToolOutput::error_text(format!(
        "Not sent: this same call of `{tool}`, with the same arguments, failed {failures} times in \
         a row, {last}\nSending it again now will not help. Change course: use other arguments or \
         another tool, or tell the user what fails and ask how to go on. Only this exact call is \
         held back, for {secs} s."
    ))
}

/// How much of a message a model can read again and again.
const MAX_MESSAGE_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_and_delivery_counts_as_the_table_says() {
        use Delivery::{Answered, NotSent, Unknown};
        // kinds that fail alike the next time; of an answer, the first four may have had an effect
        let finals = [
            ErrorKind::Protocol,
            ErrorKind::ServerFault,
            ErrorKind::Timeout,
            ErrorKind::TooLarge,
            ErrorKind::ConnectionLost,
            ErrorKind::InvalidCall,
            ErrorKind::OutcomeUnknown,
            ErrorKind::Unauthorized,
            ErrorKind::UnknownTool,
        ];
        for kind in ErrorKind::ALL.iter().copied() {
            let (is_final, changes) = (finals.contains(&kind), finals[..4].contains(&kind));
            for delivery in [Answered, NotSent, Unknown] {
                let error = ToolError::new(kind, delivery, "x");
                let later = error.clone().with_retry_after(Duration::from_secs(1));
                assert_eq!(Outcome::of(&Err(later)), Outcome::Ignored, "{kind}");
                let changed = delivery == Unknown || delivery == Answered && changes;
                assert_eq!(
                    may_have_changed(&Err(error.clone())),
                    changed,
                    "{kind} {delivery}"
                );
                let expected = match is_final && delivery != NotSent {
                    true => Outcome::Failed("x".to_owned()),
                    false => Outcome::Ignored,
                };
                assert_eq!(Outcome::of(&Err(error)), expected, "{kind} {delivery}");
            }
        }
        let (done, failed) = (Ok(ToolOutput::text("x")), Ok(ToolOutput::error_text("no")));
        assert!(may_have_changed(&done) && !may_have_changed(&failed));
        assert_eq!(Outcome::of(&done), Outcome::Succeeded);
        assert_eq!(Outcome::of(&failed), Outcome::Failed("no".to_owned()));
        let waits = Ok(ToolOutput::waits());
        assert!(!may_have_changed(&waits) && Outcome::of(&waits) == Outcome::Ignored);
    }
}
