//! What a layer keeps for each tool, found again without a look-up.

use std::fmt;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;

use crate::Tool;

/// What a layer keeps for the tools called through it, found again by a tool's address.
///
/// A look-up hashes names, and may take a lock on a part of a map, which threads that call the same
/// tool then hand to and fro. A tool's address needs no hash, and a slot is read without a lock and
/// without a count of references. Each of 64 slots holds what belongs to one tool; tools that meet in
/// a slot are looked up as ever, all but the first.
///
/// Only for what stays the same as long as the tool's version lives: what was found is not looked up
/// again.
pub struct ByTool<T> {
    slots: [ArcSwapOption<Found<T>>; SLOTS],
}

struct Found<T> {
    /// Not held, but its address is not given to another tool as long as somebody remembers it.
    tool: Weak<Tool>,
    value: T,
}

impl<T> ByTool<T> {
    /// Starts with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| ArcSwapOption::empty()),
        }
    }

    /// Reads what is kept for a tool, if that is known.
    pub fn ask<R>(&self, tool: &Arc<Tool>, read: impl FnOnce(&T) -> R) -> Option<R> {
        let found = self.slots.get(place(tool))?.load();
        let found = found.as_ref().filter(|found| found.is_of(tool))?;
        Some(read(&found.value))
    }

    /// Reads what is kept for a tool; where it is not known, `look_up` tells.
    pub fn with<R>(
        &self,
        tool: &Arc<Tool>,
        look_up: impl FnOnce() -> T,
        read: impl FnOnce(&T) -> R,
    ) -> R {
        let Some(slot) = self.slots.get(place(tool)) else {
            return read(&look_up());
        };
        let found = slot.load();
        match &*found {
            Some(found) if found.is_of(tool) => read(&found.value),
            // a tool that lives keeps its slot: two that meet must not drive each other out
            Some(found) if found.tool.strong_count() > 0 => read(&look_up()),
            _ => {
                let found = Arc::new(Found {
                    tool: Arc::downgrade(tool),
                    value: look_up(),
                });
                slot.store(Some(found.clone()));
                read(&found.value)
            }
        }
    }
}

impl<T> Found<T> {
    fn is_of(&self, tool: &Arc<Tool>) -> bool {
        std::ptr::eq(self.tool.as_ptr(), Arc::as_ptr(tool))
    }
}

impl<T> Default for ByTool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for ByTool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByTool").finish_non_exhaustive()
    }
}

/// More than most servers have tools; a power of two.
const SLOTS: usize = 64;

/// Spreads addresses, whose lowest bits are alike, over the slots.
fn place(tool: &Arc<Tool>) -> usize {
    let address = Arc::as_ptr(tool).addr();
    (address >> 4).wrapping_mul(0x9E37_79B1) >> 8 & (SLOTS - 1)
}
