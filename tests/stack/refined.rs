//! One tool that reads or destroys, as its arguments say, behind the whole stack.

use std::sync::Arc;

use callward::cache::CacheConfig;
use callward::core::Category;
use callward::core::refine::Applied;
use callward::retry::RetryConfig;
use callward::router::StrategyName;
use callward::{
    Annotations, ArgumentRule, CacheStatus, Condition, Delivery, ErrorKind, Server, Stack,
    ToolCall, ToolError, ToolName, ToolOutput, ToolSpec, Tools, When,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bed::{has, recorded};

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
        .override_tool(name(), Annotations::default().with_destructive(true))
}

fn rule(argument: &str, condition: Condition, hints: Annotations) -> ArgumentRule {
    ArgumentRule::new(When::argument(argument, condition).unwrap(), hints).unwrap()
}

fn lists() -> ArgumentRule {
    let reads = Annotations::default().with_read_only(true);
    rule("action", Condition::equals("list"), reads)
}

fn name() -> ToolName {
    "browser_tabs".parse().unwrap()
}

async fn stack() -> (Stack, Shared) {
    let browser = Shared::default();
    browser.lock().tabs = ["a", "b", "c"].map(str::to_owned).into();
    let server = server("chrome", &browser).refine_tool(name(), lists());
    let stack = Stack::builder().server(server).build().await.unwrap();
    (stack, browser)
}

/// Makes a call; returns its answer and what the cache made of it.
async fn call(stack: &Stack, arguments: &str) -> (Result<String, ErrorKind>, CacheStatus) {
    let (answer, record) = recorded(stack, "web.browser_tabs", arguments).await;
    let answer = answer
        .map(|output| output.to_text())
        .map_err(|error| error.kind());
    (answer, record.facts().cache)
}

const LIST: &str = r#"{"action":"list"}"#;
const CLOSE: &str = r#"{"action":"close"}"#;

#[tokio::test(start_paused = true)]
async fn a_list_is_kept_until_a_close_of_the_same_tool() {
    let (stack, browser) = stack().await;
    use CacheStatus::{Hit, Invalidated, Miss};
    // an equal close is another close
    for (arguments, tabs, cache) in [
        (LIST, "a b c", Miss),
        (r#"{ "\u0061ction" : "list" }"#, "a b c", Hit),
        (CLOSE, "a b", Invalidated),
        (LIST, "a b", Miss),
        (CLOSE, "a", Invalidated),
        (LIST, "a", Miss),
    ] {
        let found = call(&stack, arguments).await;
        assert_eq!(found, (Ok(tabs.to_owned()), cache), "{arguments}");
    }
    let expected = ["list", "close", "list", "close", "list"];
    assert_eq!(browser.lock().asked, expected);
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
    let stack = Stack::builder()
        .server(
            server("light", &light)
                .weight(10)
                .refine_tool(name(), lists()),
        )
        .server(
            server("heavy", &heavy)
                .weight(50)
                .refine_tool(name(), lists()),
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
async fn a_call_in_doubt_is_told_as_the_worst_it_may_do() {
    let hints = Annotations::default;
    let closes = rule(
        "action",
        Condition::equals("close"),
        hints().with_destructive(true),
    );
    let asks = hints().with_requires_confirmation(true);
    let forced = rule("force", Condition::present(), asks);
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
    has(
        stack.explain_call("web.browser_tabs", perhaps).unwrap(),
        &[
            r#"(action = "close": does not hold here)"#,
            "(force is present: is not certain here)",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn an_explanation_heeds_servers_settings_and_every_hint_of_a_rule() {
    let browser = Shared::default();
    let hints = Annotations::default().with_requires_confirmation(true);
    let hints = hints.with_estimated_duration(2000.0);
    let asks = rule("force", Condition::present(), hints);
    let mut cache = CacheConfig::default();
    cache.enabled = false;
    let stack = Stack::builder()
        .server(
            server("light", &browser)
                .weight(10)
                .refine_tool(name(), asks),
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
    has(
        forced,
        &[
            "1. where force is present: the call may destroy or overwrite something  <- this call",
            "light (weight 10), never: it is too light",
            "the cache is off",
            "20 s, and 200 s with progress, usually 2 s",
            "requiresConfirmation = true: operator, rule 1 of this tool: force is present",
        ],
    );
}
