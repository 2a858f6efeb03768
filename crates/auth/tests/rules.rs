//! What rules decide, and what they list, against an oracle.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;

use callward_auth::rules::{AnyOf, Policy, Rule, Then, ToolGlob, Verdict};
use callward_auth::{AuthorizeLayer, unknown_tool};
use callward_core::refine::Applied;
use callward_core::{
    Annotations, Caller, Condition, Credential, Delivery, Effect, ErrorKind, Method, Principal,
    SecurityLevel, Tool, ToolCall, When,
};
use callward_testkit::{MockService, call, tool};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::{ServiceBuilder, ServiceExt};

fn rule(written: Value) -> Rule {
    serde_json::from_value(written).unwrap()
}

fn policy(rules: impl IntoIterator<Item = Value>) -> Policy {
    Policy::new(rules.into_iter().map(rule).collect(), Then::Allow)
}

fn caller(principal: &str, roles: &[&str], scopes: Option<&[&str]>) -> Caller {
    let mut credential = Credential::default();
    credential.name = Some("ci".to_owned());
    credential.roles = roles.iter().map(ToString::to_string).collect();
    credential.scopes = scopes.map(|scopes| scopes.iter().map(ToString::to_string).collect());
    Caller::new(Principal::new(principal)).with_credential(credential)
}

fn verdict(policy: &Policy, caller: &Caller, tool: &Arc<Tool>, arguments: &str) -> Verdict {
    let call = ToolCall::new(tool.clone(), arguments.to_owned());
    let arguments = call.arguments();
    policy
        .decide(caller, tool, call.applied(), arguments)
        .verdict
}

#[test]
fn role_access_leaves_tools_to_their_roles_and_others_alone() {
    let [report, other] = ["billing", "files"].map(|set| tool("x").set(set).read_only().build());
    for (roles, role, expected) in [
        (vec!["a", "b"], "b", Verdict::Allow),
        (vec!["a"], "b", Verdict::Deny),
        (vec![], "b", Verdict::Deny),
    ] {
        let any = roles.iter().map(ToString::to_string);
        let any = any.fold(AnyOf::default(), AnyOf::or);
        let rules = Rule::role_access(&ToolGlob::new("billing.*").unwrap(), any);
        let policy = Policy::new(rules.into(), Then::Allow);
        let caller = caller("ada", &[role], None);
        assert_eq!(
            verdict(&policy, &caller, &report, "{}"),
            expected,
            "{roles:?}"
        );
        let is_listed = expected == Verdict::Allow;
        assert_eq!(policy.lists(&caller, &report), is_listed, "{roles:?}");
        assert_eq!(verdict(&policy, &caller, &other, "{}"), Verdict::Allow);
    }
}

#[test]
fn each_part_of_a_rule_concerns_the_calls_of_its_row() {
    let hints = |hints: &mut Annotations| {
        hints.tags = Some(vec!["db".into()]);
        hints.security_level = Some(SecurityLevel::Internal);
    };
    let tool = tool("read_file")
        .set("files")
        .read_only()
        .hint(hints)
        .build();
    let ada = caller("https://idp#ada", &["dev"], Some(&["tools:read", "x"]));
    for (matching, other) in [
        (
            json!({"principal": ["bob", "*#ada"]}),
            json!({"principal": ["ada"]}),
        ),
        (json!({"principal": ["c?"]}), json!({"principal": ["c"]})),
        (
            json!({"role": ["admin", "dev"]}),
            json!({"role": ["admin"]}),
        ),
        (json!({"scope": ["x"]}), json!({"scope": ["y"]})),
        (
            json!({"issuer": ["https://idp"]}),
            json!({"issuer": ["https://id"]}),
        ),
        (json!({"tool": ["files.*"]}), json!({"tool": ["file.*"]})),
        (
            json!({"effect": ["read_only"]}),
            json!({"effect": ["destructive", "mutating"]}),
        ),
        (json!({"safety": ["safe"]}), json!({"safety": ["moderate"]})),
        (
            json!({"security": ["internal"]}),
            json!({"security": ["public"]}),
        ),
        (json!({"tag": ["a", "db"]}), json!({"tag": ["a"]})),
        (json!({"when": {"id": 1}}), json!({"when": {"id": 2}})),
    ] {
        for (mut part, want) in [(matching, Verdict::Deny), (other, Verdict::Allow)] {
            part["then"] = "deny".into();
            let said = verdict(&policy([part.clone()]), &ada, &tool, r#"{"id": 1}"#);
            assert_eq!(said, want, "{part}");
        }
    }
    // a credential that is not limited states no scope, and a principal may have no issuer
    let local = caller("ada", &[], None);
    for part in [
        json!({"scope": ["x"], "then": "deny"}),
        json!({"issuer": ["*"], "then": "deny"}),
    ] {
        assert_eq!(
            verdict(&policy([part]), &local, &tool, "{}"),
            Verdict::Allow
        );
    }
    for (written, why) in [
        (json!({"role": [], "then": "allow"}), "at least one element"),
        (json!({"tool": ["files"], "then": "allow"}), "SET.TOOL"),
        (
            json!({"when": {}, "then": "allow"}),
            "at least one condition",
        ),
        (
            json!({"roles": ["a"], "then": "allow"}),
            "unknown field `roles`",
        ),
        (json!({"role": ["a"]}), "missing field `then`"),
    ] {
        let fault = serde_json::from_value::<Rule>(written)
            .unwrap_err()
            .to_string();
        assert!(fault.contains(why), "{fault}");
    }
}

#[test]
fn doubtful_arguments_get_the_strictest_that_may_hold() {
    let tool = tool("send").build();
    let ada = caller("ada", &[], None);
    let guarded = policy([
        json!({"when": {"to": "me"}, "then": "allow"}),
        json!({"when": {"to": "all"}, "then": "ask"}),
        json!({"when": {"force": true}, "then": "deny"}),
    ]);
    for (arguments, want) in [
        (r#"{"to": "me", "force": true}"#, Verdict::Allow),
        (r#"{"to": "all"}"#, Verdict::Ask),
        (r#"{"to": "all", "to": "me"}"#, Verdict::Ask),
        (r#"{"to": "me", "To": "me", "force": true}"#, Verdict::Deny),
        ("[]", Verdict::Deny),
        ("", Verdict::Allow),
    ] {
        assert_eq!(
            verdict(&guarded, &ada, &tool, arguments),
            want,
            "{arguments}"
        );
    }
}

#[test]
fn a_restricted_tool_needs_a_rule_that_names_a_role() {
    let restricted = |hints: &mut Annotations| {
        hints.security_level = Some(SecurityLevel::Restricted);
    };
    let tool = tool("pay").hint(restricted).build();
    let (admin, other) = (caller("a", &["admin"], None), caller("b", &[], None));
    let all = json!({"then": "allow"});
    for (rules, may) in [
        (vec![all.clone()], false),
        (vec![json!({"then": "allow", "role": ["admin"]})], true),
        (vec![all, json!({"then": "allow", "role": ["admin"]})], true),
        (
            vec![
                json!({"then": "deny"}),
                json!({"then": "allow", "role": ["admin"]}),
            ],
            false,
        ),
    ] {
        let policy = policy(rules.clone());
        let said = verdict(&policy, &admin, &tool, "{}");
        assert_eq!(said == Verdict::Allow, may, "{rules:?}");
        assert_eq!(policy.lists(&admin, &tool), may, "{rules:?}");
        assert_eq!(verdict(&policy, &other, &tool, "{}"), Verdict::Deny);
    }
    // without any rule nothing changes
    assert_eq!(
        verdict(&Policy::default(), &other, &tool, "{}"),
        Verdict::Allow
    );
}

#[test]
fn a_request_about_a_task_is_decided_as_some_call_of_its_tool() {
    let when = json!({"path": "a"});
    for (rules, expected) in [
        (vec![json!({"when": when, "then": "allow"})], Verdict::Allow),
        (vec![json!({"when": when, "then": "deny"})], Verdict::Deny),
        (
            vec![json!({"effect": ["destructive"], "then": "allow"})],
            Verdict::Allow,
        ),
        (
            vec![json!({"effect": ["read_only"], "then": "allow"})],
            Verdict::Deny,
        ),
    ] {
        let policy = policy(rules.into_iter().chain([json!({"then": "deny"})]));
        for method in [Method::GetTask, Method::UpdateTask, Method::CancelTask] {
            let tool = Arc::new(tool("wipe").destructive().build().of_task(method));
            let said = verdict(&policy, &caller("a", &[], None), &tool, r#"{"taskId":"1"}"#);
            assert_eq!(said, expected, "{method}");
        }
    }
}

#[test]
fn scopes_follow_from_the_effect_and_hide_nothing() {
    let tools = [
        (tool("a").read_only().build(), "tools:read"),
        (tool("b").idempotent().build(), "tools:write"),
        (tool("c").build(), "tools:write"),
        (tool("d").destructive().build(), "tools:destroy"),
    ];
    for (tool, needed) in tools {
        for policy in [Policy::default(), policy([json!({"then": "allow"})])] {
            let lacks = caller("a", &[], Some(&["tools:other"]));
            let said = verdict(&policy, &lacks, &tool, "{}");
            let Verdict::NeedsScope(scopes) = said else {
                panic!("{said:?}")
            };
            assert_eq!(scopes, [needed]);
            assert!(policy.lists(&lacks, &tool));
            let has = caller("a", &[], Some(&[needed]));
            assert_eq!(verdict(&policy, &has, &tool, "{}"), Verdict::Allow);
        }
        let denied = policy([json!({"then": "deny"})]);
        let lacks = caller("a", &[], Some(&[]));
        assert_eq!(verdict(&denied, &lacks, &tool, "{}"), Verdict::Deny);
    }
}

#[tokio::test]
async fn the_layer_refuses_before_anything_is_sent() {
    let tool = tool("wipe").destructive().build();
    let limited = caller("ada", &["ops"], Some(&["tools:read"]));
    for (then, role, kind, rule) in [
        ("deny", "ops", Some(ErrorKind::UnknownTool), "no wiping"),
        ("ask", "dev", Some(ErrorKind::InsufficientScope), "scopes"),
    ] {
        let written = json!({"name": "no wiping", "role": [role], "then": then});
        let server = MockService::counting();
        let layer = AuthorizeLayer::new(Arc::new(policy([written])));
        let service = ServiceBuilder::new().layer(layer).service(server.clone());
        let mut asked = call(&tool, json!({})).with_caller(Arc::new(limited.clone()));
        asked.context_mut().asked_as = Some("test__wipe".into());
        let error = service.oneshot(asked).await.unwrap_err();
        assert_eq!(
            (Some(error.kind), error.delivery),
            (kind, Delivery::NotSent)
        );
        assert_eq!(&*error.authorization.as_ref().unwrap().rule, rule);
        assert_eq!(server.started(), 0);
        if then == "ask" {
            // what the credential has is asked for again, or a client would lose it
            assert_eq!(error.scopes, ["tools:read", "tools:destroy"]);
        }
        if then == "deny" {
            // byte for byte that of an unknown name
            let unknown = unknown_tool("test__wipe");
            assert_eq!(error.to_string(), unknown.to_string());
            assert_eq!(error.rpc_code(), unknown.rpc_code());
        }
    }
    // of a tool that is listed
    let rule = json!({"when": {"a": 1}, "then": "deny"});
    let service = ServiceBuilder::new()
        .layer(AuthorizeLayer::new(Arc::new(policy([rule]))))
        .service(MockService::counting());
    let error = service.oneshot(call(&tool, json!({"a": 1}))).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthorized);
    assert!(error.message.contains("with these arguments"), "{error}");
    let asks = AuthorizeLayer::new(Arc::new(policy([json!({"then": "ask"})])));
    let service = ServiceBuilder::new()
        .layer(asks)
        .service(MockService::counting());
    let error = service.oneshot(call(&tool, json!({}))).await.unwrap_err();
    assert!(
        error.message.contains("approvals are not configured"),
        "{error}"
    );
}

/// A rule whose condition, if it has one, is over an argument of its own.
#[derive(Debug, Clone)]
struct Row {
    roles: Vec<usize>,
    tools: Vec<usize>,
    effects: Vec<Effect>,
    is_conditional: bool,
    then: Then,
}

const ROLES: [&str; 3] = ["a", "b", "c"];
const TOOLS: [&str; 3] = ["s.x", "s.y", "t.z"];

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let some = || proptest::sample::subsequence(vec![0_usize, 1, 2], 0..=2);
    let effects = proptest::sample::subsequence(Effect::ALL.to_vec(), 0..=2);
    let then = proptest::sample::select(Then::ALL);
    let row = (some(), some(), effects, any::<bool>(), then).prop_map(
        |(roles, tools, effects, is_conditional, then)| Row {
            roles,
            tools,
            effects,
            is_conditional,
            then,
        },
    );
    proptest::collection::vec(row, 1..6)
}

fn any_of<T>(elements: impl IntoIterator<Item = T>) -> AnyOf<T> {
    elements.into_iter().fold(AnyOf::default(), AnyOf::or)
}

fn built((index, row): (usize, &Row)) -> Rule {
    let mut rule = Rule::new(row.then);
    rule.role = any_of(row.roles.iter().map(|role| ROLES[*role].to_owned()));
    let globs = row
        .tools
        .iter()
        .map(|tool| TOOLS[*tool].to_owned().try_into().unwrap());
    rule.tool = any_of(globs);
    rule.effect = any_of(row.effects.iter().copied());
    rule.when = row
        .is_conditional
        .then(|| When::argument(&format!("r{index}"), Condition::equals(true)).unwrap());
    rule
}

proptest! {
    #[test]
    fn a_tool_is_listed_iff_some_call_is_not_denied(
        rows in rows(),
        default in proptest::sample::select(Then::ALL),
        effect in 0..4_usize,
        place in 0..3_usize,
        role in 0..3_usize,
        has_plans in any::<bool>(),
    ) {
        let policy = Policy::new(rows.iter().enumerate().map(built).collect(), default);
        let (set, name) = TOOLS[place].split_once('.').unwrap();
        let own = tool(name).set(set);
        let own = match effect {
            0 => own.read_only(),
            1 => own.idempotent(),
            2 => own,
            _ => own.destructive(),
        };
        let mut tool = own.build();
        if has_plans {
            refine(&mut tool);
        }
        let ada = caller("ada", &[ROLES[role]], None);
        let (mut some, mut asks) = (false, false);
        // every choice of which conditions hold, and of the argument that selects the plan
        for holding in 0..1_u32 << (rows.len() + 1) {
            let mut arguments = json!({"read": holding >> rows.len() == 1});
            for index in 0..rows.len() {
                arguments[format!("r{index}")] = (holding >> index & 1 == 1).into();
            }
            let call = call(&tool, arguments);
            let effect = call.plan().effect;
            let matches = |(index, row): (usize, &Row)| {
                (row.roles.is_empty() || row.roles.contains(&role))
                    && (row.tools.is_empty() || row.tools.contains(&place))
                    && (row.effects.is_empty() || row.effects.contains(&effect))
                    && (!row.is_conditional || holding >> index & 1 == 1)
            };
            let first = (0..rows.len()).find(|index| matches((*index, &rows[*index])));
            let want = first.map_or(default, |index| rows[index].then);
            let want = match want {
                Then::Allow => Verdict::Allow,
                Then::Ask => Verdict::Ask,
                Then::Deny => Verdict::Deny,
            };
            let said = policy.decide(&ada, &tool, call.applied(), call.arguments());
            prop_assert_eq!(said.verdict, want);
            let by = first.map_or_else(|| "default".to_owned(), |index| (index + 1).to_string());
            if !policy.is_open() {
                prop_assert_eq!(&*said.by.rule, by);
            }
            some |= want != Verdict::Deny;
            asks |= want == Verdict::Ask;
        }
        prop_assert!(!asks || policy.may_ask(&tool));
        prop_assert_eq!(policy.lists(&ada, &tool), some);
    }
}

/// Gives calls with `read = true` the plan of a read.
fn refine(tool: &mut Arc<Tool>) {
    use callward_core::infer::Inferred;
    use callward_core::{ArgumentRule, Hints, Profile, Refinements, Trust};
    let when = When::argument("read", Condition::equals(true)).unwrap();
    let reads = ArgumentRule::new(when, Annotations::default().with_read_only(true)).unwrap();
    let own = tool.plan().clone();
    let tool = Arc::make_mut(tool);
    let declared = tool.resolved.annotations.clone();
    let inferred = Inferred::default();
    let hints = Hints::new(&inferred, &declared, Trust::Standard);
    tool.refinements = Refinements::bind(&[reads], &hints, &own, &Profile::standard());
    assert_eq!(tool.plan_applied(Applied::Rule(0)).effect, Effect::ReadOnly);
}
