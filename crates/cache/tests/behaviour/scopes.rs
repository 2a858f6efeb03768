//! Scopes as an operator names them: which writes drop which reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Bench, by, failure};
use callward_cache::{CacheConfig, CacheLayer, ScopeRules, StateGroup, ToolScopes};
use callward_core::{
    Delivery, Principal, ReplicaSetId, Tool, ToolCall, ToolError, ToolName, ToolOutput,
};
use callward_testkit::{MockService, call, tool};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::{Layer, ServiceExt, service_fn};

fn get() -> Arc<Tool> {
    tool("get_order")
        .read_only()
        .hint(|hints| hints.tags = Some(vec!["orders".into()]))
        .build()
}

fn list() -> Arc<Tool> {
    tool("list_orders").read_only().build()
}

fn ship() -> Arc<Tool> {
    tool("ship_order").build()
}

fn rename() -> Arc<Tool> {
    tool("rename_order").idempotent().build()
}

fn refund() -> Arc<Tool> {
    tool("refund").set("billing").build()
}

fn invoice() -> Arc<Tool> {
    tool("get_invoice").set("billing").read_only().build()
}

#[expect(
    clippy::expect_used,
    reason = "names and scopes of this file are well formed"
)]
fn set(name: &str) -> ReplicaSetId {
    name.parse().expect("a name")
}

fn rules<'a>(said: impl IntoIterator<Item = (&'a Arc<Tool>, ToolScopes)>) -> CacheConfig {
    let mut config = CacheConfig::default();
    config.scopes = said
        .into_iter()
        .fold(ScopeRules::default(), |rules, (tool, scopes)| {
            rules.with(tool.set().clone(), tool.name().clone(), scopes)
        });
    config
}

#[expect(clippy::expect_used, reason = "as above")]
fn reading(scope: &str) -> ToolScopes {
    ToolScopes::reading([scope]).expect("a scope")
}

#[expect(clippy::expect_used, reason = "as above")]
fn writing(scope: &str) -> ToolScopes {
    ToolScopes::writing([scope]).expect("a scope")
}

fn by_order() -> Bench {
    let mut renames = writing("order:{id}");
    renames.reads.clone_from(&renames.writes);
    let config = rules([
        (&get(), reading("order:{id}")),
        (&ship(), writing("order:{id}")),
        (&rename(), renames),
    ]);
    Bench::with(config, MockService::counting())
}

fn order(tool: &Arc<Tool>, id: impl Into<Value>) -> ToolCall {
    call(tool, json!({"id": id.into()}))
}

#[tokio::test(start_paused = true)]
async fn a_write_to_one_scope_invalidates_its_reads_and_wide_reads() {
    let bench = by_order();
    assert_eq!(bench.text(order(&get(), 1)).await, "1");
    assert_eq!(bench.text(order(&get(), 2)).await, "2");
    assert_eq!(bench.text(call(&list(), json!({}))).await, "3");
    assert_eq!(bench.text(order(&ship(), "1")).await, "4");
    assert_eq!(bench.text(order(&get(), 1)).await, "5");
    assert_eq!(bench.text(order(&get(), 2)).await, "2");
    assert_eq!(bench.text(call(&list(), json!({}))).await, "6");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_rule_invalidates_everything() {
    let bench = by_order();
    assert_eq!(bench.text(order(&get(), 1)).await, "1");
    assert_eq!(
        bench.text(call(&tool("tidy").build(), json!({}))).await,
        "2"
    );
    assert_eq!(bench.text(order(&get(), 1)).await, "3");
}

#[tokio::test(start_paused = true)]
async fn a_write_with_ambiguous_arguments_invalidates_everything() {
    for arguments in [
        "{}",
        r#"{"id":null}"#,
        r#"{"id":{"a":1}}"#,
        r#"{"id":2,"id":1}"#,
        r#"{"id":2,"ID":1}"#,
        r#"{"Id":1}"#,
        "not json",
    ] {
        let bench = by_order();
        assert_eq!(bench.text(order(&get(), 1)).await, "1");
        let odd = ToolCall::new(ship(), arguments);
        assert_eq!(bench.text(odd).await, "2");
        assert_eq!(bench.text(order(&get(), 1)).await, "3", "{arguments}");
    }
}

#[tokio::test(start_paused = true)]
async fn textual_forms_of_one_value_name_one_scope() {
    for (read, written) in [
        (json!(7), json!("7")),
        (json!("Ab"), json!(" aB ")),
        (json!(7.0), json!(7)),
        (json!("x"), json!(["y", "X"])),
    ] {
        let bench = by_order();
        assert_eq!(bench.text(order(&get(), read.clone())).await, "1");
        assert_eq!(bench.text(order(&ship(), written.clone())).await, "2");
        assert_eq!(bench.text(order(&get(), read)).await, "3", "{written}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_write_is_kept_while_other_orders_are_written() {
    let bench = by_order();
    assert_eq!(bench.text(order(&rename(), 1)).await, "1");
    assert_eq!(bench.text(order(&ship(), 2)).await, "2");
    assert_eq!(bench.text(order(&rename(), 1)).await, "1");
    assert_eq!(bench.text(order(&ship(), 1)).await, "3");
    assert_eq!(bench.text(order(&rename(), 1)).await, "4");
    // a write to everything may have renamed it
    assert_eq!(
        bench.text(call(&tool("tidy").build(), json!({}))).await,
        "5"
    );
    assert_eq!(bench.text(order(&rename(), 1)).await, "6");
}

/// A copy without a rule for its reads changes something else once its source was written.
#[tokio::test(start_paused = true)]
async fn an_idempotent_write_that_may_read_more_is_sent_again_after_any_write() {
    let copy = tool("copy").idempotent().build();
    let copies = || call(&copy, json!({"from": 1, "to": 2}));
    let source = order(&ship(), 1);
    for (reads, runs_again) in [
        (None, true),
        (Some("order:{from}"), true),
        (Some("x"), false),
    ] {
        let mut said = writing("order:{to}");
        said.reads = reads.and_then(|scope| reading(scope).reads);
        let config = rules([(&ship(), writing("order:{id}")), (&copy, said)]);
        let bench = Bench::with(config, MockService::counting());
        assert_eq!(bench.text(copies()).await, "1");
        assert_eq!(bench.text(copies()).await, "1", "{reads:?}");
        assert_eq!(bench.text(source.clone()).await, "2");
        let again = if runs_again { "3" } else { "1" };
        assert_eq!(bench.text(copies()).await, again, "{reads:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_settles_its_own_order_alone() {
    let config = rules([
        (&get(), reading("order:{id}")),
        (&ship(), writing("order:{id}")),
    ]);
    let mock = MockService::new(|call, n| {
        let lost = call.plan().is_write();
        async move {
            if lost {
                Err(failure(Delivery::Unknown))
            } else {
                Ok(ToolOutput::text(n.to_string()))
            }
        }
    });
    let bench = Bench::with(config, mock);
    assert!(bench.ask(order(&ship(), 1)).await.is_err());
    let first = bench.text(order(&get(), 1)).await;
    assert_ne!(bench.text(order(&get(), 1)).await, first);
    let other = bench.text(order(&get(), 2)).await;
    assert_eq!(bench.text(order(&get(), 2)).await, other);
    tokio::time::advance(ship().plan().limits.attempt_timeout).await;
    let first = bench.text(order(&get(), 1)).await;
    assert_eq!(bench.text(order(&get(), 1)).await, first);
}

#[tokio::test(start_paused = true)]
async fn a_write_may_touch_another_replica_set_and_a_read_depend_on_one() {
    let mut config = rules([
        (&ship(), ToolScopes::writing(["*", "@billing"]).unwrap()),
        (&list(), ToolScopes::reading(["*", "@billing"]).unwrap()),
    ]);
    config.scopes = config.scopes.with_state(set("billing"), StateGroup::Own);
    let bench = Bench::with(config, MockService::counting());
    assert_eq!(bench.text(call(&invoice(), json!({}))).await, "1");
    assert_eq!(bench.text(order(&get(), 1)).await, "2");
    assert_eq!(bench.text(call(&list(), json!({}))).await, "3");
    assert_eq!(bench.text(order(&ship(), 1)).await, "4");
    assert_eq!(bench.text(call(&invoice(), json!({}))).await, "5");
    assert_eq!(bench.text(order(&get(), 1)).await, "6");
    assert_eq!(bench.text(call(&list(), json!({}))).await, "7");
    assert_eq!(bench.text(call(&refund(), json!({}))).await, "8");
    assert_eq!(bench.text(order(&get(), 1)).await, "6");
    assert_eq!(bench.text(call(&list(), json!({}))).await, "9");
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_that_share_an_argument_value_meet() {
    let config = rules([(&get(), reading("{*}")), (&ship(), writing("{*}"))]);
    let bench = Bench::with(config, MockService::counting());
    assert_eq!(bench.text(order(&get(), 1)).await, "1");
    assert_eq!(bench.text(order(&get(), 2)).await, "2");
    let nested = call(&ship(), json!({"orders": [{"no": 1}], "by": "post"}));
    assert_eq!(bench.text(nested).await, "3");
    assert_eq!(bench.text(order(&get(), 1)).await, "4");
    assert_eq!(bench.text(order(&get(), 2)).await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_an_empty_write_set_invalidates_nothing() {
    let config = rules([(&ship(), ToolScopes::writing([]).unwrap())]);
    let bench = Bench::with(config, MockService::counting());
    assert_eq!(bench.text(order(&get(), 1)).await, "1");
    assert_eq!(bench.text(order(&ship(), 1)).await, "2");
    assert_eq!(bench.text(order(&ship(), 1)).await, "3");
    assert_eq!(bench.text(order(&get(), 1)).await, "1");
}

#[tokio::test(start_paused = true)]
async fn purges_by_scope_and_tag_remove_results() {
    let bench = by_order();
    let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
    let by = |who: &Principal, tool: &Arc<Tool>| by(who.as_str(), order(tool, 1));
    let all = async |expected: [&str; 3]| {
        let calls = [by(&ann, &get()), by(&bob, &get()), by(&ann, &list())];
        for (call, expected) in calls.into_iter().zip(expected) {
            assert_eq!(bench.text(call).await, expected);
        }
    };
    all(["1", "2", "3"]).await;
    all(["1", "2", "3"]).await;
    bench.handle.purge_principal(&bob);
    all(["1", "4", "3"]).await;
    bench
        .handle
        .purge_tool(&set("test"), &ToolName::new("list_orders").unwrap());
    all(["1", "4", "5"]).await;
    bench.handle.purge_tag("orders");
    all(["6", "7", "5"]).await;
    bench.handle.purge_tag("order:1");
    all(["8", "9", "5"]).await;
    bench.handle.purge_tag("nothing");
    all(["8", "9", "5"]).await;
    bench.handle.purge_set(&set("test"));
    all(["10", "11", "12"]).await;
}

#[tokio::test(start_paused = true)]
async fn removed_tools_do_not_find_old_results_when_they_come_back() {
    let layer = CacheLayer::default();
    let answered = Arc::new(AtomicU64::new(0));
    let count = answered.clone();
    // one that, unlike the mock, does not hold on to the calls it saw
    let cache = layer.layer(service_fn(move |_: ToolCall| {
        let n = count.fetch_add(1, Ordering::Relaxed) + 1;
        std::future::ready(Ok(ToolOutput::text(n.to_string())))
    }));
    let ask = async |tool: Arc<Tool>| {
        let answer: Result<ToolOutput, ToolError> = cache.clone().oneshot(order(&tool, 1)).await;
        answer.unwrap().to_text()
    };
    assert_eq!(ask(get()).await, "1");
    layer.handle().purge_tool(&set("test"), get().name());
    for n in 0..2000 {
        ask(tool(&format!("tool{n}")).read_only().build()).await;
    }
    assert!(layer.handle().tools().len() < 1000);
    assert_eq!(layer.handle().stats().misses, 2001);
    assert_eq!(ask(get()).await, "2002");
}

#[tokio::test(start_paused = true)]
async fn a_tag_purge_reaches_a_definition_that_comes_back() {
    let layer = CacheLayer::default();
    let cache = layer.layer(service_fn(|_: ToolCall| {
        std::future::ready(Ok(ToolOutput::text("x")))
    }));
    let ask = async |tool: Arc<Tool>| {
        let answer: Result<ToolOutput, ToolError> = cache.clone().oneshot(order(&tool, 1)).await;
        answer.unwrap()
    };
    let other = tool("get_order")
        .read_only()
        .hint(|hints| hints.title = Some("other".into()))
        .build();
    ask(get()).await;
    ask(other.clone()).await;
    for n in 0..1000 {
        ask(tool(&format!("tool{n}")).read_only().build()).await;
    }
    // it is known that it was hit, but not any more that it had the tag
    ask(get()).await;
    assert_eq!(layer.handle().stats().hits, 1);
    for n in 0..2000 {
        ask(tool(&format!("tool{n}")).read_only().build()).await;
    }
    layer.handle().purge_tag("orders");
    let before = layer.handle().stats().misses;
    ask(get()).await;
    assert_eq!(layer.handle().stats().misses, before + 1);
    ask(other).await;
}

proptest! {
    /// The scopes of a template do not depend on the textual form of the arguments.
    #[test]
    fn a_write_is_seen_in_any_textual_form(id in prop_oneof![
        any::<u32>().prop_map(Value::from),
        "[a-zA-Z ]{1,6}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
    ], upper in any::<bool>(), as_text in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let bench = by_order();
            bench.text(order(&get(), id.clone())).await;
            let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            let text = if upper { text.to_uppercase() } else { text };
            let written = if as_text { Value::from(text) } else { id.clone() };
            bench.text(order(&ship(), written)).await;
            prop_assert_eq!(bench.text(order(&get(), id)).await, "3");
            Ok(())
        })?;
    }
}
