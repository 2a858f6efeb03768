//! Which plan a call gets, as rules over its arguments decide it.

use std::sync::Arc;

use callward_core::infer::{Inferred, RuleSet, Subject};
use callward_core::refine::{Applied, ArgumentRule, Condition, Doubt, Refinements, When};
use callward_core::resolve::{Hints, Trust, resolve};
use callward_core::{
    Annotations, CallPlan, ConfirmRule, Effect, Field, Profile, ReplicaSetId, Tool, ToolCall,
    ToolDefinition,
};
use serde_json::json;

use crate::stated;

const DESTROYS: &str = "destructive=true";

fn rule(key: &str, condition: Condition, hints: &str) -> ArgumentRule {
    ArgumentRule::new(When::argument(key, condition).unwrap(), stated(hints)).unwrap()
}

fn reads(key: &str, condition: Condition) -> ArgumentRule {
    rule(key, condition, "readOnly=true")
}

/// A tool of which the operator says `own`.
fn tool(own: &str, rules: &[ArgumentRule]) -> Arc<Tool> {
    let definition = ToolDefinition::from_json(r#"{"name":"tabs"}"#).unwrap();
    let (inferred, declared, own) = (Inferred::default(), Annotations::default(), stated(own));
    let said = Hints {
        operator: Some(&own),
        ..Hints::new(&inferred, &declared, Trust::Standard)
    };
    let profile = Profile::standard();
    let resolved = resolve(&said);
    let plan = CallPlan::derive(&resolved, &profile);
    let bound = Refinements::bind(rules, &said, &plan, &profile);
    let set = ReplicaSetId::new("web").unwrap();
    let mut tool = Tool::new(set, definition, resolved, plan);
    tool.refinements = bound;
    Arc::new(tool)
}

fn call(tool: &Arc<Tool>, arguments: &str) -> ToolCall {
    ToolCall::new(tool.clone(), arguments.to_owned())
}

/// Checks calls of a tool, one a line: the arguments, which plan applies, and its effect.
fn check(tool: &Arc<Tool>, rows: &str) {
    for (arguments, want) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let call = call(tool, arguments);
        let applied = match call.applied() {
            Applied::Rule(index) => format!("rule {index}"),
            Applied::Tool => "tool".to_owned(),
            Applied::Strictest(Doubt::Argument { path }) => format!("doubted argument {path}"),
            Applied::Strictest(Doubt::Condition { rule }) => format!("doubted rule {rule}"),
            other => format!("{other:?}"),
        };
        let effect = call.plan().effect;
        assert_eq!(format!("{applied} {effect}"), want, "{arguments}");
    }
}

#[test]
fn the_first_rule_that_matches_wins_and_else_the_tool_stands() {
    let both = When::argument("action", Condition::equals("close"))
        .and_then(|when| when.and("/target/kind", Condition::equals("draft")))
        .unwrap();
    let saves = Condition::matches("l.*|save").unwrap();
    let rules = [
        reads("action", Condition::equals("list")),
        ArgumentRule::new(both, stated("destructive=false")).unwrap(),
        rule("action", saves, "destructive=false idempotent=true"),
    ];
    let rows = r#"
{"action":"list"} => rule 0 read_only
{"action":"close","target":{"kind":"draft"}} => rule 1 mutating
{"action":"close","target":{"kind":"page"}} => tool destructive
{"action":"close"} => tool destructive
{"action":"save"} => rule 2 idempotent
{"action":"lock"} => rule 2 idempotent
{"action":["list"]} => doubted rule 2 destructive
{"action":["go"]} => tool destructive
{} => tool destructive
 => tool destructive"#;
    check(&tool(DESTROYS, &rules), rows);

    // a doubt matters only if no rule before it matches, and only where a rule looks
    let gone = reads("force", Condition::absent());
    let rows = r#"
{"action":"list","force":null} => rule 0 read_only
{"action":"go","force":null} => doubted rule 1 destructive
{"action":"go"} => rule 1 read_only"#;
    check(&tool(DESTROYS, &[rules[0].clone(), gone]), rows);
    let deep = tool(DESTROYS, &[reads("/a/b", Condition::equals(1))]);
    let rows = r#"
{"a":{"b":1},"x":1,"x":2} => rule 0 read_only
{"a":{"b":1,"c":{"d":1,"d":1}}} => rule 0 read_only
{"a":{"b":1},"a":{}} => doubted argument 0 destructive
{"a":{"b":1,"B":1}} => doubted argument 0 destructive
{"a":"{\"b\":1}"} => doubted argument 0 destructive"#;
    check(&deep, rows);
    let text = deep.refinements.describe(Doubt::Argument { path: 0 });
    assert!(text.contains("`/a/b`"), "{text}");

    // a pointer goes through objects and arrays
    let nested = reads("/a~1b/1/~0", Condition::equals(json!({"x": [null]})));
    let empty = reads("/", Condition::equals("empty name"));
    let rows = r#"
{"a/b":[0,{"~":{"x":[null]}}]} => rule 0 read_only
{"a/b":[{"~":{"x":[null]}}]} => tool destructive
{"a/b":{"1":{"~":{"x":[null]}}}} => rule 0 read_only
{"a/b":{"01":{"~":{"x":[null]}}}} => tool destructive
{"a/b":7} => tool destructive
{"":"empty name"} => rule 1 read_only"#;
    check(&tool(DESTROYS, &[nested, empty]), rows);

    // a tool without rules never looks at the arguments
    let rows = r#"
 => tool read_only
not json => tool read_only
{"a":1,"a":2} => tool read_only"#;
    check(&tool("readOnly=true", &[]), rows);
}

#[test]
fn what_can_be_read_in_two_ways_gets_the_strictest_plan() {
    let relaxed = tool(DESTROYS, &[reads("action", Condition::equals("list"))]);
    let deletes = rule("action", Condition::equals("delete"), DESTROYS);
    let tightened = tool("readOnly=true", &[deletes]);
    let bom = "\u{feff}{\"action\":\"list\"}";
    let rows = r#"{"action":"list","action":"delete"}
{"action":"delete","action":"list"}
{"action":"list","Action":"delete"}
{"act\u0069on":"list","action":"list"}
{"ACTION":"delete"}
{"action":"list","action\u0000x":"delete"}
{"acti\u00f6n":1,"action":"list"
[]
"list"
null
not json
{"action":"list"} x
{"action":"\ud800"}"#;
    for arguments in rows.lines().chain([bom]) {
        for tool in [&relaxed, &tightened] {
            let call = call(tool, arguments);
            let is_strictest = matches!(call.applied(), Applied::Strictest(_));
            assert!(is_strictest, "{arguments}: {:?}", call.applied());
            assert_eq!(call.plan().effect, Effect::Destructive, "{arguments}");
            assert_eq!(call.plan().confirm, ConfirmRule::Ask);
            assert!(call.plan().reason.contains("more than one way"));
        }
    }
    let broken = ToolCall::new(relaxed, b"{\"action\":\"list\",\"x\":\"\xff\"}".to_vec());
    assert_eq!(broken.applied(), Applied::Strictest(Doubt::NotJson));
}

#[test]
fn hints_are_those_that_the_plan_was_derived_from() {
    let deletes = rule("action", Condition::equals("delete"), DESTROYS);
    let adds = rule("action", Condition::equals("add"), "readOnly=false");
    let destroys = |tool: &Arc<Tool>, arguments: &str| {
        let resolved = tool.resolved_applied(call(tool, arguments).applied());
        resolved.annotations.destructive_hint == Some(true)
    };
    let both = r#"{"action":"list","action":"delete"}"#;
    let reader = tool("readOnly=true", &[adds.clone(), deletes]);
    assert!(destroys(&reader, r#"{"action":"delete"}"#));
    assert!(!destroys(&reader, r#"{"action":"list"}"#));
    assert!(destroys(&reader, both), "one of its plans destroys");

    let adds_or_destroys = tool(DESTROYS, &[adds]);
    assert!(destroys(&adds_or_destroys, both), "its own plan destroys");
    let foreign = adds_or_destroys.resolved_applied(Applied::Rule(7));
    assert_eq!(foreign, &*adds_or_destroys.resolved);
}

#[test]
fn it_can_be_said_why_a_rule_does_not_match() {
    let when = When::argument("a", Condition::equals(1))
        .and_then(|when| when.and("b", Condition::equals(2)))
        .unwrap();
    let reads = ArgumentRule::new(when, stated("readOnly=true")).unwrap();
    let tool = tool(DESTROYS, &[reads]);
    for (arguments, want) in [
        (r#"{"a":1,"b":2}"#, None),
        (r#"{"a":1,"b":3}"#, Some("b = 2 true")),
        (r#"{"a":1,"a":1,"b":2}"#, Some("a = 1 false")),
        ("[]", Some("a = 1 false")),
        // what certainly does not hold comes before what is in doubt
        (r#"{"a":1,"a":1,"b":3}"#, Some("b = 2 true")),
    ] {
        let unmet = tool.refinements.unmet(0, arguments.as_bytes());
        let said = unmet.map(|one| format!("{} {} {}", one.path, one.condition, one.is_certain));
        assert_eq!(said.as_deref(), want, "{arguments}");
    }
}

#[test]
fn a_rule_is_the_operators_word_and_wins_over_every_other_source() {
    let inferred = RuleSet::Standard.infer(&Subject::new("delete_user"));
    let declared = stated("destructive=true idempotent=false tags=theirs");
    let own = stated("tags=ours requiresConfirmation=false");
    let profile = Profile::standard();
    let is_dry = Condition::equals(true);
    let rules = [rule("dry_run", is_dry, "readOnly=true tags=dry")];
    for trust in Trust::ALL {
        for operator in [own.clone(), own.clone().with_destructive(true)] {
            let said = Hints {
                operator: Some(&operator),
                ..Hints::new(&inferred, &declared, *trust)
            };
            let plan = CallPlan::derive(&resolve(&said), &profile);
            assert_eq!(plan.effect, Effect::Destructive);
            let bound = Refinements::bind(&rules, &said, &plan, &profile);
            let [refined] = bound.rules() else {
                panic!("{bound:?}");
            };
            assert_eq!(refined.plan.effect, Effect::ReadOnly, "{trust:?}");
            assert!(refined.plan.reason.contains("rule 1 of this tool"));
            let resolved = &refined.resolved;
            assert_eq!(resolved.warnings, [""; 0], "{trust:?}");
            let why = |field| &*resolved.provenance_of(field).unwrap().reason;
            assert_eq!(why(Field::ReadOnly), "rule 1 of this tool: dry_run = true");
            // what the rule does not say keeps its own reason
            assert_eq!(why(Field::RequiresConfirmation), "set for this tool");
            let tags = resolved.annotations.tags.as_deref();
            assert_eq!(tags.unwrap(), ["theirs", "ours", "dry"]);
        }
    }
}
