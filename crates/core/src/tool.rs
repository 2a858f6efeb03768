//! One callable operation.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::members::{Members, Text};
use crate::one_line::one_line;
use crate::readable;
use crate::refine::{Applied, Refinements};
use crate::{
    Annotations, CallPlan, Fingerprint, FingerprintKey, Instances, InvalidName, Profile,
    ReplicaSetId, Resolved, Source, ToolName, Verifier,
};

mod shape;

/// A tool as its server lists it: the raw JSON object, and the members policy reads.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    raw: Bytes,
    name: ToolName,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Box<RawValue>>,
    annotations: Annotations,
    requires_task: bool,
    fault: Option<Box<str>>,
}

/// A listed tool that cannot be used, and why.
#[derive(Debug)]
pub struct InvalidDefinition {
    tool: Option<String>,
    reason: String,
}

impl InvalidDefinition {
    fn of(raw: &[u8], reason: String) -> Self {
        let name = || {
            let members = Members::read(std::str::from_utf8(raw).ok()?).ok()?;
            let (_, name) = members.iter().rfind(|(member, _)| *member == "name")?;
            let Text(name) = serde_json::from_str(name.get()).ok()?;
            Some(name.into_owned())
        };
        Self {
            tool: name(),
            reason,
        }
    }

    /// Returns the tool's name, if the listing gave one that can be read.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }
}

impl fmt::Display for InvalidDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "tool {tool:?}: {}", self.reason),
            None => write!(f, "a listed tool: {}", self.reason),
        }
    }
}

impl std::error::Error for InvalidDefinition {}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(deserialize_with = "member::name")]
    name: ToolName,
    #[serde(default, deserialize_with = "member::title")]
    title: Option<String>,
    #[serde(default, deserialize_with = "member::description")]
    description: Option<String>,
    #[serde(default)]
    input_schema: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "member::annotations")]
    annotations: Option<Annotations>,
    // read leniently: whatever else it holds is not for the runtime
    #[serde(default)]
    execution: serde_json::Value,
}

/// The members of a listed tool, each read so that an error names it.
mod member {
    use serde::de::{Deserialize, Deserializer};

    use crate::ToolName;
    use crate::annotations::{Annotations, named};

    macro_rules! member {
        ($name:ident: $type:ty) => {
            pub(super) fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                <$type>::deserialize(from).map_err(|error| named(stringify!($name), error))
            }
        };
    }

    member!(name: ToolName);
    member!(title: Option<String>);
    member!(description: Option<String>);
    member!(annotations: Option<Annotations>);
}

impl ToolDefinition {
    /// Reads one element of a `tools/list` answer. The bytes are kept as they are, but an escape of
    /// a lone surrogate becomes that of the replacement character: many parsers refuse it.
    ///
    /// # Errors
    ///
    /// [`InvalidDefinition`] names the tool, if it is known, and the member that is wrong.
    pub fn from_json(raw: impl Into<Bytes>) -> Result<Self, InvalidDefinition> {
        let raw = readable::without_lone_surrogates(raw.into());
        Self::read(&raw).map_err(|reason| InvalidDefinition::of(&raw, reason))
    }

    /// Reads one element of a `tools/list` answer that goes on to clients, who refuse the whole
    /// list if one tool is not as the protocol says. If it cannot be used, the definition has a
    /// [fault](Self::fault). Where it has no usable name, `#` and its position stand in for one.
    #[must_use]
    pub fn from_list(raw: impl Into<Bytes>, position: usize) -> Self {
        let raw = readable::without_lone_surrogates(raw.into());
        let read = match readable::check(&raw, readable::MAX_DEFINITION_DEPTH) {
            Err(why) => Err(format!("its definition {why}")),
            Ok(()) => Self::read(&raw),
        };
        match read {
            Ok(read) if read.input_schema.is_none() => read.with_fault("it has no `inputSchema`"),
            Ok(read) => read,
            Err(reason) => {
                // the reason names the member; its line and column say little
                let reason = reason
                    .rsplit_once(" at line ")
                    .map_or(&*reason, |(text, _)| text);
                let tool = InvalidDefinition::of(&raw, String::new()).tool;
                let name = tool.and_then(|name| ToolName::new(name).ok());
                let name = name.unwrap_or_else(|| ToolName::numbered(position));
                let empty = Self::empty(name);
                Self { raw, ..empty }.with_fault(reason)
            }
        }
    }

    /// Makes the definition of a tool that takes any object.
    #[must_use]
    pub fn named(name: ToolName, annotations: Annotations) -> Self {
        let raw = json!({
            "name": name,
            "inputSchema": {"type": "object"},
            "annotations": annotations,
        });
        Self {
            raw: raw.to_string().into(),
            annotations,
            ..Self::empty(name)
        }
    }

    fn empty(name: ToolName) -> Self {
        Self {
            raw: Bytes::new(),
            name,
            title: None,
            description: None,
            input_schema: None,
            annotations: Annotations::default(),
            requires_task: false,
            fault: None,
        }
    }

    fn read(raw: &Bytes) -> Result<Self, String> {
        let tool = serde_json::from_slice(raw).map_err(|error| error.to_string())?;
        shape::check(tool)?;
        let listed: Listed = serde_json::from_str(tool.get()).map_err(|error| error.to_string())?;
        Ok(Self {
            raw: raw.clone(),
            name: listed.name,
            title: listed.title,
            description: listed.description,
            input_schema: listed.input_schema,
            annotations: listed.annotations.unwrap_or_default(),
            requires_task: listed.execution["taskSupport"] == "required",
            fault: None,
        })
    }

    /// Notes that the tool cannot be used, and why. At most 200 characters are kept, in one line.
    #[must_use]
    pub fn with_fault(mut self, reason: &str) -> Self {
        self.fault = Some(one_line(reason, 200).into());
        self
    }

    /// Returns why the tool cannot be offered, if that was found while its list was read.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Returns the listed object, byte for byte.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Returns the tool's name, as its server spells it.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// Returns the display name: `title`, or else `annotations.title`.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref().or(self.annotations.title.as_deref())
    }

    /// Returns the description.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns the schema of the arguments, as raw JSON.
    #[must_use]
    pub fn input_schema(&self) -> Option<&RawValue> {
        self.input_schema.as_deref()
    }

    /// Returns the hints the server declares for the tool.
    #[must_use]
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// Returns whether the tool can be called as a task only (`execution.taskSupport` is
    /// `required`).
    #[must_use]
    pub const fn requires_task(&self) -> bool {
        self.requires_task
    }

    /// Works out the digest of the definition: another definition under the same name has another.
    #[must_use]
    pub fn digest(&self) -> Fingerprint {
        // One that has no structural digest (a duplicate member, say) is identified by its bytes;
        // both are keyed alike in every process, so that replicas agree.
        let key = FingerprintKey::fixed();
        key.json(&self.raw).unwrap_or_else(|_| key.bytes(&self.raw))
    }
}

/// One callable operation of one replica set: definition, verdict and plan.
///
/// Immutable and shared by `Arc`: a changed definition is another `Tool`.
#[derive(Debug, Clone)]
pub struct Tool {
    set: ReplicaSetId,
    definition: ToolDefinition,
    resolved: Resolved,
    plan: Arc<CallPlan>,
    refinements: Refinements,
    verifier: Option<Verifier>,
    digest: Fingerprint,
    instances: Instances,
}

impl Tool {
    /// Binds a definition to what was made of it.
    #[must_use]
    pub fn new(
        set: ReplicaSetId,
        definition: ToolDefinition,
        resolved: Resolved,
        plan: CallPlan,
    ) -> Self {
        let digest = definition.digest();
        Self {
            set,
            definition,
            resolved,
            plan: Arc::new(plan),
            refinements: Refinements::default(),
            verifier: None,
            digest,
            instances: Instances::default(),
        }
    }

    /// Makes a tool that changes nothing.
    ///
    /// This and its three siblings make a tool of the replica set `local` for a layer that runs
    /// without a stack. The plan is that of [`Profile::standard`].
    ///
    /// ```
    /// use callward_core::{Effect, Tool, ToolCall};
    ///
    /// let call = ToolCall::new(Tool::read_only("get_rate")?, r#"{"currency":"EUR"}"#);
    /// assert_eq!(call.plan().effect, Effect::ReadOnly);
    /// # Ok::<(), callward_core::InvalidName>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidName`] if the name cannot be that of a tool.
    pub fn read_only(name: &str) -> Result<Arc<Self>, InvalidName> {
        Self::with_hints(name, Annotations::default().with_read_only(true))
    }

    /// Makes a tool that changes something, and nothing more when an equal call follows.
    ///
    /// # Errors
    ///
    /// As [`read_only`](Self::read_only).
    pub fn idempotent(name: &str) -> Result<Arc<Self>, InvalidName> {
        let hints = Annotations::default().with_destructive(false);
        Self::with_hints(name, hints.with_idempotent(true))
    }

    /// Makes a tool that changes something each time it runs.
    ///
    /// # Errors
    ///
    /// As [`read_only`](Self::read_only).
    pub fn mutating(name: &str) -> Result<Arc<Self>, InvalidName> {
        Self::with_hints(name, Annotations::default().with_destructive(false))
    }

    /// Makes a tool that may destroy or overwrite something.
    ///
    /// # Errors
    ///
    /// As [`read_only`](Self::read_only).
    pub fn destructive(name: &str) -> Result<Arc<Self>, InvalidName> {
        Self::with_hints(name, Annotations::default().with_destructive(true))
    }

    fn with_hints(name: &str, hints: Annotations) -> Result<Arc<Self>, InvalidName> {
        let set = ReplicaSetId::new("local")?;
        let definition = ToolDefinition::named(ToolName::new(name)?, hints.clone());
        let resolved = Resolved::from_single(hints, Source::Operator);
        let plan = CallPlan::derive(&resolved, &Profile::standard());
        Ok(Arc::new(Self::new(set, definition, resolved, plan)))
    }

    /// Adds rules over the arguments. Default: none.
    #[must_use]
    pub fn with_refinements(mut self, refinements: Refinements) -> Self {
        self.refinements = refinements;
        self
    }

    /// Sets which tool checks the effect of a call of this one. Default: none is known.
    #[must_use]
    pub fn with_verifier(mut self, verifier: Option<Verifier>) -> Self {
        self.verifier = verifier;
        self
    }

    /// Sets how the state behind the tool is divided among callers. Default: [`Instances::Shared`].
    #[must_use]
    pub const fn with_instances(mut self, instances: Instances) -> Self {
        self.instances = instances;
        self
    }

    /// Returns how the state behind the tool is divided among callers.
    #[must_use]
    #[inline]
    pub const fn instances(&self) -> Instances {
        self.instances
    }

    /// Returns the replica set that offers the tool.
    #[must_use]
    pub fn set(&self) -> &ReplicaSetId {
        &self.set
    }

    /// Returns `true` if the tool has this tag, from any source.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        let tags = self.resolved.annotations().tags.as_deref();
        tags.unwrap_or_default().iter().any(|own| own == tag)
    }

    /// Returns the tool's name, as its server spells it.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        self.definition.name()
    }

    /// Returns the definition as listed.
    #[must_use]
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Returns the effective hints, each with its source and reason.
    #[must_use]
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// Returns the tool's own plan. It is that of a call only where no rule says otherwise: a layer
    /// asks the call ([`ToolCall::plan`](crate::ToolCall::plan)).
    #[must_use]
    pub fn plan(&self) -> &Arc<CallPlan> {
        &self.plan
    }

    /// Returns the rules over the arguments.
    #[must_use]
    pub fn refinements(&self) -> &Refinements {
        &self.refinements
    }

    /// Returns the plan that applies.
    #[must_use]
    pub fn plan_applied(&self, applied: Applied) -> &Arc<CallPlan> {
        self.refinements.plan(applied).unwrap_or(&self.plan)
    }

    /// Returns the hints that the plan that applies was derived from.
    #[must_use]
    pub fn resolved_applied(&self, applied: Applied) -> &Resolved {
        self.refinements.resolved(applied).unwrap_or(&self.resolved)
    }

    /// Returns the tool to check with what a call of this one did whose answer never came.
    #[must_use]
    pub fn verifier(&self) -> Option<&Verifier> {
        self.verifier.as_ref()
    }

    /// Returns the digest of the definition: another definition under the same name has another.
    #[must_use]
    pub fn digest(&self) -> Fingerprint {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effect;

    #[test]
    fn a_tool_made_in_one_line_has_the_plan_of_its_hints() {
        type Make = fn(&str) -> Result<Arc<Tool>, InvalidName>;
        for (make, effect) in [
            (Tool::read_only as Make, Effect::ReadOnly),
            (Tool::idempotent, Effect::Idempotent),
            (Tool::mutating, Effect::Mutating),
            (Tool::destructive, Effect::Destructive),
        ] {
            let tool = make("rate").unwrap();
            assert_eq!((tool.plan().effect, tool.set().as_str()), (effect, "local"));
            let listed = ToolDefinition::from_json(tool.definition().raw().clone()).unwrap();
            assert_eq!(listed.annotations(), tool.definition().annotations());
            assert_eq!(listed.digest(), tool.digest());
            assert!(make("").is_err());
        }
    }
}
