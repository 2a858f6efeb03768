//! What a layer keeps for each tool, found again without a look-up.

use std::fmt;
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwapOption, Guard};

use crate::Tool;

/// What a layer keeps for the tools called through it, found again by a tool's address.
///
/// A look-up hashes names, and may take a lock on a part of a map, which threads that call the same
/// tool then hand to and fro. A tool's address needs no hash, and a slot is read without a lock and
/// without a count of references. Each of 128 slots holds what belongs to one tool, and a tool may be in
/// either of two; where other tools have both, it is looked up as ever.
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
        let slot = self.find(tool)?;
        slot.as_ref().map(|found| read(&found.value))
    }

    /// Reads what is kept for a tool; where it is not known, `look_up` tells.
    pub fn with<R>(
        &self,
        tool: &Arc<Tool>,
        look_up: impl FnOnce() -> T,
        read: impl FnOnce(&T) -> R,
    ) -> R {
        if let Some(slot) = self.find(tool)
            && let Some(found) = &*slot
        {
            return read(&found.value);
        }
        let found = Arc::new(Found {
            tool: Arc::downgrade(tool),
            value: look_up(),
        });
        // a tool that lives keeps its slot: two that meet must not drive each other out
        let free = self.slots_of(tool).find(|slot| {
            let found = slot.load();
            found.as_ref().is_none_or(|found| !found.is_needed())
        });
        if let Some(slot) = free {
            slot.store(Some(found.clone()));
        }
        read(&found.value)
    }

    fn find(&self, tool: &Arc<Tool>) -> Option<Guard<Option<Arc<Found<T>>>>> {
        let mut slots = self.slots_of(tool).map(ArcSwapOption::load);
        slots.find(|slot| slot.as_ref().is_some_and(|found| found.is_of(tool)))
    }

    fn slots_of(&self, tool: &Arc<Tool>) -> impl Iterator<Item = &ArcSwapOption<Found<T>>> {
        places(tool)
            .into_iter()
            .filter_map(|place| self.slots.get(place))
    }
}

impl<T> Found<T> {
    fn is_of(&self, tool: &Arc<Tool>) -> bool {
        std::ptr::eq(self.tool.as_ptr(), Arc::as_ptr(tool))
    }

    /// Says whether the tool lives.
    fn is_needed(&self) -> bool {
        self.tool.strong_count() > 0
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
const SLOTS: usize = 128;

/// Spreads addresses, whose lowest bits are alike, over the slots, in two ways: tools that meet in one
/// hardly ever do so in the other.
fn places(tool: &Arc<Tool>) -> [usize; 2] {
    let address = Arc::as_ptr(tool).addr() as u64;
    let mixed = (address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    [mixed >> 57, mixed >> 50].map(|place| place as usize & (SLOTS - 1))
}
