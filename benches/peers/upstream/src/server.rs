//! The tools, as rmcp asks for them.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use crate::fault::{Fault, Verdict};
use crate::state::State;
use crate::tools::{self, Work};

/// Longer waits are cut to this.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub(crate) struct Tools {
    state: Arc<State>,
    listed: Arc<[Tool]>,
    noop: Arc<str>,
}

impl Tools {
    pub(crate) fn new(state: Arc<State>) -> Self {
        Self {
            state,
            listed: tools::listed().into(),
            noop: "x".repeat(200).into(),
        }
    }

    fn work(&self, work: Work, key: &str, value: &str) -> String {
        match work {
            Work::Noop => self.noop.to_string(),
            Work::Get | Work::Slow => self.state.get(key).unwrap_or_else(|| "nothing".to_owned()),
            Work::Append => {
                self.state.append(key, value);
                "appended".to_owned()
            }
            Work::Set => {
                self.state.set(key, value);
                "set".to_owned()
            }
            Work::Delete => {
                self.state.delete(key);
                "deleted".to_owned()
            }
        }
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
        let Some((name, work)) = tools::find(&request.name) else {
            let message = format!("no tool {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let argument = |name: &str| request.arguments.as_ref().and_then(|all| all.get(name));
        let key = argument("key").and_then(Value::as_str).unwrap_or_default();
        let value = argument("value")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let nth = if work == Work::Noop {
            self.state.noop();
            0
        } else {
            self.state.ran(name, key)
        };
        if work == Work::Slow {
            let wait = argument("ms").and_then(Value::as_u64).unwrap_or(300);
            tokio::time::sleep(Duration::from_millis(wait).min(LONGEST)).await;
        }
        let answer = self.work(work, key, value);
        let fault = self.state.faults.decide(name, key, nth);
        let connection = context.extensions.get::<http::request::Parts>();
        if let Some(verdict) = connection.and_then(|parts| parts.extensions.get::<Verdict>()) {
            verdict.set(fault);
        }
        match fault {
            Fault::Rpc => Err(ErrorData::internal_error("failed, as it was told to", None)),
            Fault::Result => {
                let words = vec![ContentBlock::text("failed, as it was told to")];
                Ok(CallToolResult::error(words).into())
            }
            Fault::None | Fault::Drop | Fault::Unavailable => {
                Ok(CallToolResult::success(vec![ContentBlock::text(answer)]).into())
            }
        }
    }
}
