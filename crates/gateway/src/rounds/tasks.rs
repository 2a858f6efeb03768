//! Tasks (`io.modelcontextprotocol/tasks`): calls that go on after their answer.
//!
//! A client sees the id of a task sealed: only its principal can use it, and only at the server
//! that runs the task.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::{Method, OutputStatus};
use callward::{
    CallRecord, Delivery, ErrorKind, Principal, Stack, Tool, ToolCall, ToolError, ToolOutput,
};
use callward_mcp::server::CallRequest;
use callward_mcp::wire::object;
use serde_json::Value;

use super::seal::{Sealer, State, Task};
use super::{Rounds, answerer, internal};

/// How long a server's own id may be, in bytes: clients repeat it in a header, sealed.
const MAX_ID: usize = 1024;

impl Rounds {
    /// Seals the id of the task that a call of a tool made; other results stay as they are. The
    /// record has the server that answered.
    pub(crate) fn seal_task(
        &self,
        output: ToolOutput,
        principal: &Principal,
        tool: &Tool,
        record: Option<&Arc<CallRecord>>,
    ) -> Result<ToolOutput, ToolError> {
        if output.status() != OutputStatus::Task {
            return Ok(output);
        }
        let stated = output.task().filter(|task| task.id.len() <= MAX_ID);
        let stated = stated.ok_or_else(|| {
            let text = format!(
                "the server answered with a task without a `taskId` of at most {MAX_ID} bytes"
            );
            ToolError::new(ErrorKind::Protocol, Delivery::Answered, text)
        })?;
        let Some(server) = answerer(record) else {
            return Err(internal("it is not known which server runs the task"));
        };
        // at least a second, the unit in which it is counted
        let lifetime = stated.lifetime().max(Duration::from_secs(1));
        let task = Task {
            server,
            set: tool.set().clone(),
            tool: tool.name().clone(),
            id: stated.id,
        };
        let binding = Sealer::task_binding(principal);
        let id = self.sealer.seal(&binding, State::Task(task), lifetime);
        let id = id.map_err(|_| internal("the id of the task cannot be sealed"))?;
        with_id(&output, &id)
    }

    /// Prepares a request about a task: a call of the tool that made it, at its server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`] if the client does not declare the extension, or if the id is not
    /// one of this process for its principal.
    pub(crate) fn of_task(
        &self,
        stack: &Stack,
        request: &CallRequest,
    ) -> Result<(ToolCall, Task), ToolError> {
        if !request.capabilities.take_tasks() {
            let text = "requests about tasks need the extension `io.modelcontextprotocol/tasks`: \
                        declare it in `clientCapabilities`";
            let needed =
                r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
            let error = ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text);
            return Err(error
                .with_code(-32021)
                .with_data(Bytes::from_static(needed.as_bytes())));
        }
        let binding = Sealer::task_binding(&request.caller.principal);
        let sealed = Value::from(request.name.as_str()).to_string();
        let Some(State::Task(task)) = self.sealer.open(&binding, sealed.as_bytes()) else {
            return Err(unknown());
        };
        let catalogue = stack.catalogue();
        let mut tools = catalogue.entries().iter().map(|entry| entry.tool());
        let made = tools.find(|tool| *tool.set() == task.set && *tool.name() == task.tool);
        let made = made.ok_or_else(unknown)?;
        let own = Value::from(task.id.as_str()).to_string();
        let params = object::set_member(&request.arguments, "taskId", own.as_bytes());
        let params = params.map_err(|error| internal(error.to_string()))?;
        let call = stack.prepare_method(Arc::new(made.of_task(request.method)), params);
        Ok((call.pinned_to(task.server.clone()), task))
    }
}

impl Task {
    /// Shows an answer about the task under the id that the client has for it.
    pub(crate) fn shown(
        &self,
        result: Result<ToolOutput, ToolError>,
        request: &CallRequest,
    ) -> Result<ToolOutput, ToolError> {
        match result {
            Ok(output) if request.method == Method::GetTask => {
                with_id(&output, &Value::from(request.name.as_str()).to_string())
            }
            Err(mut error) if !self.id.is_empty() && error.message.contains(&self.id) => {
                error.message = error.message.replace(&self.id, &request.name).into();
                Err(error)
            }
            result => result,
        }
    }
}

fn with_id(output: &ToolOutput, id: &str) -> Result<ToolOutput, ToolError> {
    let shown = object::set_member(output.body(), "taskId", id.as_bytes());
    let shown = shown.map_err(|error| internal(error.to_string()))?;
    ToolOutput::from_json(shown).map_err(|error| internal(error.to_string()))
}

fn unknown() -> ToolError {
    let text = "`taskId` is not one of this gateway for this client, or is too old";
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text).with_code(-32602)
}
