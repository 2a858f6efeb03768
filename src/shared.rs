//! The state that every scan updates, and what follows from a change of it.

use std::sync::Arc;

use callward_breaker::BreakerSet;
use callward_cache::CacheHandle;
use callward_core::{List, Method, ReplicaSetId};
use callward_loopguard::LoopGuardLayer;
use callward_registry::{Changes, KeptName, Registry, ToolChange};
use callward_retry::RetryLayer;
use callward_retry::hedge::HedgeLayer;
use callward_router::{RouteEvent, RouteEvents};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::plugin::Plugin;

/// The state that every scan updates.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) plugins: Arc<[Plugin]>,
    pub(crate) breakers: BreakerSet,
    pub(crate) cache: CacheHandle,
    pub(crate) loop_guard: LoopGuardLayer,
    pub(crate) retry: RetryLayer,
    pub(crate) hedge: HedgeLayer,
    /// How often each list changed.
    pub(crate) changed: watch::Sender<[u64; List::ALL.len()]>,
    pub(crate) events: Arc<RouteEvents>,
    /// The background tasks.
    pub(crate) tasks: Mutex<JoinSet<()>>,
}

impl Shared {
    /// Runs a task in the background, and forgets those that ended.
    pub(crate) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        runtime: &Handle,
    ) -> AbortHandle {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, runtime)
    }

    /// Applies the changes of a set's tools that other hints or rules make, and says so.
    pub(crate) fn follow_hints(&self, set: &ReplicaSetId, changes: &Changes) {
        self.follow(set, changes);
        for tool in changes.changed.iter().cloned() {
            let set = set.clone();
            self.events
                .send(|| RouteEvent::AnnotationsUpdated { set, tool });
        }
    }

    /// Applies the changes of a set's tools: purges results, and notifies clients and listeners.
    pub(crate) fn follow(&self, set: &ReplicaSetId, changes: &Changes) {
        // a removed tool may return with the same definition and be another one
        for other in changes.changed.iter().chain(&changes.removed) {
            self.cache.purge_tool(set, other);
        }
        for tool in changes.added.iter().cloned() {
            let set = set.clone();
            self.events
                .send(|| RouteEvent::ToolRegistered { set, tool });
        }
        for tool in changes.removed.iter().cloned() {
            let set = set.clone();
            self.events
                .send(|| RouteEvent::ToolUnregistered { set, tool });
        }
        for refused in &changes.refused {
            self.events.send(|| RouteEvent::ToolRefused {
                set: set.clone(),
                server: refused.server.clone(),
                tool: refused.tool.clone(),
                reason: refused.reason.clone(),
            });
        }
        let fields = |change: &ToolChange| {
            change
                .changes
                .iter()
                .map(|it| it.field.clone())
                .collect::<Vec<_>>()
        };
        for held in &changes.held {
            self.events.send(|| RouteEvent::ToolHeld {
                set: held.set.clone(),
                server: held.server.clone(),
                tool: held.tool.clone(),
                reason: held.reason.clone(),
                fields: fields(held),
            });
        }
        for changed in &changes.followed {
            self.events.send(|| RouteEvent::ToolChanged {
                set: changed.set.clone(),
                server: changed.server.clone(),
                tool: changed.tool.clone(),
                fields: fields(changed),
            });
        }
        for renamed in changes.renamed.iter().cloned() {
            let KeptName {
                set, tool, name, ..
            } = renamed;
            self.events
                .send(|| RouteEvent::ToolRenamed { set, tool, name });
        }
        let listed = changes
            .added
            .iter()
            .chain(&changes.changed)
            .chain(&changes.removed);
        let lists = listed
            .map(|name| Method::by_name(name.as_str()).map_or(Some(List::Tools), Method::list));
        let named = changes.named.then_some(List::Tools);
        self.note_changed(lists.flatten().chain(named));
    }

    pub(crate) fn note_changed(&self, lists: impl Iterator<Item = List>) {
        self.changed.send_if_modified(|counts| {
            let before = *counts;
            lists.for_each(|list| counts[list as usize] += 1);
            before != *counts
        });
    }
}
