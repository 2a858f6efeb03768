//! Errors, both ways.

use std::time::Duration;

use backoff::Error;
use callward_backoff::{from_backoff, pass_on, to_backoff};
use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};
use callward_retry::{Verdict, classify};
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
fn a_transient_error_makes_no_unsafe_call_retryable() {
    for delivery in DELIVERIES {
        let error = from_backoff(Error::transient("busy"), delivery);
        assert_eq!(error.delivery(), delivery);
        assert_eq!(classify(RetryRule::Never, &error), Verdict::Give);
        let unsent = classify(RetryRule::OnlyUnsent, &error) != Verdict::Give;
        assert_eq!(unsent, delivery == Delivery::NotSent, "{delivery}");
        assert_ne!(classify(RetryRule::Safe, &error), Verdict::Give);
    }
}

#[test]
fn a_permanent_error_is_never_retried_and_blames_no_server() {
    for delivery in DELIVERIES {
        let error = from_backoff(Error::permanent("no such printer"), delivery);
        assert!(!error.kind().blames_server());
        for rule in RULES {
            assert_eq!(classify(rule, &error), Verdict::Give, "{rule}");
        }
    }
}

#[test]
fn the_stated_time_is_kept_both_ways() {
    let wait = Duration::from_secs(3);
    let error = from_backoff(Error::retry_after("busy", wait), Delivery::Answered);
    assert_eq!(error.retry_after(), Some(wait));
    let back = to_backoff(RetryRule::Safe, error);
    assert!(
        matches!(&back, Error::Transient { retry_after: Some(kept), .. } if *kept == wait),
        "{back:?}"
    );
    assert_eq!(pass_on(back).retry_after(), Some(wait));
}

proptest! {
    #[test]
    fn what_goes_out_and_comes_back_is_treated_alike(
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
        prop_assert_eq!(transient, classify(rule, &error) != Verdict::Give);
        let back = pass_on(there);
        prop_assert_eq!((back.kind(), back.delivery()), (kind, delivery));
        prop_assert_eq!(classify(rule, &back), classify(rule, &error));
        // what that crate took for permanent stays so, whoever looks next
        if !transient {
            prop_assert_eq!(classify(RetryRule::Safe, &back), Verdict::Give);
        }
    }
}
