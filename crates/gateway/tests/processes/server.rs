//! A server as a shell script, and what it starts.

use std::sync::Arc;

use callward::ToolCall;
use callward::core::{Caller, Instances, Tool};
use serde_json::json;

use crate::scripted::Script;

pub(crate) const CALLWARD: &str = env!("CARGO_BIN_EXE_callward");

/// Starts three processes that are hard to end, once: one ignores SIGTERM, one has left its
/// session, and one has lost its parent, left its session and ignores SIGTERM. The first two keep
/// the server's output open.
pub(crate) const STUBBORN: &str = r#"[ -n "$began" ] || { began=1;
    (trap "" TERM; exec sleep 1000) &
    setsid sleep 1001 &
    (trap "" TERM HUP INT; setsid sleep 1002 >/dev/null 2>&1 &); }"#;

/// A legacy server that runs the first before it reads anything, and again before each request;
/// and the second at each call.
pub(crate) fn script<'a>(each: &'a str, call: &'a str) -> Script<'a> {
    let tools = json!([{"name": "x", "inputSchema": {"type": "object"}}]);
    Script {
        each,
        call,
        ..Script::counting(&tools)
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
