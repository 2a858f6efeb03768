//! Tools that are seen to do what their hints do not say get stricter plans.

use std::sync::Arc;

use callward_cache::Observed;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::shared::Shared;

/// Has tools read with what was seen of them, in earlier runs and from now on.
pub(crate) fn publish(shared: &Arc<Shared>, runtime: &Handle) {
    for seen in shared.cache.observations() {
        observe(shared, seen);
    }
    // the cache is part of what is shared
    let (weak, runtime) = (Arc::downgrade(shared), runtime.clone());
    shared.cache.on_observation(move |seen| {
        let Some(shared) = weak.upgrade() else {
            return;
        };
        let weak = weak.clone();
        // all tools of the set are read again, and the call does not wait for that
        let observed = move || weak.upgrade().map(|shared| observe(&shared, seen));
        let observed = async move {
            let _ = spawn_blocking(observed).await;
        };
        shared.spawn(observed, &runtime);
    });
}

fn observe(shared: &Shared, seen: Observed) {
    let Observed {
        set,
        tool,
        definition,
        observation,
        ..
    } = seen;
    let changes = shared
        .registry
        .observe(&set, &tool, definition, observation);
    shared.follow_hints(&set, &changes);
}
