//! Tools and calls in one line.

use std::sync::Arc;

use callward_core::{
    Annotations, CallPlan, Profile, ReplicaSetId, Resolved, Source, Tool, ToolCall, ToolDefinition,
};
use serde_json::Value;

/// Starts a tool of this name in replica set `test`, without any hint.
pub fn tool(name: &str) -> ToolBuilder {
    ToolBuilder {
        name: name.to_owned(),
        set: "test".to_owned(),
        hints: Annotations::default(),
        profile: Profile::standard(),
    }
}

/// Starts a call with these arguments.
#[expect(
    clippy::needless_pass_by_value,
    reason = "`call(&tool, json!({}))` reads better"
)]
pub fn call(tool: &Arc<Tool>, arguments: Value) -> ToolCall {
    ToolCall::new(tool.clone(), arguments.to_string())
}

/// A tool under construction.
#[derive(Debug, Clone)]
#[must_use]
pub struct ToolBuilder {
    name: String,
    set: String,
    hints: Annotations,
    profile: Profile,
}

impl ToolBuilder {
    /// Sets `readOnlyHint`.
    pub fn read_only(self) -> Self {
        self.hint(|hints| hints.read_only_hint = Some(true))
    }

    /// Sets `idempotentHint`, and `destructiveHint: false`.
    pub fn idempotent(self) -> Self {
        self.hint(|hints| {
            hints.idempotent_hint = Some(true);
            hints.destructive_hint = Some(false);
        })
    }

    /// Sets `destructiveHint`.
    pub fn destructive(self) -> Self {
        self.hint(|hints| hints.destructive_hint = Some(true))
    }

    /// Changes the hints.
    pub fn hint(mut self, change: impl FnOnce(&mut Annotations)) -> Self {
        change(&mut self.hints);
        self
    }

    /// Puts the tool into another replica set.
    pub fn set(mut self, set: &str) -> Self {
        set.clone_into(&mut self.set);
        self
    }

    /// Plans by another profile.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Finishes the tool.
    pub fn build(self) -> Arc<Tool> {
        let name = self.name.parse().unwrap();
        let definition = ToolDefinition::named(name, self.hints.clone());
        let resolved = Resolved::from_single(self.hints, Source::Declared);
        let plan = CallPlan::derive(&resolved, &self.profile);
        Arc::new(Tool::new(
            ReplicaSetId::new(self.set).unwrap(),
            definition,
            resolved,
            plan,
        ))
    }
}
