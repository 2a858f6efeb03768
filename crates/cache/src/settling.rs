//! How long a write that has ended keeps its scopes out of the cache.

use std::time::Duration;

use callward_core::{OutputStatus, ToolError, ToolOutput};

use crate::durations::Durations;

/// A write whose outcome is not certain is unsettled for at least this long.
const FLOOR: Duration = Duration::from_secs(1);

/// This many times the observed p99 is taken for the longest that the tool's effect takes to land.
const P99_MULTIPLE: u32 = 4;

/// What is known of a call that is not read-only once its attempts have ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    /// What the caller got; `None` if the caller did not wait for it.
    pub(crate) result: Option<&'a Result<ToolOutput, ToolError>>,
    /// More than one attempt may have run: an earlier one may land after the last one was answered.
    pub(crate) retried: bool,
    /// How long the tool's writes take.
    pub(crate) writes: &'a Durations,
    /// The longest that the write is unsettled.
    pub(crate) ceiling: Duration,
    /// How long one attempt may take.
    pub(crate) attempt_timeout: Duration,
    /// How long until the deadline of the call; zero if it has none.
    pub(crate) to_deadline: Duration,
}

/// For how long, from the end of a write, its effect may still land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settling {
    /// Its scopes are neither looked up nor kept.
    pub(crate) unsettled: Duration,
    /// What is kept is served within the burst window only.
    pub(crate) doubtful: Duration,
}

impl Settling {
    /// The effect has landed, or never will.
    pub(crate) const DONE: Self = Self {
        unsettled: Duration::ZERO,
        doubtful: Duration::ZERO,
    };

    /// Decides by what the caller got, unless it is a task that is followed:
    ///
    /// | what the caller got | unsettled | then doubtful until |
    /// | --- | --- | --- |
    /// | a complete result; a refusal with −32600, −32601, 401, 403 or 429; a failure that was not sent | no | |
    /// | `isError: true` | 1 s | the attempt timeout has passed |
    /// | anything else | 4 × p99, from 1 s to the ceiling | deadline and attempt timeout have passed |
    pub(crate) fn of(ended: &Ended<'_>) -> Self {
        match ended.result {
            Some(Ok(output)) if !ended.retried && output.status() == OutputStatus::Complete => {
                match output.is_error() {
                    true => Self {
                        unsettled: FLOOR,
                        doubtful: ended.attempt_timeout,
                    },
                    false => Self::DONE,
                }
            }
            Some(Err(error)) if !ended.retried && !error.may_have_run() => Self::DONE,
            _ => {
                let p99 = ended.writes.p99().unwrap_or(ended.ceiling);
                let likely = p99.saturating_mul(P99_MULTIPLE);
                Self {
                    unsettled: likely.min(ended.ceiling).max(FLOOR),
                    doubtful: ended.to_deadline.max(ended.attempt_timeout),
                }
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::sync::LazyLock;

    use callward_core::{Delivery, ErrorKind};

    use super::*;

    const CEILING: Duration = Duration::from_secs(10);
    const ATTEMPT: Duration = Duration::from_secs(60);
    const LOST: Settling = Settling {
        unsettled: CEILING,
        doubtful: Duration::from_secs(600),
    };

    fn of(result: Option<&Result<ToolOutput, ToolError>>) -> Settling {
        static UNSEEN: LazyLock<Durations> = LazyLock::new(Durations::default);
        Settling::of(&Ended {
            result,
            retried: false,
            writes: &UNSEEN,
            ceiling: CEILING,
            attempt_timeout: ATTEMPT,
            to_deadline: LOST.doubtful,
        })
    }

    fn failed(kind: ErrorKind, delivery: Delivery) -> ToolError {
        ToolError::new(kind, delivery, "failed")
    }

    fn answered(kind: ErrorKind, code: i64) -> ToolError {
        failed(kind, Delivery::Answered).with_code(code)
    }

    #[test]
    fn each_row_of_the_table() {
        use ErrorKind::{
            Cancelled, ConnectionLost, InvalidCall, OutcomeUnknown, Protocol, RateLimited,
            ServerFault, Timeout, TooLarge, Unauthorized,
        };
        let reported = Settling {
            unsettled: Duration::from_secs(1),
            doubtful: ATTEMPT,
        };
        assert_eq!(of(Some(&Ok(ToolOutput::text("done")))), Settling::DONE);
        assert_eq!(of(Some(&Ok(ToolOutput::error_text("no")))), reported);
        for body in [
            r#"{"resultType":"input_required"}"#,
            r#"{"resultType":"task","isError":true}"#,
        ] {
            let output = ToolOutput::from_json(body).unwrap();
            assert_eq!(of(Some(&Ok(output))), LOST, "{body}");
        }
        assert_eq!(of(None), LOST, "its caller left");
        let by_gateway = |delivery: &str| {
            let data = format!(r#"{{"kind":"timeout","delivery":"{delivery}"}}"#);
            answered(ServerFault, ToolError::RUNTIME_CODE).with_data(data.into())
        };
        for error in [
            answered(InvalidCall, -32600),
            answered(InvalidCall, -32601),
            answered(Unauthorized, 401).with_http_status(401),
            answered(Unauthorized, -32001).with_http_status(403),
            answered(RateLimited, 429).with_http_status(429),
            failed(RateLimited, Delivery::NotSent),
            failed(ErrorKind::ConnectFailed, Delivery::NotSent),
        ] {
            assert_eq!(of(Some(&Err(error.clone()))), Settling::DONE, "{error}");
        }
        for error in [
            answered(InvalidCall, -32602),
            answered(InvalidCall, -32700),
            answered(InvalidCall, -32601).with_http_status(404),
            answered(InvalidCall, -32600).with_http_status(400),
            answered(InvalidCall, 404).with_http_status(404),
            answered(Unauthorized, 407).with_http_status(407),
            answered(Timeout, 408).with_http_status(408),
            answered(ServerFault, -32603),
            answered(ServerFault, -32000),
            answered(ServerFault, -33010),
            answered(ServerFault, 429),
            answered(ServerFault, -32601).with_http_status(500),
            answered(Protocol, 302).with_http_status(302),
            failed(Protocol, Delivery::Answered),
            failed(TooLarge, Delivery::Answered),
            failed(Timeout, Delivery::Unknown),
            failed(ConnectionLost, Delivery::Unknown),
            failed(Cancelled, Delivery::Unknown),
            failed(OutcomeUnknown, Delivery::Unknown),
            failed(Unauthorized, Delivery::Unknown).with_http_status(401),
            // any server may say so
            by_gateway("not_sent"),
            by_gateway("unknown"),
            by_gateway("answered"),
            by_gateway("never"),
        ] {
            assert_eq!(of(Some(&Err(error.clone()))), LOST, "{error}");
        }
        for code in (500..600).chain([408, 404]) {
            let status = u16::try_from(code).unwrap();
            let error = answered(ServerFault, code).with_http_status(status);
            assert_eq!(of(Some(&Err(error))), LOST, "{code}");
        }
    }
}
