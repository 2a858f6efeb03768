//! Errors of the `backoff` crate, both ways.
#![cfg(feature = "backoff")]

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};
use callward_retry::backoff::backoff::Error;
use callward_retry::backoff::{from_backoff, pass_on, to_backoff};
use callward_retry::{RetryDecision, classify};
use proptest::prelude::*;

const RULES: [RetryRule; 3] = [RetryRule::Never, RetryRule::OnlyUnsent, RetryRule::Safe];
const DELIVERIES: [Delivery; 3] = [Delivery::Answered, Delivery::NotSent, Delivery::Unknown];
const KINDS: [ErrorKind; 5] = [
    ErrorKind::ConnectFailed,
    ErrorKind::InvalidCall,
    ErrorKind::RateLimited,
    ErrorKind::ServerFault,
    ErrorKind::Timeout,
];

#[test]
fn an_error_of_that_crate_is_retried_only_where_that_is_safe() {
    let of = |rule| DELIVERIES.map(|delivery| (rule, delivery));
    for (rule, delivery) in RULES.into_iter().flat_map(of) {
        let is_retried = |error| classify(rule, &error) != RetryDecision::Fail;
        let transient = from_backoff(Error::transient("busy"), delivery);
        assert_eq!(transient.delivery, delivery);
        let unsent = rule == RetryRule::OnlyUnsent && delivery == Delivery::NotSent;
        let is_safe = rule == RetryRule::Safe || unsent;
        assert_eq!(is_retried(transient), is_safe, "{rule} {delivery}");
        let permanent = from_backoff(Error::permanent("no such printer"), delivery);
        assert!(!permanent.kind.blames_server() && !is_retried(permanent));
    }
    let wait = Duration::from_secs(3);
    let error = from_backoff(Error::retry_after("busy", wait), Delivery::Answered);
    assert_eq!(error.retry_after, Some(wait));
}

proptest! {
    #[test]
    fn an_error_converted_both_ways_is_classified_the_same(
        kind in prop::sample::select(&KINDS[..]),
        delivery in prop::sample::select(&DELIVERIES[..]),
        rule in prop::sample::select(&RULES[..]),
        wait in prop::option::of(0_u64..100_000),
    ) {
        let error = ToolError::new(kind, delivery, "x");
        let error = match wait {
            Some(wait) => error.with_retry_after(Duration::from_millis(wait)),
            None => error,
        };
        let there = to_backoff(rule, error.clone());
        let transient = matches!(there, Error::Transient { .. });
        prop_assert_eq!(transient, classify(rule, &error) != RetryDecision::Fail);
        let back = pass_on(there);
        prop_assert_eq!((back.kind, back.delivery), (kind, delivery));
        prop_assert_eq!(back.retry_after, error.retry_after);
        prop_assert_eq!(classify(rule, &back), classify(rule, &error));
        // a permanent error stays permanent
        if !transient {
            prop_assert_eq!(classify(RetryRule::Safe, &back), RetryDecision::Fail);
        }
    }
}
