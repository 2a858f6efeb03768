//! The breakers of the tools called through one layer, found again without a look-up in the set.
//!
//! A look-up hashes two names and takes a lock on a part of the map, which threads that call the same
//! tool then hand to and fro. A tool's address needs no hash, and a slot is read without a lock.

use std::fmt;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use tollgate_core::Tool;

use crate::Circuit;

/// A few breakers, each in the slot of its tool's address. Tools that meet in a slot are looked up
/// in the set as ever, all but the first.
pub(crate) struct Recent {
    slots: [ArcSwapOption<Found>; SLOTS],
}

struct Found {
    /// Not held, but its address is not given to another tool as long as somebody remembers it.
    tool: Weak<Tool>,
    circuit: Arc<Circuit>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| ArcSwapOption::empty()),
        }
    }

    /// Asks the breaker of a tool something, if it is known.
    pub(crate) fn ask<T>(&self, tool: &Arc<Tool>, ask: impl FnOnce(&Circuit) -> T) -> Option<T> {
        let found = self.slots.get(place(tool))?.load();
        let found = found.as_ref().filter(|found| found.is_of(tool))?;
        Some(ask(&found.circuit))
    }

    /// Returns the breaker of a tool; where it is not known, `look_up` tells.
    pub(crate) fn circuit(
        &self,
        tool: &Arc<Tool>,
        look_up: impl FnOnce() -> Arc<Circuit>,
    ) -> Arc<Circuit> {
        let Some(slot) = self.slots.get(place(tool)) else {
            return look_up();
        };
        let found = slot.load();
        match &*found {
            Some(found) if found.is_of(tool) => found.circuit.clone(),
            // a tool that lives keeps its slot: two that meet must not drive each other out
            Some(found) if found.tool.strong_count() > 0 => look_up(),
            _ => {
                let circuit = look_up();
                slot.store(Some(Arc::new(Found {
                    tool: Arc::downgrade(tool),
                    circuit: circuit.clone(),
                })));
                circuit
            }
        }
    }
}

impl Found {
    fn is_of(&self, tool: &Arc<Tool>) -> bool {
        std::ptr::eq(self.tool.as_ptr(), Arc::as_ptr(tool))
    }
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").finish_non_exhaustive()
    }
}

/// More than most servers have tools; a power of two.
const SLOTS: usize = 64;

/// Spreads addresses, whose lowest bits are alike, over the slots.
fn place(tool: &Arc<Tool>) -> usize {
    let address = Arc::as_ptr(tool).addr();
    (address >> 4).wrapping_mul(0x9E37_79B1) >> 8 & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use tollgate_testkit::tool;

    use super::*;
    use crate::BreakerConfig;

    fn circuit() -> Arc<Circuit> {
        Arc::new(Circuit::new("x", BreakerConfig::default()).unwrap())
    }

    #[test]
    fn a_tool_keeps_its_breaker_and_takes_no_others() {
        let recent = Recent::new();
        // more than there are slots: some of them meet
        let tools: Vec<_> = (0..200).map(|n| tool(&format!("t{n}")).build()).collect();
        let circuits: Vec<_> = tools.iter().map(|_| circuit()).collect();
        let mut looked_up = 0;
        for _ in 0..3 {
            for (tool, own) in tools.iter().zip(&circuits) {
                let found = recent.circuit(tool, || {
                    looked_up += 1;
                    own.clone()
                });
                assert!(Arc::ptr_eq(&found, own));
                let asked = recent.ask(tool, |circuit| std::ptr::eq(circuit, &**own));
                assert_ne!(asked, Some(false));
            }
        }
        assert!(looked_up < 600, "none was found again");
    }

    #[test]
    fn a_tool_that_is_gone_makes_room() {
        let recent = Recent::new();
        for n in 0..1000 {
            let (tool, own) = (tool(&format!("t{n}")).build(), circuit());
            for _ in 0..2 {
                let found = recent.circuit(&tool, || own.clone());
                assert!(Arc::ptr_eq(&found, &own));
            }
        }
        let kept = recent.slots.iter().filter(|slot| slot.load().is_some());
        assert!(kept.count() <= SLOTS);
    }
}
