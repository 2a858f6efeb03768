//! The server's methods.
#![expect(
    deprecated,
    reason = "the suite asks for what the protocol has deprecated, too"
)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerConfig, ServerNotification, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{
    NotificationContext, Peer, RequestContext, SubscriptionContext, SubscriptionSink,
};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::sleep;

use crate::rounds::{Rounds, Sent, capabilities, is_modern};
use crate::script::{Entry, Script, Support, find, parse};
use crate::tasks;

type Context = RequestContext<RoleServer>;

/// How long notifications of one call are apart.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(crate) struct Server {
    script: Arc<Script>,
    versions: Cow<'static, [ProtocolVersion]>,
    tasks: TaskManager,
    subscriptions: Arc<Mutex<BTreeMap<u64, SubscriptionSink>>>,
    /// The clients of the legacy era, and the resources that one of them subscribed to
    legacy: Arc<Mutex<Vec<Peer<RoleServer>>>>,
    watched: Arc<Mutex<BTreeSet<String>>>,
    last: Arc<AtomicU64>,
    cancelled: Arc<AtomicU64>,
    /// How often the list of tools has changed, which it states
    changes: Arc<AtomicU64>,
}

impl Server {
    pub(crate) fn new(versions: Cow<'static, [ProtocolVersion]>) -> serde_json::Result<Self> {
        Ok(Self {
            script: Arc::new(Script::read()?),
            versions,
            tasks: TaskManager::new(),
            subscriptions: Arc::default(),
            legacy: Arc::default(),
            watched: Arc::default(),
            last: Arc::default(),
            cancelled: Arc::default(),
            changes: Arc::default(),
        })
    }

    async fn notify(&self, entry: &Entry, context: &Context) {
        let token = context.meta.get_progress_token();
        for progress in &entry.progress {
            if let Some(token) = token.clone() {
                let report = ProgressNotificationParam::new(token, *progress).with_total(100.0);
                _ = context.peer.notify_progress(report).await;
            }
            sleep(PAUSE).await;
        }
        let level = match is_modern(context) {
            true => context.meta.log_level(),
            false => Some(LoggingLevel::Info),
        };
        for text in &entry.logs {
            if let Some(level) = level {
                let message = LoggingMessageNotificationParam::new(level, json!(text));
                _ = context.peer.notify_logging_message(message).await;
            }
            sleep(PAUSE).await;
        }
        let Some(changed) = &entry.changed else {
            return;
        };
        self.changes.fetch_add(1, Ordering::Relaxed);
        let notification = || parse::<ServerNotification>(changed.clone()).ok();
        let sinks: Vec<_> = self.subscriptions.lock().values().cloned().collect();
        for (sink, notification) in sinks.iter().zip(std::iter::from_fn(notification)) {
            // refused by a subscription to other changes
            _ = sink.send(notification).await;
        }
        let uri = changed["params"]["uri"].as_str();
        if uri.is_none_or(|uri| self.watched.lock().contains(uri)) {
            let peers = self.legacy.lock().clone();
            for (peer, notification) in peers.iter().zip(std::iter::from_fn(notification)) {
                // a client that has gone
                _ = peer.send_notification(notification).await;
            }
        }
    }
}

/// A list as JSON has it, which clients may keep for a minute.
fn list<T: DeserializeOwned>(key: &str, items: impl serde::Serialize) -> Result<T, ErrorData> {
    parse(json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public", key: items}))
}

fn offers(entries: &[Entry]) -> Vec<&JsonObject> {
    entries.iter().map(|entry| &entry.offer).collect()
}

impl ServerHandler for Server {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.versions.clone()
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(self.script.capabilities.clone())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let entry = find(&self.script.tools, name).ok()?;
        parse(json!(entry.offer)).ok()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let changes = self.changes.load(Ordering::Relaxed);
        let values = parse(json!({"changes": changes}))?;
        list(
            "tools",
            self.script
                .fill(&json!(offers(&self.script.tools)), &values),
        )
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let entry = find(&self.script.tools, &request.name)?;
        let capabilities = capabilities(&context)?;
        let tasks_extension = "io.modelcontextprotocol/tasks";
        let knows_tasks = capabilities["extensions"].get(tasks_extension).is_some();
        let missing = match &entry.needs {
            Some(needed) if capabilities.get(needed).is_none() => Some(json!({ needed: {} })),
            _ if entry.task == Some(Support::Required) && !knows_tasks => {
                Some(json!({"extensions": {tasks_extension: {}}}))
            }
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(ErrorData::missing_required_client_capability(parse(
                missing,
            )?));
        }
        let sent = Sent {
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
        };
        let mut values = match Rounds::of(&self.script, entry, sent, &context).await? {
            Rounds::Over(values) => values,
            Rounds::Next(result) => return Ok(result.into()),
        };
        if entry.task.is_some() && knows_tasks {
            return Ok(tasks::start(&self.tasks, &self.script, entry, values).into());
        }
        tokio::select! {
            () = sleep(tasks::delay(entry, &values)) => {}
            () = context.ct.cancelled() => {
                self.cancelled.fetch_add(1, Ordering::Relaxed);
            }
        }
        let cancelled = self.cancelled.load(Ordering::Relaxed);
        values.insert("cancelled".to_owned(), cancelled.into());
        self.notify(entry, &context).await;
        let result: CallToolResult = self.script.answer(entry, &values)?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        list("prompts", offers(&self.script.prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let entry = find(&self.script.prompts, &request.name)?;
        let sent = Sent {
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
        };
        Ok(
            match Rounds::of(&self.script, entry, sent, &context).await? {
                Rounds::Over(values) => {
                    let result: GetPromptResult = self.script.answer(entry, &values)?;
                    result.into()
                }
                Rounds::Next(result) => result.into(),
            },
        )
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        list("resources", &self.script.resources)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        list("resourceTemplates", &self.script.templates)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let unknown =
            || ErrorData::resource_not_found("no such resource", Some(json!({"uri": uri})));
        let id = uri.strip_prefix("test://template/");
        let id = id.and_then(|rest| rest.strip_suffix("/data"));
        let key = if id.is_some() {
            "test://template/"
        } else {
            uri
        };
        let template = self.script.contents.get(key).ok_or_else(unknown)?;
        let values = parse(json!({"uri": uri, "id": id}))?;
        let content = self.script.fill(template, &values);
        let result: ReadResourceResult = list("contents", [content])?;
        Ok(result.into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.legacy.lock().push(context.peer);
    }

    async fn subscribe(&self, on: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.watched.lock().insert(on.uri);
        Ok(())
    }

    async fn unsubscribe(&self, of: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.watched.lock().remove(&of.uri);
        Ok(())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.script.capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.last.fetch_add(1, Ordering::Relaxed);
        self.subscriptions
            .lock()
            .insert(key, context.sink().clone());
        context.cancelled().await;
        self.subscriptions.lock().remove(&key);
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let start = &request.argument.value;
        let values = ["one", "two", "three"].map(|end| format!("{start}{end}"));
        let failed = |error| ErrorData::internal_error(error, None);
        let info = CompletionInfo::new(values.to_vec()).map_err(failed)?;
        Ok(CompleteResult::new(info))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks
            .update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}
