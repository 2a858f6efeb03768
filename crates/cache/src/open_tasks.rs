//! Writes that go on as tasks after their answer.
//!
//! An open task counts as a write in flight for a minute. After that, answers that depend on what
//! it may change are served within the burst window only, until the task is seen to end or its
//! server keeps it no longer. Its end raises the epochs, as that of any write, before its client
//! knows of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{ReplicaSetId, TaskHandle, ToolCall, ToolError, ToolOutput, ToolService};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;
use tower::ServiceExt;

use crate::scope::{Moment, Scope, ScopeSet, Scopes};
use crate::shared::Shared;

/// How long an open task counts as a write in flight.
const IN_FLIGHT: Duration = Duration::from_secs(60);
/// How many open tasks are followed.
const MAX_OPEN: usize = 1024;

/// The open tasks of writes, by replica set and by the ids of their servers.
#[derive(Debug, Default)]
pub(crate) struct OpenTasks(Mutex<HashMap<(ReplicaSetId, String), OpenTask>>);

#[derive(Debug)]
struct OpenTask {
    write_set: ScopeSet,
    settled: Moment,
    certain: Moment,
}

impl OpenTasks {
    /// Follows a task, before its write is counted out. Returns `false` if too many are open.
    pub(crate) fn begin(
        &self,
        set: &ReplicaSetId,
        task: TaskHandle,
        write_set: &ScopeSet,
        (clock, now): (&Scopes, Instant),
    ) -> bool {
        let at = |time| clock.at(now.checked_add(time).unwrap_or(now + FAR));
        let lifetime = task.lifetime();
        let opened = OpenTask {
            write_set: write_set.clone(),
            settled: at(IN_FLIGHT.min(lifetime)),
            certain: at(lifetime),
        };
        let mut open = self.0.lock();
        open.retain(|_, task| task.certain > clock.at(now));
        if open.len() >= MAX_OPEN {
            return false;
        }
        let before = open.insert((set.clone(), task.id), opened);
        let before = before.iter().flat_map(|task| task.write_set.iter());
        for scope in before.chain(write_set.iter()) {
            wait_for(scope, &open);
        }
        true
    }

    /// Notes that a task has ended: what was read before it is invalid.
    fn end(&self, set: &ReplicaSetId, id: String) {
        let mut open = self.0.lock();
        if let Some(ended) = open.remove(&(set.clone(), id)) {
            for scope in ended.write_set.iter() {
                scope.raise();
                wait_for(scope, &open);
            }
        }
    }
}

/// A time that every clock can be advanced by.
const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Lets reads of a scope wait for those tasks that are open. The caller holds the lock, so that no
/// other task begins or ends meanwhile.
fn wait_for(scope: &Arc<Scope>, open: &HashMap<(ReplicaSetId, String), OpenTask>) {
    let writes = |task: &&OpenTask| task.write_set.iter().any(|own| Arc::ptr_eq(own, scope));
    let times = open.values().filter(writes);
    let times = times.map(|task| (task.settled, task.certain));
    let latest = times.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)));
    scope.wait_for_tasks(latest);
}

/// Asks for the state of a task, and notes its end before its client knows of it.
pub(crate) async fn watch<S: ToolService>(
    shared: Arc<Shared>,
    inner: S,
    call: ToolCall,
) -> Result<ToolOutput, ToolError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Asked {
        task_id: String,
    }
    let set = call.tool().set().clone();
    let asked: Option<Asked> = serde_json::from_slice(call.arguments()).ok();
    let result = inner.oneshot(call).await;
    if let Some(asked) = asked
        && has_ended(&result)
    {
        shared.open_tasks.end(&set, asked.task_id);
    }
    result
}

/// The code of a task that its server does not know any more.
const UNKNOWN: i64 = -32602;

fn has_ended(result: &Result<ToolOutput, ToolError>) -> bool {
    #[derive(Deserialize)]
    struct State<'a> {
        status: &'a str,
    }
    match result {
        Ok(output) => {
            let state: Option<State<'_>> = serde_json::from_slice(output.body()).ok();
            let is_open = |state: State<'_>| matches!(state.status, "working" | "input_required");
            state.is_some_and(|state| !is_open(state))
        }
        Err(error) => error.may_have_run() && error.code == Some(UNKNOWN),
    }
}
