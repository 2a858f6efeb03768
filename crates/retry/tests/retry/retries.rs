//! What is retried, and how a call ends.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CallRecord, Delivery, ErrorKind, IdempotencyKey, RetryRule, ServerId, ToolCall, ToolError,
};
use callward_retry::{RetryDecision, RetryLayer, classify};
use callward_testkit::{MockClient, MockService, contract};
use proptest::prelude::*;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{
    Output, attempts, layer, ms, of, read, result, rows, run, runtime, scripted, with, within,
};

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract() {
    contract::check(|inner| RetryLayer::default().layer(inner)).await;
}

/// The results of a server, how many of them a call gets, and its own.
const CALLS: &str = "
    tool      results                                 attempts  ends with
    read      timeout? server_fault! ok               3         ok
    read      connect_failed-                         3         connect_failed-
    read      failed                                  1         failed
    read      invalid_call!                           1         invalid_call!
    set       protocol? breaker_open-                 2         breaker_open?
    set       protocol! breaker_open-                 2         breaker_open?
    set       protocol- breaker_open-                 2         breaker_open-
    pay       connect_failed-                         1         connect_failed-
    pay       timeout?                                1         outcome_unknown?
    delete    timeout?                                1         outcome_unknown?
    transfer  timeout?                                1         outcome_unknown?
    transfer  connect_failed- connection_lost?        2         outcome_unknown?
";

#[tokio::test(start_paused = true)]
async fn calls_are_retried_and_end_as_the_table_says() {
    for [tool, results, attempts, end] in rows(CALLS) {
        let (server, record) = (scripted(results), Arc::new(CallRecord::new()));
        let call = of(tool).with_record(record.clone());
        let service = RetryLayer::default().layer(server.clone());
        let found = service.oneshot(call).await;
        let seen = server.seen();
        let numbers = seen.iter().map(|call| call.attempt().number);
        let attempts: u32 = attempts.parse().unwrap();
        assert!(numbers.eq(1..=attempts), "{tool}: {results}");
        let of = |result: &Output| match result {
            Ok(output) => (output.is_error(), None),
            Err(error) => (true, Some((error.kind, error.delivery))),
        };
        assert_eq!(of(&found), of(&result(end)), "{tool}: {results}");
        if let Err(error) = found {
            assert_eq!(error.attempts, attempts, "{tool}: {results}");
        }
        let earlier = results.split_whitespace().take(attempts as usize - 1);
        let sent = |word: &str| !word.ends_with('-');
        assert_eq!(record.facts().was_retried(), earlier.into_iter().any(sent));
    }
}

#[tokio::test(start_paused = true)]
async fn a_nested_retry_does_not_multiply_the_attempts() {
    let server = scripted("connect_failed-");
    let inner = RetryLayer::default().layer(server.clone());
    let nested = RetryLayer::default().layer(inner);
    let error = nested.oneshot(read()).await.unwrap_err();
    assert_eq!((server.started(), error.attempts), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_retry_avoids_the_servers_that_failed_and_not_those_that_refused() {
    let server = scripted("breaker_open-:a@1000 connect_failed-:a connect_failed-:b ok");
    let service = RetryLayer::default().layer(server.clone());
    service.oneshot(within(ms(60_000), read())).await.unwrap();
    let seen = server.seen();
    let avoided: Vec<_> = seen.iter().map(|c| c.attempt().avoid.len()).collect();
    assert_eq!(avoided, [0, 0, 1, 2]);
    let ids = ["a", "b"].map(|id| ServerId::new(id).unwrap());
    assert_eq!(seen[3].attempt().avoid[..], ids);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_the_background_pays_but_is_not_retried() {
    let layer = layer(with(|config| config.budget_reserve = 0));
    for _ in 0..5 {
        let refresh = read().in_background();
        run(&layer, refresh, "ok").await.result.unwrap();
    }
    // it stands in for its callers
    assert_eq!(layer.budgets()[0].tokens, 1);
    let refresh = read().in_background();
    let ended = run(&layer, refresh, "timeout?").await;
    assert_eq!(ended.result.unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!((ended.begins.len(), layer.budgets()[0].tokens), (1, 1));
}

/// Returns the keys of the attempts of a call.
#[tokio::test(start_paused = true)]
async fn a_call_whose_client_was_asked_is_not_sent_again() {
    for (asks, is_round, attempts) in [(false, false, 2), (true, false, 1), (false, true, 1)] {
        for (tool, first) in [("read", "timeout?"), ("transfer", "connect_failed-")] {
            let server = MockService::new(move |call, n| async move {
                if asks {
                    MockClient::ask(&call, "").await;
                }
                result(if n == 1 { first } else { "ok" })
            });
            let (_, mut call) = MockClient::make(of(tool));
            call.context_mut().round = is_round.then(Arc::default);
            let ended = RetryLayer::default().layer(server.clone()).oneshot(call);
            assert_eq!(
                ended.await.is_ok(),
                attempts == 2,
                "{tool} {asks} {is_round}"
            );
            assert_eq!(server.started(), attempts, "{tool} {asks} {is_round}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_is_stopped_retries_nothing() {
    let layer = layer(with(|_| {}));
    assert_eq!(run(&layer, read(), "timeout? ok").await.begins.len(), 2);
    layer.stop();
    let stopped = run(&layer, read(), "timeout? ok").await;
    assert_eq!(stopped.begins.len(), 1);
}

async fn keys(call: ToolCall, results: &str) -> Vec<Option<IdempotencyKey>> {
    let server = scripted(results);
    let service = RetryLayer::default().layer(server.clone());
    service.oneshot(call).await.unwrap();
    let seen = server.seen();
    seen.iter().map(ToolCall::idempotency_key).collect()
}

#[tokio::test(start_paused = true)]
async fn all_attempts_of_a_call_carry_one_key_and_an_equal_call_another() {
    let same = read();
    let twice = "connection_lost? connection_lost? ok";
    let [one, other] = [keys(same.clone(), twice).await, keys(same, twice).await];
    for keys in [&one, &other] {
        assert!(keys[0].is_some() && *keys == vec![keys[0].clone(); 3]);
    }
    assert_ne!(one[0], other[0], "two calls are meant, so two keys");

    // a caller's own key is kept, and not used for a background call
    let own: IdempotencyKey = "payment-4711".parse().unwrap();
    let asked = read().with_idempotency_key(own.clone());
    assert_eq!(keys(asked.clone(), twice).await, vec![Some(own.clone()); 3]);
    let refresh = asked.in_background();
    assert_eq!(refresh.idempotency_key(), None);
    let key = keys(refresh, "ok").await.remove(0);
    assert!(key.is_some_and(|key| key != own));
}

fn failures() -> impl Strategy<Value = Output> {
    let is_known = |kind: &ErrorKind| *kind != ErrorKind::OutcomeUnknown;
    let kinds = ErrorKind::ALL.iter().copied().filter(is_known);
    let kinds = prop::sample::select(kinds.collect::<Vec<_>>());
    let deliveries = [Delivery::Answered, Delivery::NotSent, Delivery::Unknown];
    let deliveries = prop::sample::select(deliveries.to_vec());
    (kinds, deliveries, any::<bool>()).prop_map(|(kind, delivery, stated)| {
        let error = ToolError::new(kind, delivery, "scripted");
        Err(match stated {
            true => error.with_retry_after(ms(1_000)),
            false => error,
        })
    })
}

proptest! {
    /// The server runs a call whenever it reached it: answered or unknown, the worst case.
    #[test]
    fn an_unsafe_tool_runs_at_most_once_whatever_fails(
        mut script in prop::collection::vec(failures(), 1..8),
        tool in prop::sample::select(vec!["pay", "transfer"]),
        max_attempts in 1_u32..10,
    ) {
        script.push(result("ok"));
        let sent = |result: &Output| {
            !matches!(result, Err(error) if error.delivery == Delivery::NotSent)
        };
        let mock = MockService::sequence(script.clone());
        let config = with(|config| attempts(config, max_attempts));
        let service = layer(config).layer(mock.clone());
        let result = runtime().block_on(service.oneshot(of(tool)));
        let runs = script[..mock.started()].iter().filter(|result| sent(result)).count();
        prop_assert!(runs <= 1, "ran {runs} times");
        if tool == "pay" {
            prop_assert_eq!(mock.started(), 1);
        }
        // an unknown outcome must not look like a certain failure
        if let Err(error) = result {
            let is_unknown = error.kind == ErrorKind::OutcomeUnknown;
            prop_assert_eq!(error.delivery == Delivery::Unknown, is_unknown);
        }
    }
}

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
                    let floor = error.retry_after;
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
                    error.attempts = 0;
                    let seen = |history: &str| {
                        let data = format!(r#"{{"history":{history}}}"#);
                        classify(rule, &error.clone().with_data(data.into()))
                    };
                    assert_eq!(seen("[{},{}]"), RetryDecision::Fail, "{kind} was at a peer");
                    assert_eq!(
                        (seen("[{}]"), seen("2")),
                        (expected, expected),
                        "{kind} was not"
                    );
                }
            }
        }
    }
}
