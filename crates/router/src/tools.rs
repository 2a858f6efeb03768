//! Which tools of a set are measured apart.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use callward_core::Tool;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The tools of a set that are measured apart: each has a column, which is the same at every server.
///
/// Servers are compared with each other by what *this tool* takes there. So it is decided for the set
/// whether a tool has numbers of its own, and not for each server: else one would be judged by the tool
/// and another by whatever else it does. The first tools to be called get a column, and keep it as long
/// as they live.
pub(crate) struct Tools {
    /// What nanoseconds are counted from.
    origin: Instant,
    known: ArcSwap<Known>,
    adding: Mutex<u32>,
    /// Calls of tools without a column since it was last looked for room.
    without: AtomicU32,
}

/// By the tools' addresses, in order.
#[derive(Default)]
struct Known(Box<[Entry]>);

#[derive(Clone)]
struct Entry {
    address: usize,
    /// Not held, but its address goes to no other tool as long as this is here.
    tool: Weak<Tool>,
    column: Column,
}

/// Where a tool's numbers are, at each server of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) place: usize,
    /// Tells the tools apart that have the same place one after another.
    pub(crate) tag: u32,
}

impl Tools {
    /// So many tools of a set are measured apart at most.
    pub(crate) const MOST: usize = 256;

    pub(crate) fn new(origin: Instant) -> Self {
        Self {
            origin,
            known: ArcSwap::from_pointee(Known::default()),
            adding: Mutex::new(0),
            without: AtomicU32::new(0),
        }
    }

    /// Returns what nanoseconds are counted from.
    pub(crate) fn origin(&self) -> Instant {
        self.origin
    }

    /// Returns the nanoseconds from the origin of a set until now.
    pub(crate) fn nanos_from(origin: Instant, now: Instant) -> u64 {
        // 584 years fit
        now.saturating_duration_since(origin).as_nanos() as u64
    }

    /// Finds a tool's column.
    pub(crate) fn find(&self, tool: &Arc<Tool>) -> Option<Column> {
        self.known.load().find(address(tool))
    }

    /// Finds a tool's column, or gives it one if there is room.
    pub(crate) fn column(&self, tool: &Arc<Tool>) -> Option<Column> {
        let known = self.known.load();
        if let Some(column) = known.find(address(tool)) {
            return Some(column);
        }
        if known.0.len() >= Self::MOST {
            // whether some have gone is worth a look now and then, and no lock on each call
            let without = self.without.fetch_add(1, Ordering::Relaxed);
            if !without.is_multiple_of(LOOKS_EVERY) {
                return None;
            }
        }
        drop(known);
        self.add(tool)
    }

    fn add(&self, tool: &Arc<Tool>) -> Option<Column> {
        let mut added = self.adding.lock();
        let known = self.known.load_full();
        if let Some(column) = known.find(address(tool)) {
            return Some(column);
        }
        let is_alive = |entry: &&Entry| entry.tool.strong_count() > 0;
        let mut entries: Vec<Entry> = known.0.iter().filter(is_alive).cloned().collect();
        let is_free = |place: &usize| !entries.iter().any(|entry| entry.column.place == *place);
        let place = (0..Self::MOST).find(is_free)?;
        // 0 is the tag of nobody
        *added = added.wrapping_add(1).max(1);
        let column = Column { place, tag: *added };
        entries.push(Entry {
            address: address(tool),
            tool: Arc::downgrade(tool),
            column,
        });
        entries.sort_unstable_by_key(|entry| entry.address);
        self.known.store(Arc::new(Known(entries.into())));
        Some(column)
    }
}

impl Known {
    fn find(&self, address: usize) -> Option<Column> {
        let place = self.0.binary_search_by_key(&address, |entry| entry.address);
        self.0.get(place.ok()?).map(|entry| entry.column)
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools")
            .field("measured", &self.known.load().0.len())
            .finish_non_exhaustive()
    }
}

fn address(tool: &Arc<Tool>) -> usize {
    Arc::as_ptr(tool).addr()
}

/// A full table is looked through for tools that are gone once in so many calls.
const LOOKS_EVERY: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use callward_testkit::tool;

    #[test]
    fn a_tool_keeps_its_column_and_another_has_another() {
        let tools = Tools::new(Instant::now());
        let (one, other) = (tool("one").build(), tool("other").build());
        assert_eq!(tools.find(&one), None);
        let column = tools.column(&one);
        assert!(column.is_some());
        assert_ne!(tools.column(&other), column);
        assert_eq!((tools.find(&one), tools.column(&one)), (column, column));
    }

    #[test]
    fn there_is_a_bound_and_room_is_found_again() {
        let tools = Tools::new(Instant::now());
        let all: Vec<_> = (0..Tools::MOST + 5)
            .map(|n| tool(&format!("t{n}")).build())
            .collect();
        let has_column =
            |place: usize| all.get(place).and_then(|tool| tools.column(tool)).is_some();
        assert!((0..Tools::MOST).all(has_column));
        assert!(!(Tools::MOST..all.len()).any(has_column));
        drop(all);
        let late = tool("late").build();
        let found = (0..=LOOKS_EVERY).find_map(|_| tools.column(&late));
        assert_eq!(found.map(|column| column.place), Some(0));
        assert_eq!(tools.known.load().0.len(), 1);
    }

    #[test]
    fn a_place_that_is_given_again_has_another_tag() {
        let tools = Tools::new(Instant::now());
        let first = tool("first").build();
        let before = tools.column(&first).unwrap();
        drop(first);
        let second = tool("second").build();
        let after = tools.column(&second).unwrap();
        assert_eq!(before.place, after.place);
        assert_ne!(before.tag, after.tag);
    }
}
