//! The tools, as rmcp asks for them.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};

use peers_upstream::{ALL, Fault, Server, State, Verdict, Work, find, hints, schema};

/// Longer waits are cut to this.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub(crate) struct Tools {
    state: Arc<State>,
    listed: Arc<[Tool]>,
}

impl Tools {
    pub(crate) fn new(server: Server, state: Arc<State>) -> Self {
        let tools = ALL.iter().filter(|(name, ..)| server.lists(name));
        Self {
            state,
            listed: tools.map(listed).collect(),
        }
    }
}

fn listed((name, work, description): &(&'static str, Work, &'static str)) -> Tool {
    let tool = Tool::new(*name, *description, Arc::new(schema(*work)));
    let hint = |hints: &Map<String, Value>, name| hints.get(name).and_then(Value::as_bool);
    let title = |hints: &Map<String, Value>| Some(hints.get("title")?.as_str()?.to_owned());
    match hints(name, *work) {
        Some(hints) => tool.with_annotations(ToolAnnotations::from_raw(
            title(&hints),
            hint(&hints, "readOnlyHint"),
            hint(&hints, "destructiveHint"),
            hint(&hints, "idempotentHint"),
            hint(&hints, "openWorldHint"),
        )),
        None => tool,
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.listed.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let listed = self.listed.iter().any(|tool| tool.name == request.name);
        let Some((name, work)) = find(&request.name).filter(|_| listed) else {
            let message = format!("no tool {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let argument = |name: &str| request.arguments.as_ref().and_then(|all| all.get(name));
        let key = argument("key").and_then(Value::as_str).unwrap_or_default();
        let value = argument("value")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let (answer, fault) = self.state.run(name, work, key, value);
        if work == Work::Slow {
            let wait = argument("ms").and_then(Value::as_u64).unwrap_or(300);
            tokio::time::sleep(Duration::from_millis(wait).min(LONGEST)).await;
        }
        let connection = context.extensions.get::<http::request::Parts>();
        if let Some(verdict) = connection.and_then(|parts| parts.extensions.get::<Verdict>()) {
            verdict.set(fault);
        }
        match fault {
            Fault::Rpc => Err(ErrorData::internal_error("failed as instructed", None)),
            Fault::Result => {
                let words = vec![ContentBlock::text("failed as instructed")];
                Ok(CallToolResult::error(words).into())
            }
            Fault::None | Fault::Drop | Fault::Unavailable => {
                Ok(CallToolResult::success(vec![ContentBlock::text(answer)]).into())
            }
        }
    }
}
