//! The order in which the calls of a set are executed.

use std::sync::Arc;

use callward_core::ToolName;

use super::SetObserver;

/// Counts the executions of a set.
#[derive(Debug, Default)]
pub(super) struct Order {
    running: usize,
    begun: u64,
    latest: Option<Run>,
}

/// Executions of one tool with none of another between them.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(super) tool: ToolName,
    pub(super) definition: u128,
    pub(super) reads: bool,
    /// The number of the first one.
    pub(super) from: u64,
}

/// The place of an execution at whose time no other ran.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Counts from 1.
    pub(crate) number: u64,
    /// The executions just before it.
    pub(super) before: Option<Run>,
}

/// An execution that has begun.
#[derive(Debug)]
pub(super) struct Begun {
    place: Place,
    alone: bool,
}

/// An execution that has begun and not ended.
#[derive(Debug)]
pub(crate) struct Running {
    set: Arc<SetObserver>,
    begun: Begun,
}

impl Order {
    pub(super) fn begin(&mut self, tool: &ToolName, definition: u128, reads: bool) -> Begun {
        self.begun += 1;
        let (number, before) = (self.begun, self.latest.clone());
        let is_same = |run: &&Run| run.tool == *tool && run.definition == definition;
        let goes_on = before.as_ref().filter(is_same);
        if goes_on.is_none_or(|run| run.reads != reads) {
            self.latest = Some(Run {
                tool: tool.clone(),
                definition,
                reads,
                from: number,
            });
        }
        let alone = self.running == 0;
        self.running += 1;
        let place = Place { number, before };
        Begun { place, alone }
    }
}

impl Running {
    pub(super) const fn new(set: Arc<SetObserver>, begun: Begun) -> Self {
        Self { set, begun }
    }

    /// Returns the place of an execution that has been answered; `None` if another one ran at the
    /// same time.
    pub(crate) fn end(self) -> Option<Place> {
        let Begun { place, alone } = &self.begun;
        let is_last = *alone && self.set.inner.lock().order.begun == place.number;
        is_last.then(|| place.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.set.inner.lock().order.running -= 1;
    }
}
