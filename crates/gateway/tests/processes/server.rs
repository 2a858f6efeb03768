//! A server as a shell script, and what it starts.

use std::path::Path;
use std::sync::Arc;

use callward::ToolCall;
use callward::core::{Caller, Instances, Tool};
use callward_mcp::client::UpstreamBuilder;
use serde_json::json;

use crate::found::Marked;

pub(crate) const CALLWARD: &str = env!("CARGO_BIN_EXE_callward");

/// Starts three processes that are hard to end: one ignores SIGTERM, one has left its session, and
/// one has lost its parent, left its session and ignores SIGTERM. The first two keep the server's
/// output open.
pub(crate) const STUBBORN: &str = "(trap \"\" TERM; exec sleep 1000) & \
     setsid sleep 1001 & \
     (trap \"\" TERM HUP INT; setsid sleep 1002 >/dev/null 2>&1 &);";

/// A legacy server that answers every request.
pub(crate) struct Script {
    first: String,
    at_a_call: String,
}

impl Script {
    /// Runs this before it reads anything.
    pub(crate) fn begins_with(first: &str) -> Self {
        Self {
            first: first.to_owned(),
            at_a_call: String::new(),
        }
    }

    /// Runs this at each call, before the answer.
    pub(crate) fn calls(at_a_call: &str) -> Self {
        Self {
            first: String::new(),
            at_a_call: at_a_call.to_owned(),
        }
    }

    /// Holds this folder from its only call until a moment after its input has ended.
    pub(crate) fn locks(folder: &Path) -> Self {
        let folder = folder.display();
        Self {
            first: format!("trap \"sleep 0.3; rmdir {folder}\" EXIT;"),
            at_a_call: format!("mkdir {folder} || exit 3;"),
        }
    }

    /// Returns the script; it has no apostrophes but in pairs, and no three of them.
    pub(crate) fn text(&self) -> String {
        let Self { first, at_a_call } = self;
        let answer = |result: &str| {
            format!(r#"printf "%s\n" "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{result}}}""#)
        };
        let greeting = answer(
            r#"{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}"#,
        );
        let tools =
            answer(r#"{\"tools\":[{\"name\":\"x\",\"inputSchema\":{\"type\":\"object\"}}]}"#);
        let called = answer(r#"{\"content\":[]}"#);
        format!(
            "{first}
while read -r line; do
  id=${{line#*\\\"id\\\":}}; id=${{id%%[,\\}}]*}}
  case $line in
    *\\\"initialize\\\"*) {greeting} ;;
    *tools/list*) {tools} ;;
    *tools/call*) {at_a_call} {called} ;;
  esac
done"
        )
    }

    pub(crate) fn upstream(&self, marked: &Marked) -> UpstreamBuilder {
        marked.upstream("/bin/sh", ["-c", &self.text()])
    }
}

/// A call of the tool that the script has.
pub(crate) fn call() -> ToolCall {
    callward_testkit::call(&callward_testkit::tool("x").build(), json!({}))
}

/// A call of a session, which writes.
pub(crate) fn write_of(session: &Arc<Caller>) -> ToolCall {
    let mut tool = Tool::clone(&callward_testkit::tool("x").build());
    tool.instances = Instances::Session;
    callward_testkit::call(&Arc::new(tool), json!({})).with_caller(Arc::clone(session))
}
