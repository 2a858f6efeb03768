//! One tool that reads or destroys, as its arguments say, behind the whole stack.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;

use callward::cache::CacheConfig;
use callward::core::Category;
use callward::core::refine::Applied;
use callward::core::trail::{Stage, Verdict};
use callward::retry::RetryConfig;
use callward::router::StrategyName;
use callward::{
    Annotations, ArgumentRule, BuildError, CacheStatus, CallRecord, Condition, Delivery, Effect,
    ErrorKind, Server, Stack, ToolCall, ToolError, ToolOutput, ToolSpec, Tools, When,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A browser: its tabs, what was asked of it, and the failures it still has in store.
#[derive(Debug, Default)]
struct Browser {
    tabs: Vec<String>,
    asked: Vec<String>,
    failures: Vec<Delivery>,
}

type Shared = Arc<Mutex<Browser>>;

impl Browser {
    fn tabs(&mut self, arguments: &[u8]) -> Result<ToolOutput, ToolError> {
        let arguments: Value = serde_json::from_slice(arguments).unwrap();
        let action = arguments["action"].as_str().unwrap_or("none").to_owned();
        self.asked.push(action.clone());
        if let Some(delivery) = self.failures.pop() {
            return Err(ToolError::new(ErrorKind::ConnectionLost, delivery, "gone"));
        }
        if action == "close" {
            self.tabs.pop();
        }
        Ok(ToolOutput::text(self.tabs.join(" ")))
    }
}

fn server(id: &str, browser: &Shared) -> Server {
    let browser = browser.clone();
    let service = tower::service_fn(move |call: ToolCall| {
        std::future::ready(browser.lock().tabs(call.arguments()))
    });
    let tools = Tools::new(id)
        .unwrap()
        .service(ToolSpec::new("browser_tabs"), service)
        .unwrap();
    Server::new(tools)
        .in_set("web".parse().unwrap())
        .override_tool(
            "browser_tabs".parse().unwrap(),
            Annotations::default().with_destructive(true),
        )
}

fn reads(action: &str) -> ArgumentRule {
    ArgumentRule::new(
        When::argument("action", Condition::equals(action)).unwrap(),
        Annotations::default().with_read_only(true),
    )
    .unwrap()
}

async fn stack() -> (Stack, Shared) {
    let browser = Shared::default();
    browser.lock().tabs = ["a", "b", "c"].map(str::to_owned).into();
    let server =
        server("chrome", &browser).refine_tool("browser_tabs".parse().unwrap(), reads("list"));
    let stack = Stack::builder().server(server).build().await.unwrap();
    (stack, browser)
}

/// Makes a call; returns its answer and what the cache made of it.
async fn call(stack: &Stack, arguments: &str) -> (Result<String, ErrorKind>, CacheStatus) {
    let record = Arc::new(CallRecord::new());
    let call = stack
        .prepare("web.browser_tabs", arguments.to_owned())
        .unwrap()
        .with_record(record.clone());
    let answer = stack.run(call).await;
    let answer = answer
        .map(|output| output.to_text())
        .map_err(|error| error.kind());
    (answer, record.cache())
}

const LIST: &str = r#"{"action":"list"}"#;
const CLOSE: &str = r#"{"action":"close"}"#;

#[tokio::test(start_paused = true)]
async fn a_list_is_kept_until_a_close_of_the_same_tool() {
    let (stack, browser) = stack().await;
    assert_eq!(
        call(&stack, LIST).await,
        (Ok("a b c".into()), CacheStatus::Miss)
    );
    assert_eq!(
        call(&stack, r#"{ "\u0061ction" : "list" }"#).await,
        (Ok("a b c".into()), CacheStatus::Hit)
    );
    assert_eq!(
        call(&stack, CLOSE).await,
        (Ok("a b".into()), CacheStatus::Invalidated)
    );
    assert_eq!(
        call(&stack, LIST).await,
        (Ok("a b".into()), CacheStatus::Miss)
    );
    // an equal close is another close
    assert_eq!(call(&stack, CLOSE).await.0, Ok("a".into()));
    assert_eq!(call(&stack, LIST).await.0, Ok("a".into()));
    assert_eq!(
        browser.lock().asked,
        ["list", "close", "list", "close", "list"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_is_sent_again_and_a_close_never() {
    let (stack, browser) = stack().await;
    browser.lock().failures = vec![Delivery::Unknown; 2];
    assert_eq!(call(&stack, LIST).await.0, Ok("a b c".into()));
    assert_eq!(browser.lock().asked, ["list"; 3]);

    browser.lock().asked.clear();
    browser.lock().failures = vec![Delivery::Unknown];
    assert_eq!(call(&stack, CLOSE).await.0, Err(ErrorKind::OutcomeUnknown));
    browser.lock().failures = vec![Delivery::NotSent];
    assert_eq!(call(&stack, CLOSE).await.0, Err(ErrorKind::ConnectionLost));
    assert_eq!(browser.lock().asked, ["close"; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_may_be_a_close_is_treated_as_one() {
    let (stack, browser) = stack().await;
    call(&stack, LIST).await.0.unwrap();
    let both = r#"{"action":"list","action":"close"}"#;
    // what this server reads is the close; another one would list
    assert_eq!(
        call(&stack, both).await,
        (Ok("a b".into()), CacheStatus::Invalidated)
    );
    assert_eq!(
        call(&stack, LIST).await,
        (Ok("a b".into()), CacheStatus::Miss)
    );
    browser.lock().failures = vec![Delivery::Unknown];
    assert_eq!(call(&stack, both).await.0, Err(ErrorKind::OutcomeUnknown));
}

#[tokio::test(start_paused = true)]
async fn a_light_server_lists_but_never_closes() {
    let (light, heavy) = (Shared::default(), Shared::default());
    let name = || "browser_tabs".parse().unwrap();
    let stack = Stack::builder()
        .server(
            server("light", &light)
                .weight(10)
                .refine_tool(name(), reads("list")),
        )
        .server(
            server("heavy", &heavy)
                .weight(50)
                .refine_tool(name(), reads("list")),
        )
        .strategy(StrategyName::RoundRobin)
        .build()
        .await
        .unwrap();
    for n in 0..20 {
        let arguments = json!({"action": "close", "n": n}).to_string();
        call(&stack, &arguments).await.0.unwrap();
        let arguments = json!({"action": "list", "n": n}).to_string();
        call(&stack, &arguments).await.0.unwrap();
    }
    let light = &light.lock().asked;
    assert!(!light.is_empty());
    assert!(light.iter().all(|action| action == "list"), "{light:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_explained_as_what_it_is() {
    let (stack, _) = stack().await;
    let list = stack.explain_call("web.browser_tabs", LIST).unwrap();
    assert_eq!(list.plan().effect, Effect::ReadOnly);
    assert_eq!(list.applied(), Applied::Rule(0));
    let text = list.to_string();
    for part in [
        r#"rule 1 of this tool: action = "list", by rule 1 over its arguments"#,
        "chrome (weight 50)  <- chosen now",
        "kept 300 s",
        "at most 3 attempts",
        "confirm  no",
        r#"1. where action = "list": the call only reads  <- this call"#,
        r#"readOnlyHint = true: operator, rule 1 of this tool: action = "list""#,
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }

    let close = stack.explain_call("web.browser_tabs", CLOSE).unwrap();
    assert_eq!(close.plan().effect, Effect::Destructive);
    let text = close.to_string();
    for part in [
        "effect   destructive (dangerous): operator, set for this tool",
        r#"the call only reads  (action = "list": does not hold here)"#,
        "route    only healthy servers of weight 50 or more",
        "drops what depends on the",
        "however it fails",
        "a person is to agree",
        "destroy or overwrite something  <- this call",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }

    let odd = r#"{"action":"list","x":1,"x":2}"#;
    let odd = stack.explain_call("web.browser_tabs", odd).unwrap();
    assert_eq!(odd.plan().effect, Effect::ReadOnly);
    assert!(
        odd.trail().first(Stage::Cache).unwrap().verdict == Verdict::Bypass,
        "{odd}"
    );

    let both = r#"{"action":"list","action":"close"}"#;
    let text = stack
        .explain_call("web.browser_tabs", both)
        .unwrap()
        .to_string();
    assert!(text.contains("the strictest of its plans"), "{text}");
    assert!(text.contains("`action`"), "{text}");

    let tool = stack.explain("web.browser_tabs").unwrap();
    assert_eq!(tool.plan().effect, Effect::Destructive);
    let text = tool.to_string();
    assert!(
        text.contains("else: the call may destroy or overwrite something\n"),
        "{text}"
    );
    assert!(!text.contains("<- this call"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_call_in_doubt_is_told_as_the_worst_it_may_do() {
    let closes = ArgumentRule::new(
        When::argument("action", Condition::equals("close")).unwrap(),
        Annotations::default().with_destructive(true),
    )
    .unwrap();
    let forced = ArgumentRule::new(
        When::argument("force", Condition::present()).unwrap(),
        Annotations::default().with_requires_confirmation(true),
    )
    .unwrap();
    let name = || "browser_tabs".parse().unwrap();
    let reader = server("chrome", &Shared::default())
        .override_tool(name(), Annotations::default().with_read_only(true))
        .refine_tool(name(), closes)
        .refine_tool(name(), forced);
    let stack = Stack::builder().server(reader).build().await.unwrap();
    let category = |arguments: &'static str| {
        let explained = stack.explain_call("web.browser_tabs", arguments).unwrap();
        Category::of(explained.resolved())
    };
    assert_eq!(category(LIST), Category::Read);
    assert_eq!(category(CLOSE), Category::Delete);
    assert_eq!(
        category(r#"{"action":"list","action":"close"}"#),
        Category::Delete
    );
    let perhaps = r#"{"action":"list","force":null}"#;
    let text = stack
        .explain_call("web.browser_tabs", perhaps)
        .unwrap()
        .to_string();
    for part in [
        r#"(action = "close": does not hold here)"#,
        "(force is present: is not certain here)",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn servers_of_one_set_must_agree_on_rules() {
    let browser = Shared::default();
    let name = || "browser_tabs".parse().unwrap();
    let built = Stack::builder()
        .server(server("one", &browser).refine_tool(name(), reads("list")))
        .server(server("two", &browser).refine_tool(name(), reads("show")))
        .build()
        .await;
    assert!(
        matches!(&built, Err(BuildError::Conflict { what, .. }) if what.contains("arguments")),
        "{built:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_explanation_heeds_servers_settings_and_every_hint_of_a_rule() {
    let browser = Shared::default();
    let asks = ArgumentRule::new(
        When::argument("force", Condition::present()).unwrap(),
        Annotations::default()
            .with_requires_confirmation(true)
            .with_estimated_duration(2000.0),
    )
    .unwrap();
    let mut cache = CacheConfig::default();
    cache.enabled = false;
    let stack = Stack::builder()
        .server(
            server("light", &browser)
                .weight(10)
                .refine_tool("browser_tabs".parse().unwrap(), asks),
        )
        .cache(cache)
        .retry(RetryConfig::default().with_max_attempts(1))
        .build()
        .await
        .unwrap();
    let forced = stack
        .explain_call("web.browser_tabs", r#"{"force":1}"#)
        .unwrap();
    assert_eq!(forced.applied(), Applied::Rule(0));
    assert!(!forced.candidates()[0].may_take(forced.plan()));
    let text = forced.to_string();
    for part in [
        "1. where force is present: the call may destroy or overwrite something  <- this call",
        "light (weight 10), never: it is too light",
        "the cache is off",
        "20 s, and 200 s with progress, usually 2 s",
        "requiresConfirmation = true: operator, rule 1 of this tool: force is present",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}
