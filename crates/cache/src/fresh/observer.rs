//! Who is told that a tool's answers change.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tollgate_core::Tool;

type Told = dyn Fn(&Arc<Tool>, &str) + Send + Sync;

/// Who is told that a tool's answers change. Unlike an event, this is never lost.
#[derive(Default)]
pub(crate) struct Observer(OnceLock<Box<Told>>);

impl Observer {
    /// Names who is told; says whether nobody was before.
    pub(crate) fn set(&self, told: impl Fn(&Arc<Tool>, &str) + Send + Sync + 'static) -> bool {
        self.0.set(Box::new(told)).is_ok()
    }

    pub(super) fn tell(&self, tool: &Arc<Tool>, evidence: &str) {
        if let Some(told) = self.0.get() {
            told(tool, evidence);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer")
            .field(&self.0.get().is_some())
            .finish()
    }
}
