//! One tool that reads or destroys, as its arguments say, behind the whole stack.

use std::sync::Arc;

use callward::router::StrategyName;
use callward::{
    Annotations, ArgumentRule, CacheStatus, Condition, Delivery, ErrorKind, Server, Stack,
    ToolCall, ToolError, ToolName, ToolOutput, ToolSpec, Tools, When,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bed::recorded;

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

/// The rule that a list only reads.
fn lists() -> ArgumentRule {
    let list = When::argument("action", Condition::equals("list")).unwrap();
    ArgumentRule::new(list, Annotations::default().with_read_only(true)).unwrap()
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
/// What this server reads is the close; another one would list.
const BOTH: &str = r#"{"action":"list","action":"close"}"#;

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
        (BOTH, "a", Invalidated),
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
    // what may be a close, too
    browser.lock().failures = vec![Delivery::Unknown];
    assert_eq!(call(&stack, BOTH).await.0, Err(ErrorKind::OutcomeUnknown));
}

#[tokio::test(start_paused = true)]
async fn a_light_server_lists_but_never_closes() {
    let browsers = [("light", 10), ("heavy", 50)].map(|of| (of, Shared::default()));
    let mut builder = Stack::builder().strategy(StrategyName::RoundRobin);
    for ((id, weight), browser) in &browsers {
        let server = server(id, browser).weight(*weight);
        builder = builder.server(server.refine_tool(name(), lists()));
    }
    let stack = builder.build().await.unwrap();
    for n in 0..20 {
        for action in ["close", "list"] {
            let arguments = json!({"action": action, "n": n}).to_string();
            call(&stack, &arguments).await.0.unwrap();
        }
    }
    let light = &browsers[0].1.lock().asked;
    assert!(!light.is_empty());
    assert!(light.iter().all(|action| action == "list"), "{light:?}");
}
