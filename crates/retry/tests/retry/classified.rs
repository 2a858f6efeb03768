//! Whether each kind of failure is retried.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};
use callward_retry::{RetryDecision, classify};

/// Refused connections, open breakers, full queues, limits, lost connections and sessions,
/// timeouts, invalid answers, and faults that a server reports. All others are never retried: the
/// caller's faults, cancellation, the deadline, a tool that no server offers, the runtime's own
/// faults, and an outcome that is already unknown.
const TRANSIENT: [ErrorKind; 9] = [
    ErrorKind::BreakerOpen,
    ErrorKind::ConnectFailed,
    ErrorKind::ConnectionLost,
    ErrorKind::Overloaded,
    ErrorKind::Protocol,
    ErrorKind::RateLimited,
    ErrorKind::ServerFault,
    ErrorKind::SessionLost,
    ErrorKind::Timeout,
];

#[test]
fn transient_failures_are_retried_as_the_rule_of_the_tool_says() {
    use Delivery::{Answered, NotSent, Unknown};
    for (rule, deliveries) in [
        (RetryRule::Safe, &[NotSent, Unknown, Answered][..]),
        (RetryRule::OnlyUnsent, &[NotSent]),
        (RetryRule::Never, &[]),
    ] {
        for kind in ErrorKind::ALL.iter().copied() {
            for delivery in [NotSent, Unknown, Answered] {
                let is_retried = TRANSIENT.contains(&kind) && deliveries.contains(&delivery);
                let error = ToolError::new(kind, delivery, "scripted");
                let stated = error.clone().with_retry_after(Duration::from_secs(7));
                for mut error in [error, stated] {
                    let floor = error.retry_after();
                    // without the time of a probe an operator holds it open
                    let is_held = kind == ErrorKind::BreakerOpen && floor.is_none();
                    let expected = match is_retried && !is_held {
                        true => RetryDecision::Retry { floor },
                        false => RetryDecision::Fail,
                    };
                    let found = classify(rule, &error);
                    assert_eq!(found, expected, "{kind}, {delivery}, {rule}");
                    error.attempts = 1;
                    let found = classify(rule, &error);
                    assert_eq!(found, RetryDecision::Fail, "{kind} was retried already");
                }
            }
        }
    }
}
