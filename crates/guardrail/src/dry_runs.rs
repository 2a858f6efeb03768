//! Which calls were dry runs that succeeded.

use std::collections::HashMap;
use std::time::Duration;

use callward_core::{FingerprintKey, Members, Tool, ToolCall};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// How long a dry run permits calls.
const PERMITS: Duration = Duration::from_secs(600);
/// How many dry runs are kept; the oldest is dropped for a further one.
const CAPACITY: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct DryRuns(Mutex<HashMap<u128, Instant>>);

impl DryRuns {
    pub(crate) fn add(&self, key: u128) {
        let mut runs = self.0.lock();
        if runs.len() >= CAPACITY && !runs.contains_key(&key) {
            let oldest = runs.iter().min_by_key(|(_, at)| **at);
            let oldest = oldest.map(|(key, _)| *key);
            oldest.and_then(|key| runs.remove(&key));
        }
        runs.insert(key, Instant::now());
    }

    pub(crate) fn permit(&self, key: u128) -> bool {
        let at = self.0.lock().get(&key).copied();
        at.is_some_and(|at| at.elapsed() <= PERMITS)
    }
}

/// Returns `false` if the tool's schema lists its arguments, and this one is not among them: with
/// it, the tool would run.
pub(crate) fn may_take(tool: &Tool, argument: &str) -> bool {
    let schema = tool.definition.input_schema.as_ref();
    let schema: Option<Value> = schema.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let listed = schema
        .as_ref()
        .and_then(|it| it.get("properties")?.as_object());
    listed.is_none_or(|listed| listed.contains_key(argument))
}

/// Returns what a dry run and the calls that it permits have in common: the principal, the tool
/// with its definition, and the arguments but for this one. `None` if two parsers may read the
/// arguments differently.
pub(crate) fn key(secret: &FingerprintKey, call: &ToolCall, argument: &str) -> Option<u128> {
    let text = std::str::from_utf8(call.arguments()).ok()?;
    // of two members with one name the second would be left out as well
    secret.json(call.arguments())?;
    let members = Members::read(text).ok()?;
    let others = members.iter().filter(|(name, _)| *name != argument);
    let others = others.map(|(name, value)| format!("{}:{value}", Value::from(name)));
    let others = format!("{{{}}}", others.collect::<Vec<_>>().join(","));
    let tool = call.tool();
    let hash = |text: &str| secret.bytes(text.as_bytes());
    Some(secret.combine(&[
        hash(call.caller().principal.as_str()),
        hash(tool.set().as_str()),
        hash(tool.name().as_str()),
        secret.bytes(&tool.definition.raw),
        hash(argument),
        secret.json(others.as_bytes())?,
    ]))
}
