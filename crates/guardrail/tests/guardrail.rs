//! Both layers around a service that counts.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::{
    Annotations, AnyOf, ArgumentRule, BoxFuture, CallRecord, Caller, CheckArguments, Condition,
    Delivery, Effect, ErrorKind, FailedAttempt, Hints, Inferred, Principal, Profile, Refinements,
    SessionId, Tool, ToolCall, ToolError, ToolGlob, ToolOutput, Trust, When,
};
use callward_guardrail::{
    ArgumentGuard, ArgumentGuardLayer, Guardrails, ResultGuard, ResultGuardLayer, Rule, Screen,
};
use callward_testkit::{MockService, call, tool};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::{Layer, ServiceBuilder, ServiceExt};

type Guarded = ArgumentGuard<ResultGuard<MockService>>;

const TOKEN: &str = "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";

fn rule(written: Value) -> Rule {
    serde_json::from_value(written).unwrap()
}

fn guarded(rules: Vec<Rule>, screen: Option<Arc<dyn Screen>>, server: &MockService) -> Guarded {
    let guardrails = Guardrails::new(rules, screen).unwrap();
    ServiceBuilder::new()
        .layer(ArgumentGuardLayer::new(guardrails.clone()))
        .layer(ResultGuardLayer::new(guardrails))
        .service(server.clone())
}

fn one(written: Value, server: &MockService) -> Guarded {
    guarded(vec![rule(written)], None, server)
}

fn remove(arguments: Value) -> ToolCall {
    call(&tool("remove").destructive().build(), arguments)
}

fn of(call: ToolCall, principal: &str, session: Option<&str>) -> ToolCall {
    let mut caller = Caller::new(Principal::new(principal));
    if let Some(session) = session {
        caller = caller.with_session(SessionId::new(session));
    }
    call.with_caller(Arc::new(caller))
}

fn echo() -> MockService {
    MockService::new(|call, _| async move {
        let text = String::from_utf8(call.arguments().to_vec()).unwrap();
        Ok(ToolOutput::text(text))
    })
}

/// Arguments fit if they are this text.
#[derive(Debug)]
struct Exactly(&'static str);

impl CheckArguments for Exactly {
    fn check(&self, arguments: &[u8]) -> Result<(), String> {
        let fits = arguments == self.0.as_bytes();
        fits.then_some(()).ok_or_else(|| "other text".to_owned())
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_not_sent() {
    let mut checked = Tool::clone(&tool("remove").build());
    checked.argument_check = Some(Arc::new(Exactly(r#"{"id":"[redacted]"}"#)));
    let (checked, server) = (Arc::new(checked), MockService::counting());
    let redacts = rule(json!({"credentials": {"arguments": "redact"}}));
    for (layer, sent, arguments) in [
        (ArgumentGuardLayer::default(), false, json!({"id": TOKEN})),
        (
            ArgumentGuardLayer::default(),
            true,
            json!({"id": "[redacted]"}),
        ),
        // what is checked is what is sent
        (
            ArgumentGuardLayer::new(Guardrails::new(vec![redacts], None).unwrap()),
            true,
            json!({"id": TOKEN}),
        ),
    ] {
        let before = server.started();
        let service = layer.layer(server.clone());
        let one = ToolCall::new(checked.clone(), arguments.to_string());
        assert_eq!(layer.refusal(&one).is_none(), sent);
        let answer = service.oneshot(one).await.unwrap();
        assert_eq!(answer.is_error(), !sent);
        assert_eq!(answer.to_text().contains("schema: other text"), !sent);
        assert_eq!(server.started() - before, usize::from(sent));
    }
}

#[tokio::test]
async fn each_check_of_arguments_refuses_what_it_concerns_and_nothing_else() {
    use ErrorKind::{InvalidCall, Unauthorized};
    let denied = r#"{"deny": {"path": {"matches": "/etc/.*"}}}"#;
    let allowed = r#"{"allow": {"path": {"matches": "/tmp/.*"}}}"#;
    let dry = r#"{"dry_run_argument": "dry_run"}"#;
    let size = r#"{"max_bytes": {"arguments": 19}}"#;
    let refuse = r#"{"credentials": {"arguments": "refuse"}}"#;
    let token = format!(r#"{{"a": "{TOKEN}"}}"#);
    for (rule, arguments, expected) in [
        (denied, r#"{"path": "/tmp/a"}"#, None),
        (denied, "{}", None),
        (
            denied,
            r#"{"path": "/etc/a"}"#,
            Some((Unauthorized, "denied where")),
        ),
        (
            denied,
            r#"{"path": "/tmp/a", "Path": "/etc/a"}"#,
            Some((Unauthorized, "more than one")),
        ),
        (denied, "not JSON", Some((Unauthorized, "more than one"))),
        (allowed, r#"{"path": "/tmp/a"}"#, None),
        (allowed, "{}", Some((Unauthorized, "allowed only where"))),
        (
            allowed,
            r#"{"path": "/tmp/a", "path": "/tmp/b"}"#,
            Some((Unauthorized, "more than")),
        ),
        (dry, r#"{"id": 1, "dry_run": true}"#, None),
        (
            dry,
            r#"{"id": 1, "dry_run": "true"}"#,
            Some((InvalidCall, "`dry_run`: true first")),
        ),
        (
            dry,
            r#"{"id": 1, "dry_run": true, "Dry_Run": 0}"#,
            Some((InvalidCall, "first")),
        ),
        (
            dry,
            r#"{"id": 1, "id": 1}"#,
            Some((InvalidCall, "each member once")),
        ),
        (size, r#"{"a": "0123456789"}"#, None),
        (
            size,
            r#"{"a": "01234567890"}"#,
            Some((InvalidCall, "20 bytes, at most 19")),
        ),
        (refuse, r#"{"a": "ghp_no"}"#, None),
        (refuse, &token, Some((Unauthorized, "a GitHub token"))),
    ] {
        for (elsewhere, refuses) in [(json!(null), true), (json!(["*.other"]), false)] {
            let mut written: Value = serde_json::from_str(rule).unwrap();
            if elsewhere.is_array() {
                written["tool"] = elsewhere;
            }
            let server = MockService::counting();
            let tool = tool("remove").destructive().build();
            let sent = ToolCall::new(tool, arguments.to_owned());
            let rules = vec![serde_json::from_value(written.clone()).unwrap()];
            let guardrails = Guardrails::new(rules, None).unwrap();
            let record = Arc::new(CallRecord::new());
            let foretold = ArgumentGuardLayer::new(guardrails.clone())
                .refusal(&sent.clone().with_record(record.clone()));
            assert!(record.facts().decisions.is_empty(), "nothing happened yet");
            let answer = one(written, &server).oneshot(sent).await;
            let expected = expected.filter(|_| refuses);
            let why = answer.as_ref().err().map(|error| error.message.to_string());
            assert_eq!(foretold.map(|it| it.reason.into_owned()), why);
            assert_eq!(
                server.started(),
                usize::from(expected.is_none()),
                "{rule} {arguments}"
            );
            match (answer, expected) {
                (Ok(_), None) => {}
                (Err(error), Some((kind, part))) => {
                    assert_eq!((error.kind, error.delivery), (kind, Delivery::NotSent));
                    assert!(error.message.contains(part), "{error}");
                    assert!(!error.message.contains(TOKEN), "{error}");
                }
                (answer, expected) => panic!("{rule} {arguments}: {answer:?} {expected:?}"),
            }
        }
    }
}

#[tokio::test]
async fn arguments_in_doubt_are_concerned_by_the_effect_of_any_plan() {
    let lists = When::argument("action", Condition::equals("list")).unwrap();
    let reads = Annotations::default().with_read_only(true);
    let mut tabs = Tool::clone(&tool("tabs").destructive().build());
    let stated = Annotations::default().with_destructive(true);
    let rules = [ArgumentRule::new(lists, reads).unwrap()];
    let inferred = Inferred::default();
    let hints = Hints::new(&inferred, &stated, Trust::Standard);
    let own = tabs.plan().clone();
    tabs.refinements = Refinements::bind(&rules, &hints, &own, &Profile::standard());
    let tool = Arc::new(tabs);
    let mut rule = Rule::default();
    rule.effect = AnyOf::one(Effect::ReadOnly);
    rule.tool = AnyOf::one(ToolGlob::new("test.tabs").unwrap());
    rule.deny = Some(When::argument("x", Condition::equals(1)).unwrap());
    let service = guarded(vec![rule], None, &MockService::counting());
    for (arguments, passes) in [
        (r#"{"action": "close", "x": 1}"#, true),
        (r#"{"action": "list", "x": 1}"#, false),
        (r#"{"action": "close", "Action": "list", "x": 1}"#, false),
    ] {
        let sent = ToolCall::new(tool.clone(), arguments);
        assert_eq!(
            service.clone().oneshot(sent).await.is_ok(),
            passes,
            "{arguments}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_permits_equal_calls_of_its_principal_for_a_time() {
    let server = echo();
    let service = one(json!({"dry_run_argument": "dry_run"}), &server);
    let passes = async |principal: &str, arguments: Value| {
        let sent = of(remove(arguments), principal, None);
        service.clone().oneshot(sent).await.is_ok()
    };
    assert!(!passes("ada", json!({"id": 1})).await);
    assert!(passes("ada", json!({"dry_run": true, "id": 1})).await);
    assert!(!passes("ada", json!({"id": 2})).await);
    assert!(!passes("eve", json!({"id": 1})).await);
    assert!(passes("ada", json!({"id": 1, "dry_run": false})).await);
    tokio::time::advance(Duration::from_secs(600)).await;
    assert!(passes("ada", json!({"id": 1})).await);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!passes("ada", json!({"id": 1})).await);
    // with an argument that the tool does not have it would run
    for (properties, is_sent) in [(r#"{"id":{}}"#, true), (r#"{"dry_run":{}}"#, false)] {
        let schema = format!(r#"{{"type":"object","properties":{properties}}}"#);
        let mut tool = Arc::unwrap_or_clone(tool("remove").destructive().build());
        tool.definition.input_schema = Some(serde_json::from_str(&schema).unwrap());
        let sent = service
            .clone()
            .oneshot(call(&Arc::new(tool), json!({"id": 1})));
        assert_eq!(sent.await.is_ok(), is_sent, "{properties}");
    }

    let failed = Ok(ToolOutput::error_text("no"));
    let server = MockService::sequence(vec![failed]);
    let service = one(json!({"dry_run_argument": "dry_run"}), &server);
    let dry = remove(json!({"dry_run": true}));
    assert!(service.clone().oneshot(dry).await.unwrap().is_error());
    assert!(service.oneshot(remove(json!({}))).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn executions_are_limited_by_session_and_by_hour() {
    let not_sent = || {
        Err(ToolError::new(
            ErrorKind::ConnectFailed,
            Delivery::NotSent,
            "x",
        ))
    };
    let asks = ToolOutput::from_json(r#"{"resultType":"input_required"}"#).unwrap();
    let done = || Ok(ToolOutput::text("x"));
    // what was not sent does not count, and of several rounds the last does
    let mut answers = vec![not_sent(), Ok(asks), done(), done()];
    answers.extend((0..4).map(|_| done()));
    let server = MockService::sequence(answers);
    let limits = json!({"effect": ["destructive"], "max_calls": {"session": 2, "hour": 3}});
    let service = one(limits, &server);
    let run = async |session: Option<&str>, principal: &str| {
        let sent = of(remove(json!({})), principal, session);
        service.clone().oneshot(sent).await
    };
    assert_eq!(
        run(Some("1"), "ada").await.unwrap_err().kind,
        ErrorKind::ConnectFailed
    );
    for _ in 0..3 {
        run(Some("1"), "ada").await.unwrap();
    }
    let error = run(Some("1"), "ada").await.unwrap_err();
    assert_eq!(
        (error.kind, error.delivery),
        (ErrorKind::RateLimited, Delivery::NotSent)
    );
    assert!(
        error.message.contains("2 such calls of a session ran"),
        "{error}"
    );
    assert_eq!(error.retry_after, Some(Duration::from_secs(24 * 60 * 60)));
    tokio::time::advance(Duration::from_secs(60)).await;
    run(Some("2"), "ada").await.unwrap();
    let error = run(Some("2"), "ada").await.unwrap_err();
    assert!(error.message.contains("free in 3540 s"), "{error}");
    run(None, "eve").await.unwrap();
    tokio::time::advance(Duration::from_secs(3540)).await;
    run(Some("2"), "ada").await.unwrap();
    let other = call(&tool("set").idempotent().build(), json!({}));
    service.clone().oneshot(other).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn results_are_redacted_withheld_and_marked() {
    let answer = format!(r#"{{"content":[{{"type":"text","text":"a {TOKEN}"}}]}}"#);
    let asks =
        format!(r#"{{"resultType":"input_required","requestState":"{TOKEN}","m":"{TOKEN}"}}"#);
    let state = format!(r#""requestState":"{TOKEN}","m":"[redacted]""#);
    let marked = r#""_meta":{"io.callward/untrusted":true}"#;
    let redact = json!({"credentials": {"results": "redact"}});
    let refuse = json!({"credentials": {"results": "refuse"}});
    let most = json!({"max_bytes": {"results": 20}});
    for (rule, answer, open_world, expected, is_error) in [
        (&redact, &answer, false, r#""a [redacted]""#, false),
        (&redact, &answer, true, marked, false),
        (&redact, &asks, false, &state, false),
        (&refuse, &answer, true, marked, true),
        (
            &refuse,
            &answer,
            false,
            "has run, and its result is withheld",
            true,
        ),
        (
            &most,
            &answer,
            false,
            "it has 81 bytes, and guardrail 1 allows 20",
            true,
        ),
        (
            &json!({"max_calls": {"hour": 9}}),
            &answer,
            true,
            marked,
            false,
        ),
    ] {
        let output = ToolOutput::from_json(answer.clone()).unwrap();
        let server = MockService::sequence(vec![Ok(output)]);
        let tool = tool("get").hint(|hints| {
            hints.read_only_hint = Some(true);
            hints.open_world_hint = Some(open_world);
        });
        let output = one(rule.clone(), &server)
            .oneshot(call(&tool.build(), json!({})))
            .await;
        let output = output.unwrap();
        let body = str::from_utf8(output.body()).unwrap();
        assert!(body.contains(expected), "{rule}: {body}");
        assert_eq!(output.is_error(), is_error, "{rule}: {body}");
        let kept = body.matches(TOKEN).count();
        assert_eq!(
            kept,
            usize::from(answer == &asks || rule["max_calls"].is_object()),
            "{body}"
        );
    }
    let mut error = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, TOKEN);
    error.data = Some(format!("[\"{TOKEN}\"]").into());
    error.history = [FailedAttempt::new(&error, Duration::ZERO)].into();
    let server = MockService::sequence(vec![Err(error)]);
    let error = one(redact, &server)
        .oneshot(remove(json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.message, "[redacted]");
    assert_eq!(error.history[0].message, "[redacted]");
    assert_eq!(error.data.as_deref(), Some(&b"[\"[redacted]\"]"[..]));
}

/// Replaces arguments and results by what they name, and refuses others.
struct Service;

impl Screen for Service {
    fn arguments(&self, call: &ToolCall) -> BoxFuture<'static, Result<Option<Bytes>, ToolError>> {
        let asked: Value = serde_json::from_slice(call.arguments()).unwrap();
        Box::pin(async move {
            match asked["before"].as_str() {
                Some("refuse") => {
                    let text = "not these";
                    Err(ToolError::new(
                        ErrorKind::Unauthorized,
                        Delivery::NotSent,
                        text,
                    ))
                }
                Some(replaced) => Ok(Some(replaced.to_owned().into())),
                None => Ok(None),
            }
        })
    }

    fn result(
        &self,
        call: &ToolCall,
        _: &ToolOutput,
    ) -> BoxFuture<'static, Result<Option<ToolOutput>, String>> {
        let asked: Value = serde_json::from_slice(call.arguments()).unwrap();
        Box::pin(async move {
            match asked["after"].as_str() {
                Some("refuse") => Err("not this".to_owned()),
                after => Ok(after.map(ToolOutput::text)),
            }
        })
    }
}

#[tokio::test]
async fn the_service_may_replace_what_the_rules_then_check_again() {
    let rules = || {
        let all = json!({
            "webhook": true, "deny": {"x": 1},
            "credentials": {"arguments": "redact", "results": "redact"},
        });
        vec![rule(all)]
    };
    let server = echo();
    let service = guarded(rules(), Some(Arc::new(Service)), &server);
    let run = async |arguments: Value| {
        let answer = service.clone().oneshot(remove(arguments)).await;
        answer.map(|output| output.to_text())
    };
    assert_eq!(run(json!({})).await.unwrap(), "{}");
    assert_eq!(
        run(json!({"before": r#"{"y":2}"#})).await.unwrap(),
        r#"{"y":2}"#
    );
    let replaced = json!({"before": format!(r#"{{"y":"{TOKEN}"}}"#)});
    assert_eq!(run(replaced).await.unwrap(), r#"{"y":"[redacted]"}"#);
    assert_eq!(run(json!({"after": "z"})).await.unwrap(), "z");
    assert_eq!(run(json!({"after": TOKEN})).await.unwrap(), "[redacted]");
    let withheld = run(json!({"after": "refuse"})).await.unwrap();
    assert!(
        withheld.contains("has run, and its result is withheld: not this"),
        "{withheld}"
    );
    let ran = server.started();
    assert_eq!(
        run(json!({"before": "refuse"})).await.unwrap_err().message,
        "not these"
    );
    let denied = run(json!({"before": r#"{"x":1}"#})).await.unwrap_err();
    assert_eq!(denied.kind, ErrorKind::Unauthorized);
    assert_eq!(server.started(), ran);
    assert!(Guardrails::new(rules(), None).is_err());
}

#[test]
fn a_rule_that_checks_nothing_or_cannot_be_read_is_refused() {
    for (written, field) in [
        (json!({}), "tool"),
        (json!({"tool": ["*.*"], "webhook": false}), "tool"),
        (json!({"dry_run_argument": ""}), "dry_run_argument"),
        (json!({"max_calls": {"hour": 1001}}), "max_calls"),
    ] {
        assert_eq!(rule(written).validate().unwrap_err().field, field);
    }
    for written in [
        json!({"max_calls": {"hour": 0}}),
        json!({"max_bytes": {"results": -1}}),
        json!({"credentials": {"results": "hide"}}),
        json!({"tool": ["files"]}),
        json!({"deny": {}}),
        json!({"then": "deny"}),
    ] {
        assert!(
            serde_json::from_value::<Rule>(written.clone()).is_err(),
            "{written}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_more_calls_run_than_the_limits_allow(
        calls in prop::collection::vec((0..3_u8, 0..3_u8), 1..60),
        (session, hour) in (1..4_u32, 1..6_u32),
    ) {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_time().build().unwrap();
        let server = MockService::counting();
        let limits = json!({"max_calls": {"session": session, "hour": hour}});
        let service = one(limits, &server);
        let tasks: Vec<_> = calls.iter().map(|(who, which)| {
            let (who, which) = (who.to_string(), which.to_string());
            let sent = of(remove(json!({})), &who, Some(&which));
            runtime.spawn(service.clone().oneshot(sent))
        }).collect();
        let refused = runtime.block_on(async {
            let mut refused = 0;
            for task in tasks {
                refused += usize::from(task.await.unwrap().is_err());
            }
            refused
        });
        let count = |of: &dyn Fn(&(u8, u8)) -> bool| calls.iter().filter(|it| of(it)).count();
        let allowed: usize = (0..3).map(|who| {
            let of_session = |which| count(&|it| *it == (who, which)).min(session as usize);
            (0..3).map(of_session).sum::<usize>().min(hour as usize)
        }).sum();
        prop_assert_eq!(server.started(), allowed);
        prop_assert_eq!(refused, calls.len() - allowed);
    }
}
