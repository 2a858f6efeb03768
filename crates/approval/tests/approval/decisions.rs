//! Requests and decisions.

use std::time::Duration;

use callward_approval::{
    ApprovalConfig, ApprovalError, Approvals, Asked, LocalStore, RequestId, State,
};
use callward_core::{ErrorKind, Principal, ToolError};
use tokio::time::{Instant, advance};

use crate::bed::{Bed, Flaky, by, call, decision, settle};

fn asked(arguments: &str) -> Asked {
    Asked::of(&call(arguments), "it wipes").unwrap()
}

async fn open() -> Approvals {
    let config = ApprovalConfig::default();
    Approvals::open(LocalStore::default(), config)
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn equal_calls_join_one_request_and_a_name_has_128_bits() {
    let approvals = open().await;
    let one = approvals.request(asked(r#"{"a":1,"b":2}"#)).await.unwrap();
    let same = approvals.request(asked(r#"{"b":2, "a":1}"#)).await.unwrap();
    let other = approvals.request(asked(r#"{"b":2}"#)).await.unwrap();
    assert_eq!(one, same);
    assert_ne!(one.id, other.id);
    assert!(one.id.as_str().len() == 32 && one.id.as_str().bytes().all(|b| b.is_ascii_hexdigit()));
    assert_eq!(
        (&*one.asked.arguments, &*one.asked.reason),
        (r#"{"a":1,"b":2}"#, "it wipes")
    );
    assert_eq!(one.expires_ms - one.created_ms, 15 * 60 * 1000);
    let json = serde_json::to_value(&*one).unwrap();
    assert_eq!(
        (&json["state"], &json["safety"]),
        (&"pending".into(), &"dangerous".into())
    );
    assert_eq!(
        serde_json::from_value::<callward_approval::Request>(json).unwrap(),
        *one
    );
}

#[tokio::test(start_paused = true)]
async fn decisions_that_are_not_possible_say_why() {
    let approvals = open().await;
    let id = approvals.request(asked("{}")).await.unwrap().id.clone();
    let mut own = decision(true, None);
    own.by = Principal::new("ada");
    let refused = approvals.decide(&id, own).await.unwrap_err();
    assert!(matches!(refused, ApprovalError::DecidedByTheOneThatAsks));
    let refused = approvals
        .withdraw(&id, Principal::new("ops"))
        .await
        .unwrap_err();
    assert!(matches!(refused, ApprovalError::NotTheOneThatAsks));
    let denied = approvals
        .decide(&id, decision(false, Some("no")))
        .await
        .unwrap();
    let reviewed = denied.decision.clone().unwrap();
    assert_eq!(
        (reviewed.by.as_str(), reviewed.note.as_deref()),
        ("ops", Some("no"))
    );
    let again = approvals
        .decide(&id, decision(true, None))
        .await
        .unwrap_err();
    assert_eq!(again.to_string(), format!("request {id} is denied"));
    let nowhere = RequestId::new("x");
    let unknown = approvals
        .decide(&nowhere, decision(true, None))
        .await
        .unwrap_err();
    assert_eq!(unknown.to_string(), "no request x");
}

#[tokio::test(start_paused = true)]
async fn a_denial_bars_equal_calls_until_its_cool_off_is_over() {
    let approvals = open().await;
    let one = approvals.request(asked("{}")).await.unwrap();
    approvals
        .decide(&one.id, decision(false, None))
        .await
        .unwrap();
    advance(Duration::from_secs(299)).await;
    let barred = approvals.request(asked("{}")).await.unwrap();
    assert_eq!((&barred.id, barred.state), (&one.id, State::Denied));
    assert_eq!(
        approvals.request(asked("[]")).await.unwrap().state,
        State::Pending
    );
    advance(Duration::from_secs(1)).await;
    let next = approvals.request(asked("{}")).await.unwrap();
    assert_eq!(next.state, State::Pending);
    assert_ne!(next.id, one.id);
}

#[tokio::test(start_paused = true)]
async fn pending_requests_are_bounded_per_principal_and_in_all() {
    let mut config = ApprovalConfig::default();
    (config.pending_per_principal, config.pending) = (2, 3);
    let approvals = Approvals::open(LocalStore::default(), config)
        .await
        .unwrap();
    let ask = async |principal: &str, arguments: &str| {
        let call = call(arguments).with_caller(by(principal));
        let asked = Asked::of(&call, "x").unwrap();
        approvals
            .request(asked)
            .await
            .map(|request| request.id.clone())
    };
    let first = ask("ada", "1").await.unwrap();
    ask("ada", "2").await.unwrap();
    let refused = ask("ada", "3").await.unwrap_err().to_string();
    assert_eq!(refused, "too many calls wait for approval (OfPrincipal)");
    ask("bob", "1").await.unwrap();
    let refused = ask("eve", "1").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "too many calls wait for approval (InAll)"
    );
    assert_eq!(ToolError::from(refused).kind, ErrorKind::Overloaded);
    assert_eq!(
        ask("ada", "1").await.unwrap(),
        first,
        "what is there can be joined"
    );
    approvals
        .decide(&first, decision(true, None))
        .await
        .unwrap();
    ask("eve", "1").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_expire_on_time_and_after_a_restart() {
    let store = LocalStore::default();
    let config = ApprovalConfig::default();
    let approvals = Approvals::open(store.clone(), config.clone())
        .await
        .unwrap();
    let mut events = approvals.events();
    let one = approvals.request(asked("1")).await.unwrap();
    let made = Instant::now();
    for state in [State::Pending, State::Expired] {
        let request = events.recv().await.unwrap();
        assert_eq!((&request.id, request.state), (&one.id, state));
    }
    // no one asked: the time alone ended it
    let took = made.elapsed();
    assert!(took >= config.expires && took <= config.expires + Duration::from_secs(1));

    let two = approvals.request(asked("2")).await.unwrap();
    approvals
        .decide(&two.id, decision(true, None))
        .await
        .unwrap();
    drop(approvals);
    assert!(events.recv().await.is_ok() && events.recv().await.is_ok());
    assert!(events.recv().await.is_err(), "all is gone");
    advance(config.expires).await;
    let approvals = Approvals::open(store, config.clone()).await.unwrap();
    assert_eq!(approvals.get(&two.id).await.unwrap().state, State::Expired);
    let late = approvals.consume(&two.id).await.unwrap_err();
    assert_eq!(late.to_string(), format!("request {} is expired", two.id));
    advance(Duration::from_secs(24 * 60 * 60 + 1)).await;
    assert_eq!(
        approvals.list().await.unwrap(),
        [],
        "what ended long ago is forgotten"
    );
    assert!(matches!(
        approvals.get(&two.id).await,
        Err(ApprovalError::NotFound(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_consumed_once_and_given_back_if_not_sent() {
    let approvals = open().await;
    let one = approvals.request(asked("{}")).await.unwrap();
    approvals
        .decide(&one.id, decision(true, None))
        .await
        .unwrap();
    let state = async || approvals.get(&one.id).await.unwrap().state;
    let execution = approvals.consume(&one.id).await.unwrap();
    assert_eq!(state().await, State::Consumed);
    let second = approvals.consume(&one.id).await.unwrap_err();
    assert_eq!(
        second.to_string(),
        format!("request {} is consumed", one.id)
    );
    drop(execution);
    settle().await;
    assert_eq!(state().await, State::Approved);

    // one that leaves at any moment leaves nothing consumed
    for polls in 0..4 {
        let mut consuming = Box::pin(approvals.consume(&one.id));
        for _ in 0..polls {
            if is_ready(&mut consuming).await {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(consuming);
        settle().await;
        assert_eq!(
            state().await,
            State::Approved,
            "dropped after {polls} polls"
        );
    }
    let mut execution = approvals.consume(&one.id).await.unwrap();
    execution.sent();
    drop(execution);
    settle().await;
    assert_eq!(state().await, State::Unknown);
}

/// Polls once.
async fn is_ready<F: Future + Unpin>(mut future: F) -> bool {
    std::future::poll_fn(|cx| {
        let polled = std::pin::Pin::new(&mut future).poll(cx);
        std::task::Poll::Ready(polled.is_ready())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_restart_loses_only_the_calls_of_its_own_process() {
    let store = LocalStore::default();
    let open = async |instance: &str| {
        let mut config = ApprovalConfig::default();
        instance.clone_into(&mut config.instance);
        Approvals::open(store.clone(), config).await.unwrap()
    };
    let (one, two) = (open("one").await, open("two").await);
    let mut running = Vec::new();
    for (approvals, arguments) in [(&one, "1"), (&two, "2")] {
        advance(Duration::from_millis(1)).await;
        let request = one.request(asked(arguments)).await.unwrap();
        two.decide(&request.id, decision(true, None)).await.unwrap();
        let mut execution = approvals.consume(&request.id).await.unwrap();
        execution.sent();
        running.push(execution);
    }
    let states = async |approvals: &Approvals| {
        let all = approvals.list().await.unwrap();
        all.iter().map(|request| request.state).collect::<Vec<_>>()
    };
    let again = open("one").await;
    assert_eq!(states(&again).await, [State::Unknown, State::Consumed]);
    // what the lost process stores late changes nothing
    for execution in running {
        execution.end(callward_approval::Outcome::Succeeded).await;
    }
    assert_eq!(states(&again).await, [State::Unknown, State::Succeeded]);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_at_another_process_learn_of_it_soon() {
    let store = LocalStore::default();
    let config = ApprovalConfig::default();
    let here = Approvals::open(store.clone(), config.clone())
        .await
        .unwrap();
    let there = Approvals::open(store, config).await.unwrap();
    let request = here.request(asked("{}")).await.unwrap();
    let until = Instant::now() + Duration::from_secs(50);
    let waiting = tokio::spawn({
        let (here, id) = (here.clone(), request.id.clone());
        async move { here.wait(&id, until).await }
    });
    settle().await;
    there
        .decide(&request.id, decision(true, None))
        .await
        .unwrap();
    let decided = Instant::now();
    assert_eq!(waiting.await.unwrap().unwrap().state, State::Approved);
    assert!(decided.elapsed() <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_refuses_calls_and_changes_nothing() {
    let store = Flaky::default();
    let bed = Bed::with(store.clone(), callward_testkit::MockService::counting()).await;
    let waiting = bed.start(call("{}")).await;
    let id = bed.pending().await.id.clone();
    store.set_down(true);
    assert!(
        bed.approvals
            .decide(&id, decision(true, None))
            .await
            .is_err()
    );
    let refused = bed.run(call("[]")).await.unwrap_err();
    let waited = waiting.await.unwrap().unwrap_err();
    for error in [refused, waited] {
        assert_eq!(error.kind, ErrorKind::Internal);
        assert_eq!(error.delivery, callward_core::Delivery::NotSent);
        assert!(!error.to_string().contains("disk full"), "{error}");
    }
    store.set_down(false);
    assert_eq!(
        (bed.states().await, bed.server.started()),
        (vec![State::Pending], 0)
    );
}
