//! Whether each kind of failure is retried, cell by cell.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};
use callward_retry::{RetryDecision, classify};

/// What is done about each failure: `R` retries, `-` does not. Three columns for each rule: not
/// sent, sent and not answered, answered.
///
/// - Transient: refused connections, open breakers, full queues, limits, lost connections and
///   sessions, timeouts, invalid answers, and faults that a server reports.
/// - Not transient: the caller's faults, cancellation, the deadline, a tool that no server offers,
///   the runtime's own faults, and an outcome that is already unknown.
/// - A safe tool is retried after any delivery, `only_unsent` if the call was not sent, any other
///   tool never.
const TABLE: &str = "
    kind                 safe     only_unsent  never
    breaker_open         R R R    R - -        - - -
    cancelled            - - -    - - -        - - -
    connect_failed       R R R    R - -        - - -
    connection_lost      R R R    R - -        - - -
    deadline_exceeded    - - -    - - -        - - -
    internal             - - -    - - -        - - -
    invalid_call         - - -    - - -        - - -
    no_eligible_server   - - -    - - -        - - -
    outcome_unknown      - - -    - - -        - - -
    overloaded           R R R    R - -        - - -
    protocol             R R R    R - -        - - -
    rate_limited         R R R    R - -        - - -
    server_fault         R R R    R - -        - - -
    session_lost         R R R    R - -        - - -
    timeout              R R R    R - -        - - -
    too_large            - - -    - - -        - - -
    unauthorized         - - -    - - -        - - -
    unknown_tool         - - -    - - -        - - -
";

const RULES: [RetryRule; 3] = [RetryRule::Safe, RetryRule::OnlyUnsent, RetryRule::Never];
const DELIVERIES: [Delivery; 3] = [Delivery::NotSent, Delivery::Unknown, Delivery::Answered];

#[test]
fn every_failure_is_treated_as_the_table_says() {
    let rows = TABLE.trim().lines().skip(1);
    for (kind, row) in ErrorKind::ALL.iter().copied().zip(rows.clone()) {
        let mut cells = row.split_whitespace();
        assert_eq!(cells.next(), Some(kind.as_str()), "each kind has a row");
        let places = RULES.into_iter();
        let places = places.flat_map(|rule| DELIVERIES.map(|delivery| (rule, delivery)));
        for (rule, delivery) in places {
            let is_retried = cells.next() == Some("R");
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
        assert_eq!(cells.next(), None, "{kind}");
    }
    assert_eq!(rows.count(), ErrorKind::ALL.len());
}
