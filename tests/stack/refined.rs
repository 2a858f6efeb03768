//! One tool that reads or destroys, as its arguments say, behind the whole stack.

use std::num::NonZeroU32;
use std::sync::Arc;

use callward::limit::PrincipalLimitConfig;
use callward::{
    Annotations, ArgumentRule, CacheStatus, Condition, Server, Stack, StackBuilder, ToolCall,
    ToolError, ToolOutput, ToolSpec, Tools, When,
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::bed::recorded;

/// A browser: its tabs, and what was asked of it.
#[derive(Debug, Default)]
struct Browser {
    tabs: Vec<String>,
    asked: Vec<String>,
}

type Shared = Arc<Mutex<Browser>>;

impl Browser {
    fn tabs(&mut self, arguments: &[u8]) -> ToolOutput {
        let arguments: Value = serde_json::from_slice(arguments).unwrap();
        let action = arguments["action"].as_str().unwrap_or("none").to_owned();
        self.asked.push(action.clone());
        if action == "close" {
            self.tabs.pop();
        }
        ToolOutput::text(self.tabs.join(" "))
    }
}

/// A browser with three tabs, whose operator says that a list only reads.
async fn stack() -> (Stack, Shared) {
    start(Stack::builder()).await
}

async fn start(builder: StackBuilder) -> (Stack, Shared) {
    let shared = Shared::default();
    shared.lock().tabs = ["a", "b", "c"].map(str::to_owned).into();
    let browser = shared.clone();
    let service = tower::service_fn(move |call: ToolCall| {
        let tabs = browser.lock().tabs(call.arguments());
        std::future::ready(Ok::<_, ToolError>(tabs))
    });
    let tools = Tools::new("web").unwrap();
    let tools = tools.service(ToolSpec::new("browser_tabs"), service);
    let list = When::argument("action", Condition::equals("list")).unwrap();
    let lists = ArgumentRule::new(list, Annotations::default().with_read_only(true)).unwrap();
    let name = || "browser_tabs".parse().unwrap();
    let server = Server::new(tools.unwrap())
        .override_tool(name(), Annotations::default().with_destructive(true))
        .refine_tool(name(), lists);
    let stack = builder.server(server).build().await;
    (stack.unwrap(), shared)
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
        let (answer, record) = recorded(&stack, "web.browser_tabs", arguments).await;
        let found = (answer.unwrap().to_text(), record.facts().cache);
        assert_eq!(found, (tabs.to_owned(), cache), "{arguments}");
    }
    let expected = ["list", "close", "list", "close", "list"];
    assert_eq!(browser.lock().asked, expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_counts_by_its_arguments_and_a_hit_counts_too() {
    let mut limits = PrincipalLimitConfig::default();
    limits.calls_per_minute = NonZeroU32::new(4);
    limits.destructive_per_minute = NonZeroU32::new(1);
    let (stack, browser) = start(Stack::builder().principal_limits(limits)).await;
    for (arguments, expected) in [
        (LIST, None),
        (LIST, None),
        (BOTH, None),
        (CLOSE, Some("destructive_per_minute")),
        (LIST, None),
        (LIST, Some("calls_per_minute")),
    ] {
        let call = stack.prepare("web.browser_tabs", arguments).unwrap();
        let error = stack.run(call).await.err();
        let limit = error.map(|error| error.limit.unwrap().name);
        assert_eq!(limit, expected, "{arguments}");
    }
    // the second list was a hit
    assert_eq!(browser.lock().asked, ["list", "close", "list"]);
}
