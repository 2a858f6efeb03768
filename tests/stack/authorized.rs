//! Rules of a stack: what a denied caller gets, and from where.

use std::num::NonZeroU32;
use std::sync::Arc;

use callward::auth::Policy;
use callward::auth::rules::{Rule, Then};
use callward::core::trail::{Stage, Verdict};
use callward::limit::PrincipalLimitConfig;
use callward::{Caller, ErrorKind, Principal, Stack, StackBuilder, ToolError, ToolOutput};
use callward_testkit::MockService;
use serde_json::{Value, json};

use crate::bed::{alone, read};

/// Denies `s.get_order` to everyone but ada.
fn for_ada(name: &str) -> Policy {
    let rule = |written: Value| serde_json::from_value::<Rule>(written).unwrap();
    let rules = [
        rule(json!({"principal": ["ada"], "then": "allow"})),
        rule(json!({"name": name, "tool": ["s.get_order"], "then": "deny"})),
    ];
    Policy::new(rules.into(), Then::Allow)
}

fn caller(name: &str) -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new(name)))
}

async fn ask(stack: &Stack, tool: &str, who: &str) -> Result<ToolOutput, ToolError> {
    let call = stack.prepare(tool, r#"{"id": 1}"#)?;
    stack.run(call.with_caller(caller(who))).await
}

fn builder() -> StackBuilder {
    let mut cache = callward::cache::CacheConfig::default();
    // one caller's answer is every caller's
    cache.partition = callward::cache::Partition::Shared;
    Stack::builder().cache(cache).authorize(for_ada("orders"))
}

#[tokio::test(start_paused = true)]
async fn a_cached_answer_is_never_given_to_a_denied_caller() {
    let mock = MockService::counting();
    let tools = vec![read("get_order"), read("get_price")];
    let (stack, _server) = alone(builder(), tools, &mock).await;
    for _ in 0..2 {
        ask(&stack, "s.get_order", "ada").await.unwrap();
    }
    assert_eq!(mock.started(), 1, "the second answer is a cached one");
    let ada = ask(&stack, "s.get_order", "ada").await.unwrap();
    assert_eq!(
        ada.body(),
        ask(&stack, "s.get_order", "ada").await.unwrap().body()
    );
    for name in ["s.get_order", "s__get_order"] {
        let denied = ask(&stack, name, "bob").await.unwrap_err();
        assert_eq!(denied.kind, ErrorKind::UnknownTool);
        assert_eq!(&*denied.authorization.as_ref().unwrap().rule, "orders");
        // the same words as for an unknown name, whatever is similar
        let other = name.replace("order", "ordes");
        let unknown = ask(&stack, &other, "bob").await.unwrap_err();
        let seen = |error: &ToolError| (error.kind, error.delivery, error.rpc_code());
        assert_eq!(seen(&denied), seen(&unknown));
        assert_eq!(
            denied.to_string(),
            unknown.to_string().replace(&other, name)
        );
    }
    assert!(ask(&stack, "s.get_price", "bob").await.is_ok());
    assert_eq!(mock.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_denied_or_unknown_counts_as_a_call_and_is_refused_alike() {
    let mut limits = PrincipalLimitConfig::default();
    limits.calls_per_minute = NonZeroU32::new(2);
    let builder = builder().principal_limits(limits);
    let mock = MockService::counting();
    let (stack, _server) = alone(builder, vec![read("get_order")], &mock).await;
    let bob = caller("bob");
    let hidden = stack.prepare_as("s.get_order", "{}", bob.clone());
    let hidden = hidden.unwrap_err();
    let denied = ask(&stack, "s.get_order", "bob").await.unwrap_err();
    assert_eq!(hidden.to_string(), denied.to_string());
    assert_eq!(hidden.authorization, denied.authorization);
    stack.admit_unknown(&bob).unwrap();
    let limited = ask(&stack, "s.get_order", "bob").await.unwrap_err();
    let same = stack.admit_unknown(&bob).unwrap_err();
    assert_eq!(limited.kind, ErrorKind::RateLimited);
    assert_eq!(limited.to_string(), same.to_string());
    let ada = stack.prepare_as("s.get_order", "{}", caller("ada"));
    assert!(stack.run(ada.unwrap()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_explanation_says_what_the_rules_decide() {
    let mock = MockService::counting();
    let (stack, _server) = alone(builder(), vec![read("get_order")], &mock).await;
    for (who, verdict, why) in [
        ("ada", Verdict::Pass, "by rule `1`"),
        ("bob", Verdict::Refused, "by rule `orders`"),
    ] {
        let call = stack.prepare("s.get_order", "{}").unwrap();
        let call = call.with_caller(caller(who));
        for trail in [
            stack.explain_prepared(&call).unwrap().trail(),
            stack
                .explain_as("s.get_order", &caller(who))
                .unwrap()
                .trail(),
        ] {
            assert_eq!(trail.first(Stage::Authorize).unwrap().verdict, verdict);
        }
        let trail = stack.explain_prepared(&call).unwrap().trail();
        let decision = trail.first(Stage::Authorize).unwrap();
        assert!(decision.reason.starts_with(why), "{decision:?}");
    }
    assert_eq!(mock.started(), 0);
}
