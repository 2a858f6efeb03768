//! Plugins of discovery: their order, their failures, and what they cannot change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::core::{BoxFuture, Field, Source, ToolDefinition, ToolGlob};
use callward::plugin::{BoxError, Plugin, ToolOverlay, ToolPlugin};
use callward::registry::{Hold, ReviewOptions, Shown};
use callward::{Discovery, Effect, ReplicaSetId, Server, ServerId, Stack, StackBuilder};
use callward_testkit::MockService;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bed::{alone, read, turns};

type Step<T> = BoxFuture<'static, Result<T, BoxError>>;
type Transform = Box<dyn Fn(&ToolDefinition) -> Step<ToolOverlay> + Send + Sync>;

/// A plugin that notes its steps and does in them what a test says.
struct Scripted {
    name: &'static str,
    steps: Arc<Mutex<Vec<String>>>,
    before: Box<dyn Fn() -> Step<()> + Send + Sync>,
    transform: Transform,
}

impl Scripted {
    fn new(
        name: &'static str,
        transform: impl Fn(&ToolDefinition) -> Step<ToolOverlay> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            steps: Arc::default(),
            before: Box::new(|| done(())),
            transform: Box::new(transform),
        }
    }

    fn note(&self, step: &str) {
        self.steps.lock().push(format!("{} {step}", self.name));
    }
}

impl ToolPlugin for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn before_discovery<'a>(
        &'a self,
        _: &'a ReplicaSetId,
        server: &'a ServerId,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        self.note(&format!("before {server}"));
        (self.before)()
    }

    fn transform_tool<'a>(
        &'a self,
        _: &'a ReplicaSetId,
        _: &'a ServerId,
        tool: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<ToolOverlay, BoxError>> {
        self.note(tool.name.as_str());
        (self.transform)(tool)
    }

    fn after_discovery<'a>(&'a self, discovery: &'a Discovery) -> BoxFuture<'a, ()> {
        self.note(&format!("after {}", discovery.listed));
        assert_ne!(self.name, "one", "a panic ends only its own step");
        Box::pin(async {})
    }
}

fn done<T: Send + 'static>(value: T) -> Step<T> {
    Box::pin(std::future::ready(Ok(value)))
}

/// Fails as a word says.
fn fails<T: Send + 'static>(how: &'static str) -> Step<T> {
    Box::pin(async move {
        match how {
            "error" => Err("no answer".into()),
            "panic" => panic!("a plugin panics"),
            _ => std::future::pending().await,
        }
    })
}

fn overlay(set: impl FnOnce(&mut ToolOverlay)) -> ToolOverlay {
    let mut overlay = ToolOverlay::default();
    set(&mut overlay);
    overlay
}

/// Builds a stack of one server, `s`, with three tools that read.
async fn started(builder: StackBuilder) -> Stack {
    let tools = ["get_a", "get_b", "get_c"].map(read).to_vec();
    alone(builder, tools, &MockService::counting()).await.0
}

async fn discovered(stack: &Stack) -> Discovery {
    stack.discovery(&"s".parse().unwrap()).await.unwrap()
}

fn names(stack: &Stack) -> Vec<String> {
    let catalogue = stack.catalogue();
    let entries = catalogue.entries().iter();
    entries.map(|it| it.client_name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn plugins_run_in_order_and_the_operator_wins_over_the_last() {
    let steps = Arc::default();
    let scripted = |name| {
        let mut plugin = Scripted::new(name, move |tool| {
            let before = tool.overlays.len();
            done(overlay(|it| {
                it.name = Some(format!("{name}_{}_{before}", tool.name));
                it.description = Some(name.to_owned());
            }))
        });
        plugin.steps = Arc::clone(&steps);
        plugin
    };
    let tools = vec![read("get_a"), read("get_b")];
    let mock = callward_testkit::MockServer::new("s", tools, MockService::counting());
    let mut shown = Shown::default();
    shown.name = Some("ours".to_owned());
    let server = Server::shared(mock.clone()).show_tool("get_b".parse().unwrap(), shown);
    let builder = Stack::builder().server(server);
    let builder = builder
        .plugin(Plugin::new(scripted("one")))
        .plugin(Plugin::new(scripted("two")));
    let stack = crate::bed::up(builder, &[&mock]).await;
    assert_eq!(names(&stack), ["two_get_a_1", "ours"]);
    let catalogue = stack.catalogue();
    for entry in catalogue.entries() {
        let listed: Value = serde_json::from_slice(entry.listed()).unwrap();
        assert_eq!(listed["description"], "two");
    }
    stack.call("two_get_a_1", json!({})).await.unwrap();
    turns().await;
    let steps = steps.lock().join(", ");
    assert_eq!(
        steps,
        "one before s, two before s, one get_a, one get_b, two get_a, two get_b, one after 2, \
         two after 2"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_fails_refuses_the_tool_or_is_ignored() {
    for (how, reason, secs) in [
        ("error", "no answer", 0),
        ("panic", "panicked", 0),
        ("hang", "took longer than 2 s", 2),
    ] {
        for open in [false, true] {
            let scripted = Scripted::new("picky", move |tool| match tool.name.as_str() {
                "get_b" => fails(how),
                _ => done(overlay(|it| it.description = Some("seen".to_owned()))),
            });
            let plugin = Plugin::new(scripted).timeout(Duration::from_secs(2));
            let plugin = if open { plugin.fail_open() } else { plugin };
            let began = Instant::now();
            let stack = started(Stack::builder().plugin(plugin)).await;
            assert_eq!(began.elapsed().as_secs(), secs, "one time box: {how}");
            let outcome = discovered(&stack).await;
            // a tool that it did not get to has failed as well
            let failed = if how == "hang" { 2 } else { 1 };
            let refused = if open { 0 } else { failed };
            assert_eq!(outcome.refused.len(), refused, "{how}: {outcome:?}");
            assert_eq!(names(&stack).len(), 3 - refused);
            for it in &outcome.refused {
                assert_eq!(it.reason, format!("plugin `picky`: {reason}"));
            }
            let catalogue = stack.catalogue();
            let entries = catalogue.entries().iter();
            let seen = entries.filter(|it| it.listed().windows(4).any(|part| part == b"seen"));
            assert_eq!(seen.count(), 3 - failed, "{how}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_fails_before_a_listing_fails_it_or_is_ignored() {
    for (how, reason) in [
        ("error", "no answer"),
        ("panic", "panicked"),
        ("hang", "took longer than 5 s"),
    ] {
        for open in [false, true] {
            let mut scripted = Scripted::new("gate", |_| done(ToolOverlay::default()));
            scripted.before = Box::new(move || fails(how));
            let plugin = Plugin::new(scripted);
            let plugin = if open { plugin.fail_open() } else { plugin };
            let stack = started(Stack::builder().plugin(plugin)).await;
            let outcome = stack.discover(&"s".parse().unwrap()).await.unwrap();
            assert_eq!(outcome.error.is_none(), open, "{how}: {outcome:?}");
            let says = format!("plugin `gate`: {reason}");
            assert!(open || outcome.error.unwrap().contains(&says), "{how}");
            assert_eq!(names(&stack).len(), if open { 3 } else { 0 });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hints_of_plugins_count_where_they_are_stricter_and_no_change_is_held() {
    let listings = AtomicUsize::new(0);
    let plugin = Scripted::new("wary", move |tool| {
        let n = listings.fetch_add(1, Ordering::Relaxed);
        let looser = tool.name.as_str() == "get_a";
        done(overlay(|it| {
            it.description = Some(format!("read {n} times"));
            it.hints.read_only_hint = Some(looser);
            it.hints.requires_confirmation = (!looser).then_some(true);
            it.refused = (tool.name.as_str() == "get_c").then(|| "not for agents".to_owned());
        }))
    });
    let mut review = ReviewOptions::default();
    review.hold = Hold::Changes;
    let stack = started(Stack::builder().review(review).plugin(Plugin::new(plugin))).await;
    let catalogue = stack.catalogue();
    for (name, effect) in [("s.get_a", Effect::ReadOnly), ("s.get_b", Effect::Mutating)] {
        let tool = catalogue.find(name).unwrap().tool().clone();
        assert_eq!(tool.plan().effect, effect, "{name}");
        let source = tool.resolved.provenance_of(Field::ReadOnly).unwrap().source;
        let is_plugin = effect == Effect::Mutating;
        assert_eq!(source == Source::Plugin, is_plugin, "{name}: {source}");
    }
    let refused = discovered(&stack).await.refused;
    assert_eq!(refused[0].reason, "plugin `wary`: not for agents");
    let mut events = stack.route_events();
    let outcome = stack.discover(&"s".parse().unwrap()).await.unwrap();
    assert_eq!((outcome.changed.len(), outcome.held.len()), (2, 0));
    let heard = std::iter::from_fn(|| Some(json!(events.next().now_or_never()??)));
    let heard: Vec<_> = heard.map(|it| it["type"].to_string()).collect();
    assert_eq!(heard, ["\"discoveryCompleted\""]);
}

#[tokio::test(start_paused = true)]
async fn shipped_plugins_rename_hide_and_tag() {
    let renamed = ["get_a", "get_b"].map(|tool| (tool.parse().unwrap(), "first".to_owned()));
    let tags = [("B's", "second"), ("B get", "b"), ("--", "none")];
    let builder = Stack::builder()
        .plugin(Plugin::rename(renamed.into()))
        .plugin(Plugin::hide(vec![ToolGlob::new("s.*_c").unwrap()]))
        .plugin(Plugin::keywords(tags));
    let stack = started(builder).await;
    assert_eq!(names(&stack), ["first", "s__get_b"], "the name is taken");
    let error = stack.call("s.get_c", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("get_c"), "{error}");
    let catalogue = stack.catalogue();
    let tags = |name| {
        let tool = catalogue.find(name).unwrap().tool();
        tool.resolved.annotations.tags.clone()
    };
    assert_eq!(
        (tags("s.get_a"), tags("s.get_b")),
        (None, Some(vec!["b".into()]))
    );
}

#[tokio::test(start_paused = true)]
async fn thousands_of_tools_share_one_time_box() {
    let plugin = Scripted::new("slow", |_| {
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(overlay(|it| it.hints.tags = Some(vec!["seen".into()])))
        })
    });
    let tools = (0..5000).map(|n| read(&format!("get_{n}"))).collect();
    let builder = Stack::builder().plugin(Plugin::new(plugin));
    let (stack, _server) = alone(builder, tools, &MockService::counting()).await;
    let catalogue = stack.catalogue();
    let entries = catalogue.entries().iter();
    let seen = entries.filter(|it| it.tool().resolved.annotations.tags.is_some());
    assert_eq!(seen.count(), 5000);
}
