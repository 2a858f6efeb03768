//! What a replay needs of the world it makes up: tools, and a clock that stands still.

use std::sync::Arc;

use callward_core::{
    Annotations, CallPlan, Profile, ReplicaSetId, Resolved, Source, Tool, ToolDefinition,
};
use tokio::runtime::{self, Runtime};

use crate::ReplayError;

/// Builds a runtime of one thread whose clock stands still.
pub(crate) fn paused() -> Result<Runtime, ReplayError> {
    let mut builder = runtime::Builder::new_current_thread();
    let builder = builder.enable_time().start_paused(true);
    builder.build().map_err(ReplayError::cache)
}

/// Makes a tool that declares these hints.
pub(crate) fn tool(
    set: &str,
    name: &str,
    profile: &Profile,
    declare: impl FnOnce(&mut Annotations),
) -> Result<Arc<Tool>, ReplayError> {
    let mut hints = Annotations::default();
    declare(&mut hints);
    let definition = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
    let definition = ToolDefinition::from_json(definition).map_err(ReplayError::cache)?;
    let resolved = Resolved::from_single(hints, Source::Declared);
    let plan = CallPlan::derive(&resolved, profile);
    let set = ReplicaSetId::new(set).map_err(ReplayError::cache)?;
    Ok(Arc::new(Tool::new(set, definition, resolved, plan)))
}
