//! The built-in tools of `[listing]`: one that finds tools, and one that calls them.
//!
//! A request for `call_tool` becomes that of its target before a layer sees it, so that the plan,
//! rules, limits and records of the target hold. Every caller may ask for both: what it finds and
//! calls is decided for each tool.

use callward::auth::rules::Rule;
use callward::core::Method;
use callward::registry::{Entry, Query};
use callward::{Stack, Tool, ToolError};
use callward_mcp::server::CallRequest;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Answer, Builtins, Context, SERVER, is_builtin, refusal};
use crate::config::ListingMode;
use crate::error::AppError;
use crate::runtime::Runtime;
use crate::view;

const FIND: &str = "find_tool";
const CALL: &str = "call_tool";

/// How many tools an answer has at most, and by default.
const MAX_FOUND: usize = 20;
const FOUND: usize = 10;

/// What an answer has of a tool's definition.
const SHOWN: [&str; 5] = ["name", "title", "description", "inputSchema", "annotations"];

/// Adds the tools to their server.
pub(super) fn add(builtins: Builtins) -> Result<Builtins, AppError> {
    builtins.add(FIND, find)?.add(CALL, call)
}

/// Returns `true` if the tool is one of these two.
pub(crate) fn is_finder(tool: &Tool) -> bool {
    is_builtin(tool) && is_finder_name(tool.name().as_str())
}

/// Returns `true` if clients see one of these two by this name.
pub(crate) fn is_finder_name(name: &str) -> bool {
    [FIND, CALL].contains(&name)
}

/// Puts a rule before others that allows every caller to use these two. The names of the others
/// stay as they are.
///
/// # Errors
///
/// [`AppError`] if the rule is invalid, which a test would show.
pub(crate) fn allowed_first(rules: &[Rule]) -> Result<Vec<Rule>, AppError> {
    let tools = [FIND, CALL].map(|name| format!("{SERVER}.{name}"));
    let rule = json!({"name": "listing", "tool": tools, "then": "allow"});
    let rule = serde_json::from_value(rule);
    let rule = rule.map_err(|error| AppError::Usage(format!("the rule `listing`: {error}")))?;
    let named = (1..).zip(rules).map(|(number, rule)| {
        let mut rule = rule.clone();
        rule.name.get_or_insert_with(|| number.to_string());
        rule
    });
    Ok([rule].into_iter().chain(named).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    query: Option<String>,
    server: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    plans: bool,
}

async fn find(context: Context, asked: Find) -> Answer {
    let limit = asked.limit.unwrap_or(FOUND);
    if !(1..=MAX_FOUND).contains(&limit) {
        return Err(format!("`limit` is {limit}: expected 1 to {MAX_FOUND}"));
    }
    let mut query = Query::default();
    query.text = asked.query.filter(|text| !text.trim().is_empty());
    query.servers.extend(asked.server);
    query.limit = Some(limit);
    query.offset = asked.offset;
    // the first search after a change reads all tools that changed
    let found = tokio::task::spawn_blocking(move || {
        let (runtime, caller) = (&context.runtime, context.call.caller());
        let catalogue = runtime.stack.catalogue();
        let toolsets = runtime.toolsets.as_ref();
        let active = toolsets.and_then(|toolsets| toolsets.active(&catalogue, caller));
        let listed = |entry: &Entry| match &active {
            Some(active) => active.listed(entry).cloned(),
            None => Some(entry.listed().clone()),
        };
        let shows = |entry: &Entry| context.may_know(entry) && listed(entry).is_some();
        let found = catalogue.search(&query, shows, |_| true);
        let described = found.tools.iter().map(|entry| {
            let listed = listed(entry).unwrap_or_default();
            // one that nests too deeply to be read has a name at least
            let mut tool: Map<_, _> = serde_json::from_slice(&listed).unwrap_or_default();
            tool.retain(|member, _| SHOWN.contains(&member.as_str()));
            tool.insert("name".to_owned(), entry.client_name().into());
            tool.insert("server".to_owned(), entry.tool().set().as_str().into());
            if asked.plans {
                let tool_of = entry.tool();
                let plan = view::plan(tool_of, tool_of.plan(), &tool_of.resolved);
                tool.insert("plan".to_owned(), plan);
            }
            Value::Object(tool)
        });
        let described: Vec<_> = described.collect();
        let next = query.offset.saturating_add(described.len());
        let next = (!described.is_empty() && next < found.total).then_some(next);
        view::with_values(json!({
            "tools": described, "total": found.total, "nextOffset": next,
        }))
    });
    found.await.map_err(|error| error.to_string())
}

/// Answers those calls that did not come from an MCP client.
async fn call(_: Context, _: Value) -> Answer {
    Err("only MCP clients use `call_tool`: call the tool itself".to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    name: String,
    arguments: Option<Box<RawValue>>,
}

/// Makes a request for `call_tool` the request of its target. Others stay as they are.
///
/// # Errors
///
/// [`ErrorKind::InvalidCall`] if its arguments name no target, or a built-in tool.
pub(crate) fn aim(runtime: &Runtime, request: &mut CallRequest) -> Result<(), ToolError> {
    if runtime.listing.mode == ListingMode::All || request.method != Method::CallTool {
        return Ok(());
    }
    let catalogue = runtime.stack.catalogue();
    let built_in = |name: &str| {
        let tool = catalogue.find(name)?.tool();
        is_builtin(tool).then(|| tool.name().as_str().to_owned())
    };
    if built_in(&request.name).as_deref() != Some(CALL) {
        return Ok(());
    }
    let refused = |why: String| refusal(format_args!("`{CALL}`: {why}"));
    let target: Target = serde_json::from_slice(&request.arguments)
        .map_err(|error| refused(format!("the arguments do not fit: {error}")))?;
    if let Some(name) = built_in(&target.name) {
        return Err(refused(format!(
            "`{name}` is a built-in tool: call it by its own name"
        )));
    }
    request.arguments = match target.arguments {
        None => "{}".into(),
        Some(raw) if raw.get().starts_with('{') => raw.get().to_owned().into(),
        Some(_) => return Err(refused("`arguments` is not an object".to_owned())),
    };
    request.name = target.name;
    Ok(())
}

/// Names `find_tool` in an error for an unknown tool, for a caller that searches. Where there are
/// rules, it says nothing else.
pub(crate) fn with_finder(stack: &Stack, name: &str, error: &ToolError) -> String {
    let hint = format!("`{FIND}` finds all that you may call");
    match stack.policy() {
        Some(_) => ToolError::unknown_tool(name, hint).message.to_string(),
        None => format!("{}; {hint}", error.message),
    }
}

#[cfg(test)]
mod tests {
    use callward::auth::Policy;
    use callward::auth::rules::Then;
    use callward::core::Caller;
    use callward::core::refine::Applied;
    use callward_testkit::tool;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn rule() -> impl Strategy<Value = Rule> {
        let tools = select(vec!["*.*", "builtin.*", "test.*", "*.get_*"]);
        let effects = select(vec![None, Some("read_only"), Some("destructive")]);
        let then = select(vec!["allow", "deny", "ask"]);
        let name = proptest::option::of("[a-z]{1,4}");
        (tools, effects, then, name).prop_map(|(tool, effect, then, name)| {
            let mut rule = json!({"name": name, "tool": [tool], "then": then});
            if let Some(effect) = effect {
                rule["effect"] = json!([effect]);
            }
            serde_json::from_value(rule).unwrap()
        })
    }

    proptest! {
        #[test]
        fn the_first_rule_changes_no_decision_about_targets(
            rules in proptest::collection::vec(rule(), 0..5),
            default in select(vec![Then::Allow, Then::Ask, Then::Deny]),
        ) {
            let before = Policy::new(rules.clone(), default);
            let with = Policy::new(allowed_first(&rules).unwrap(), default);
            let caller = Caller::local();
            let decided = |policy: &Policy, tool: &Tool| {
                let ruling = policy.decide(&caller, tool, Applied::Tool, b"{}");
                (ruling.verdict, ruling.by.rule.clone())
            };
            for target in [tool("get_x").read_only().build(), tool("delete_x").build()] {
                prop_assert_eq!(decided(&before, &target), decided(&with, &target));
                prop_assert_eq!(before.lists(&caller, &target), with.lists(&caller, &target));
            }
        }
    }
}
