//! Standing permission: which calls it is for, how often, and until when.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use callward_approval::{ApprovalError, Grant, LocalStore, State};
use callward_core::{
    Annotations, CallPlan, Delivery, ErrorKind, Principal, Profile, Resolved, Source, Tool,
    ToolCall, ToolError, ToolOutput,
};
use callward_testkit::{MockService, tool};
use serde_json::{Value, json};
use tokio::time::advance;

use crate::bed::{Bed, approval, by, call, settle, wipe};

fn grant(tool: &Tool, when: Value) -> Grant {
    let mut grant = Grant::new(tool, Principal::new("ops")).unwrap();
    grant.when = Some(when.try_into().unwrap());
    grant
}

/// Returns whether a call runs without a question.
async fn runs(bed: &Bed, call: ToolCall) -> bool {
    let before = bed.server.started();
    let running = bed.start(call).await;
    settle().await;
    running.abort();
    bed.server.started() > before
}

#[tokio::test(start_paused = true)]
async fn a_grant_answers_what_its_row_says_and_nothing_else() {
    let other_tool = tool("wipe_all").destructive().build();
    let changed = tool("wipe").destructive();
    let changed = changed
        .hint(|hints| hints.open_world_hint = Some(true))
        .build();
    let cases: [(&str, ToolCall, bool); 9] = [
        ("", call(r#"{"env":"test","id":1}"#), true),
        ("another value", call(r#"{"env":"live"}"#), false),
        ("none", call("{}"), false),
        (
            "two readings",
            call(r#"{"env":"test","ENV":"live"}"#),
            false,
        ),
        ("another tool", call("{}").of(&other_tool), false),
        ("another definition", call("{}").of(&changed), false),
        ("another principal", call("{}").by("bob"), false),
        ("no object", call(r#"["env"]"#), false),
        (
            "another number of spaces",
            call(r#"{ "env" : "test" }"#),
            true,
        ),
    ];
    for (what, call, expected) in cases {
        let bed = Bed::new().await;
        let mut grant = grant(&wipe(), json!({"env": "test"}));
        grant.principal = Some(Principal::new("ada"));
        let grant = bed.approvals.grant(grant).await.unwrap();
        assert_eq!(runs(&bed, call).await, expected, "{what}");
        let request = bed.approvals.list().await.unwrap().remove(0);
        assert_eq!(
            request.grant.as_ref() == Some(&grant.id),
            expected,
            "{what}"
        );
        if expected {
            let decision = request.decision.as_ref().unwrap();
            assert_eq!((decision.by.as_str(), &*decision.channel), ("ops", "grant"));
        }
    }
}

/// Changes a call's tool or caller.
trait Other {
    fn of(self, tool: &Arc<Tool>) -> ToolCall;
    fn by(self, principal: &str) -> ToolCall;
}

impl Other for ToolCall {
    fn of(self, tool: &Arc<Tool>) -> Self {
        Self::new(tool.clone(), r#"{"env":"test"}"#).with_caller(by("ada"))
    }

    fn by(self, principal: &str) -> Self {
        call(r#"{"env":"test"}"#).with_caller(by(principal))
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_is_used_as_often_and_as_long_as_it_says() {
    let bed = Bed::new().await;
    let mut twice = grant(&wipe(), json!({"env": "test"}));
    twice.uses = NonZeroU32::new(2);
    let id = bed.approvals.grant(twice).await.unwrap().id.clone();
    let equal = || call(r#"{"env":"test"}"#);
    assert!(runs(&bed, equal()).await && runs(&bed, equal()).await);
    assert!(!runs(&bed, equal()).await);
    assert_eq!(bed.approvals.grants().await.unwrap()[0].used, 2);
    bed.decide(false).await;

    // a denial bars, whatever is granted
    let mut any = grant(&wipe(), json!({"env": {"matches": ".*"}}));
    any.uses = None;
    let any = bed
        .approvals
        .grant(any.lasting(Duration::from_secs(60)))
        .await;
    let any = any.unwrap();
    assert!(!runs(&bed, equal()).await);
    assert!(runs(&bed, call(r#"{"env":"b"}"#)).await);
    advance(Duration::from_secs(60)).await;
    assert!(!runs(&bed, call(r#"{"env":"c"}"#)).await);
    let left = bed.approvals.grants().await.unwrap();
    assert_eq!(
        left.iter().map(|grant| &grant.id).collect::<Vec<_>>(),
        [&id]
    );
    bed.approvals.revoke(&id).await.unwrap();
    for gone in [&id, &any.id] {
        advance(Duration::from_secs(901)).await;
        bed.approvals.list().await.unwrap();
        let error = bed.approvals.revoke(gone).await.unwrap_err();
        assert!(matches!(error, ApprovalError::NoGrant(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_calls_at_once_each_use_a_grant_and_no_more_than_it_has() {
    let bed = Bed::new().await;
    let mut some = grant(&wipe(), json!({"env": "test"}));
    some.uses = NonZeroU32::new(5);
    bed.approvals.grant(some).await.unwrap();
    let calls = (0..9).map(|_| {
        tokio::spawn(tower::ServiceExt::oneshot(
            bed.service.clone(),
            call(r#"{"env":"test"}"#),
        ))
    });
    let calls: Vec<_> = calls.collect();
    settle().await;
    assert_eq!(bed.server.started(), 5);
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_sent_is_repeated_with_the_same_use() {
    let unsent = ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "x");
    let server = MockService::sequence(vec![Err(unsent), Ok(ToolOutput::text("done"))]);
    let bed = Bed::with(LocalStore::default(), server).await;
    let once = grant(&wipe(), json!({"env": "test"}));
    bed.approvals.grant(once).await.unwrap();
    let call = || call(r#"{"env":"test"}"#);
    bed.run(call()).await.unwrap_err();
    bed.run(call()).await.unwrap();
    assert_eq!(bed.states().await, [State::Succeeded]);
    assert_eq!(approval(&bed.run(call()).await)["state"], "waiting");
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_cannot_be_made_says_why() {
    let bed = Bed::new().await;
    let mild = tool("tag").build();
    let pattern = json!({"env": "test"});
    let of = |tool: &Tool| Grant::new(tool, Principal::new("ops")).unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let own = |mut grant: Grant| {
        grant.principal = Some(Principal::new("ops"));
        grant
    };
    for (grant, expected) in [
        (of(&wipe()), "wipe may destroy"),
        (
            grant(&wipe(), pattern.clone()).lasting(day * 31),
            "found 1month",
        ),
        (of(&mild).lasting(Duration::ZERO), "up to 30 days"),
        (own(of(&mild)), "by the one that asks"),
    ] {
        let error = bed.approvals.grant(grant).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(callward_approval::Pattern::try_from(json!({})).is_err());
    for _ in 0..Grant::MOST {
        bed.approvals.grant(of(&mild).lasting(day)).await.unwrap();
    }
    let error = bed.approvals.grant(of(&mild)).await.unwrap_err();
    assert!(matches!(error, ApprovalError::TooManyGrants), "{error}");
    advance(day).await;
    bed.approvals.grant(of(&mild)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_grants_to_all_does_not_grant_to_itself() {
    let bed = Bed::new().await;
    let mut of_ada = grant(&wipe(), json!({"env": "test"}));
    (of_ada.by, of_ada.uses) = (Principal::new("ada"), None);
    bed.approvals.grant(of_ada).await.unwrap();
    assert!(!runs(&bed, call(r#"{"env":"test"}"#)).await);
    assert!(runs(&bed, call("").by("bob")).await);
}

#[tokio::test(start_paused = true)]
async fn without_a_pattern_no_call_is_answered_that_turns_out_destructive() {
    // the definition is the same, and the operator knows more by now
    let mild = tool("wipe").build();
    let mut hints = Annotations::default();
    hints.destructive_hint = Some(true);
    let resolved = Resolved::from_single(hints, Source::Operator);
    let plan = CallPlan::derive(&resolved, &Profile::standard());
    let (set, definition) = (mild.set().clone(), mild.definition.clone());
    let harmful = Arc::new(Tool::new(set, definition, resolved, plan));
    let bed = Bed::new().await;
    let mut any = Grant::new(&mild, Principal::new("ops")).unwrap();
    any.uses = None;
    bed.approvals.grant(any).await.unwrap();
    let call = ToolCall::new(harmful, "{}").with_caller(by("ada"));
    assert!(!runs(&bed, call).await);
}
