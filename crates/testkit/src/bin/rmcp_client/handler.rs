//! What the client answers servers, and what it keeps of their notifications.
#![expect(
    deprecated,
    reason = "servers ask for what the protocol has deprecated, too"
)]

use parking_lot::Mutex;
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, JsonObject, ListRootsResult, LoggingMessageNotificationParam,
    PrimitiveSchemaDefinition, ProgressNotificationParam, ResourceUpdatedNotificationParam, Root,
    SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};

pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

type Asked = RequestContext<RoleClient>;
type Notified = NotificationContext<RoleClient>;

#[derive(Default)]
pub(crate) struct Handler {
    pub(crate) config: ClientConfig,
    pub(crate) progress: Mutex<Vec<ProgressNotificationParam>>,
    /// How many messages were logged
    pub(crate) logs: Mutex<usize>,
    /// The resources that changed, and [`TOOLS_CHANGED`]
    pub(crate) changes: Mutex<Vec<String>>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: Asked,
    ) -> Result<CreateMessageResult, ErrorData> {
        let message = SamplingMessage::assistant_text("a reply");
        Ok(CreateMessageResult::new(message, "m".to_owned()))
    }

    async fn list_roots(&self, _: Asked) -> Result<ListRootsResult, ErrorData> {
        let root = Root::new("file:///work").with_name("work");
        Ok(ListRootsResult::new(vec![root]))
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        _: Asked,
    ) -> Result<ElicitResult, ErrorData> {
        use ElicitRequestParams::FormElicitationParams;
        let accepted = ElicitResult::new(ElicitationAction::Accept);
        let FormElicitationParams {
            requested_schema: schema,
            ..
        } = asked
        else {
            return Ok(accepted);
        };
        let value = |field| match field {
            PrimitiveSchemaDefinition::Boolean(_) => json!(true),
            _ => json!("text"),
        };
        let fields = schema.properties.into_iter();
        let content: JsonObject = fields.map(|(name, field)| (name, value(field))).collect();
        Ok(accepted.with_content(Value::Object(content)))
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _: Notified) {
        self.progress.lock().push(step);
    }

    async fn on_logging_message(&self, _: LoggingMessageNotificationParam, _: Notified) {
        *self.logs.lock() += 1;
    }

    async fn on_tool_list_changed(&self, _: Notified) {
        self.changes.lock().push(TOOLS_CHANGED.to_owned());
    }

    async fn on_resource_updated(&self, of: ResourceUpdatedNotificationParam, _: Notified) {
        self.changes.lock().push(of.uri);
    }
}
