//! The features, in the order of `features.py`, and how each is used.
#![expect(
    deprecated,
    reason = "legacy clients use what the protocol has deprecated"
)]

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest,
    GetPromptRequestParams, GetTaskParams, LoggingLevel, PingRequest, ReadResourceRequestParams,
    RequestMetaObject, ResourceContents, ServerResult, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, TaskPayload, UnsubscribeRequestParams,
};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::handler::TOOLS_CHANGED;
use crate::{Client, Used, check};

const WATCHED: &str = "test://watched-resource";
/// The answer where rmcp has no API for a feature in this era.
const ABSENT: &str = "–";

pub(crate) fn all(client: &Client) -> [(&'static str, LocalBoxFuture<'_, Used>); 18] {
    let roots = "test_input_required_result_list_roots";
    let url = "test_elicitation_url";
    [
        ("tools", tools(client).boxed_local()),
        ("progress", progress(client).boxed_local()),
        ("prompts", prompts(client).boxed_local()),
        ("resources", resources(client).boxed_local()),
        ("resource templates", templates(client).boxed_local()),
        ("completion", completion(client).boxed_local()),
        ("logging", logging(client).boxed_local()),
        ("sampling", sampling(client).boxed_local()),
        ("elicitation, form", form(client).boxed_local()),
        ("elicitation, URL", has(client, url, "accept").boxed_local()),
        ("roots", has(client, roots, "").boxed_local()),
        ("several rounds", rounds(client).boxed_local()),
        ("cancellation", cancellation(client).boxed_local()),
        ("lists changed", lists(client).boxed_local()),
        ("resource subscriptions", updates(client).boxed_local()),
        ("tasks", tasks(client).boxed_local()),
        ("unknown method", unknown(client).boxed_local()),
        ("ping, discover", ping(client).boxed_local()),
    ]
}

fn is_modern(client: &Client) -> bool {
    !client.service().config.protocol_version.has_initialize()
}

fn call_of(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let call = CallToolRequestParams::new(tool);
    match arguments {
        Value::Object(arguments) => call.with_arguments(arguments),
        _ => call,
    }
}

fn text_of(result: &CallToolResult) -> Used<String> {
    let parts = result.content.iter();
    let texts = parts.map(|part| part.as_text().map_or("", |part| part.text.as_str()));
    let words = texts.collect::<Vec<_>>().join("\n");
    check(result.is_error != Some(true), format!("isError: {words}"))?;
    Ok(words)
}

async fn text(client: &Client, tool: &'static str, arguments: Value) -> Used<String> {
    text_of(&client.call_tool(call_of(tool, arguments)).await?)
}

fn contains(words: &str, wanted: &str) -> Used {
    check(words.contains(wanted), format!("answered {words}"))
}

fn some<T>(list: &[T], words: &str) -> Used {
    check(!list.is_empty(), words)
}

async fn has(client: &Client, tool: &'static str, wanted: &str) -> Used {
    contains(&text(client, tool, json!({})).await?, wanted)
}

async fn read(client: &Client, uri: &str) -> Used<String> {
    let resource = ReadResourceRequestParams::new(uri);
    match client.read_resource(resource).await?.contents.first() {
        Some(ResourceContents::TextResourceContents { text, .. }) => Ok(text.clone()),
        _ => Err("no text".into()),
    }
}

async fn tools(client: &Client) -> Used {
    some(&client.list_tools(None).await?.tools, "no tool")?;
    has(client, "test_simple_text", "simple text").await
}

async fn progress(client: &Client) -> Used {
    let call = CallToolRequest::new(call_of("test_tool_with_progress", json!({})));
    let (call, options) = (call.into(), PeerRequestOptions::no_options());
    let handle = client.send_cancellable_request(call, options).await?;
    let token = handle.progress_token.clone();
    let ServerResult::CallToolResult(result) = handle.await_response().await? else {
        return Err("not a result of a tool".into());
    };
    text_of(&result)?;
    let seen = client.service().progress.lock();
    let own = seen.iter().filter(|step| step.progress_token == token);
    let steps: Vec<_> = own.map(|step| step.progress).collect();
    check(steps == [0.0, 50.0, 100.0], format!("progress {steps:?}"))
}

async fn prompts(client: &Client) -> Used {
    some(&client.list_prompts(None).await?.prompts, "no prompt")?;
    let prompt = GetPromptRequestParams::new("test_simple_prompt");
    some(&client.get_prompt(prompt).await?.messages, "no message")
}

async fn resources(client: &Client) -> Used {
    let resources = client.list_resources(None).await?.resources;
    some(&resources, "no resource")?;
    let words = read(client, "test://static-text").await?;
    some(words.as_bytes(), "no text")
}

async fn templates(client: &Client) -> Used {
    let found = client.list_resource_templates(None).await?;
    some(&found.resource_templates, "no template")?;
    contains(&read(client, "test://template/7/data").await?, "ID: 7")
}

async fn completion(client: &Client) -> Used {
    let prompt = "test_prompt_with_arguments";
    let values = client.complete_prompt_simple(prompt, "arg1", "t").await?;
    some(&values, "no value")
}

async fn logging(client: &Client) -> Used {
    *client.service().logs.lock() = 0;
    let mut call = call_of("test_tool_with_logging", json!({}));
    if is_modern(client) {
        let mut meta = RequestMetaObject::new();
        meta.set_log_level(LoggingLevel::Info);
        call.meta = Some(meta);
    } else {
        let level = SetLevelRequestParams::new(LoggingLevel::Info);
        client.set_level(level).await?;
    }
    text_of(&client.call_tool(call).await?)?;
    sleep(Duration::from_millis(300)).await;
    let seen = *client.service().logs.lock();
    check(seen == 3, format!("{seen} messages of 3"))
}

async fn sampling(client: &Client) -> Used {
    let words = text(client, "test_sampling", json!({"prompt": "Hi"})).await?;
    contains(&words, "a reply")
}

async fn form(client: &Client) -> Used {
    let words = text(client, "test_elicitation", json!({"message": "?"})).await?;
    contains(&words, "accept")
}

async fn rounds(client: &Client) -> Used {
    has(client, "test_input_required_result_multi_round", "").await?;
    has(client, "test_input_required_result_multiple_inputs", "").await
}

async fn cancellation(client: &Client) -> Used {
    let count = async |turn| -> Used<u64> {
        let count = text(client, "test_cancelled_calls", json!({ "turn": turn })).await?;
        Ok(count.parse()?)
    };
    let before = count(-1).await?;
    // rmcp cancels the request of a call that is dropped
    let call = client.call_tool(call_of("test_reconnection", json!({"seconds": 60})));
    let ended = timeout(Duration::from_millis(500), call).await;
    check(ended.is_err(), "the call ended")?;
    // the gateway awaits the answer of a write for 5 s once its client has left
    for turn in 0..40 {
        sleep(Duration::from_millis(200)).await;
        if count(turn).await? > before {
            return Ok(());
        }
    }
    Err("the server is not notified".into())
}

/// Calls a tool until its change is reported: to the handler of a legacy client, to a subscription
/// of a modern one.
async fn reported(
    client: &Client,
    tool: &'static str,
    filter: SubscriptionFilter,
    change: &str,
) -> Used {
    let handler = client.service();
    handler.changes.lock().clear();
    let mut subscription = None;
    if is_modern(client) {
        let made = client.listen(filter.clone()).await?;
        check(*made.acknowledged() == filter, "not acknowledged")?;
        subscription = Some(made);
    }
    for turn in 0..20 {
        text(client, tool, json!({ "turn": turn })).await?;
        let pause = Duration::from_millis(300);
        if let Some(subscription) = &mut subscription {
            if let Ok(event) = timeout(pause, subscription.next()).await {
                return check(event?.is_some(), "the subscription ended");
            }
        } else {
            sleep(pause).await;
            if handler.changes.lock().iter().any(|one| one == change) {
                return Ok(());
            }
        }
    }
    Err("no notification".into())
}

async fn lists(client: &Client) -> Used {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    reported(client, "test_trigger_tool_change", filter, TOOLS_CHANGED).await
}

async fn updates(client: &Client) -> Used {
    let tool = "test_trigger_resource_update";
    let filter = SubscriptionFilter::builder().resource_subscription(WATCHED);
    let used = reported(client, tool, filter.build(), WATCHED);
    if is_modern(client) {
        return used.await;
    }
    let on = SubscribeRequestParams::new(WATCHED);
    client.subscribe(on).await?;
    used.await?;
    let of = UnsubscribeRequestParams::new(WATCHED);
    Ok(client.unsubscribe(of).await?)
}

async fn tasks(client: &Client) -> Used {
    if !is_modern(client) {
        // tasks of 2025-11-25 are others than those of the extension
        return Err(ABSENT.into());
    }
    let call = call_of("slow_compute", json!({"seconds": 0.3, "label": "x"}));
    let CallToolResponse::Task(created) = client.call_tool_once(call).await? else {
        return Err("answers without a task".into());
    };
    loop {
        let task = GetTaskParams::new(created.task.task_id.as_str());
        match client.get_task(task).await?.task.payload {
            TaskPayload::Completed { result } => {
                let result = serde_json::from_value(Value::Object(result))?;
                return text_of(&result).map(drop);
            }
            TaskPayload::Working => sleep(Duration::from_millis(100)).await,
            other => return Err(format!("the task is {:?}", other.status()).into()),
        }
    }
}

async fn unknown(client: &Client) -> Used {
    let request = CustomRequest::new("example/unknown", Some(json!({})));
    client.send_request(request.into()).await?;
    Ok(())
}

async fn ping(client: &Client) -> Used {
    if is_modern(client) {
        client.discover(RequestMetaObject::new()).await?;
    } else {
        let ping = PingRequest::default();
        client.send_request(ping.into()).await?;
    }
    Ok(())
}
