//! What is measured of one server: of all its calls, and of those of each tool.

use std::array;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::ewma::{Estimate, Memory, PeakEwma};
use crate::outcome::Outcome;
use crate::tools::{Column, Tools};

/// What is measured of one server: of all its calls, and of those of each tool.
///
/// In this order, the tools from the last to the first: the first tool of a set is at the end, beside what
/// a choice reads of the [server](crate::state::ServerState), and those called soon after it are near.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Measured {
    all: PeakEwma,
    more: [Cells; Tools::MOST / TOGETHER - 1],
    first: [OfTool; TOGETHER],
}

/// Made when the first tool of them is called.
type Cells = OnceLock<Box<[OfTool; TOGETHER]>>;

/// Columns that are made together.
const TOGETHER: usize = 16;

/// Half a cache line, and never in two.
#[derive(Debug, Default)]
#[repr(align(32))]
pub(crate) struct OfTool {
    /// Whose numbers these are.
    tag: AtomicU32,
    in_flight: AtomicU32,
    latency: PeakEwma,
}

/// How a call ended, as far as it tells what the next will take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Took {
    /// It was answered after this time.
    Answered(Duration),
    /// It failed by the server's fault after this time.
    Failed(Duration),
    /// Somebody gave it up after this time: it would have taken longer.
    Longer(Duration),
}

impl Took {
    /// Tells what a call took by how it ended.
    pub(crate) fn of(outcome: Outcome, took: Duration) -> Self {
        match outcome {
            Outcome::Answered => Self::Answered(took),
            // one that refuses is not fast either: it would get every call
            Outcome::Fault | Outcome::Refused => Self::Failed(took),
            Outcome::Cancelled => Self::Longer(took),
        }
    }
}

impl Measured {
    pub(crate) fn new() -> Self {
        Self {
            all: PeakEwma::default(),
            more: array::from_fn(|_| OnceLock::new()),
            first: array::from_fn(|_| OfTool::default()),
        }
    }

    /// Counts a call of a tool as in flight.
    pub(crate) fn begin(&self, column: Column) {
        if let Some(cells) = self.more(column) {
            cells.get_or_init(|| Box::new(array::from_fn(|_| OfTool::default())));
        }
        if let Some(cell) = self.cell(column) {
            cell.in_flight.fetch_add(1, Ordering::Relaxed);
            // looked at first: a swap takes the line from all others, each time
            if cell.tag.load(Ordering::Relaxed) != column.tag
                && cell.tag.swap(column.tag, Ordering::Relaxed) != column.tag
            {
                cell.latency.forget();
            }
        }
    }

    /// Ends what [`begin`](Self::begin) began, and learns from it.
    pub(crate) fn end(&self, column: Option<Column>, took: Took, now: u64) {
        self.all.learn(took, now);
        let Some(column) = column else {
            return;
        };
        if let Some(cell) = self.cell(column) {
            cell.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(cell) = self.own(column) {
            cell.latency.learn(took, now);
        }
    }

    /// Returns how many calls of a tool are in flight.
    pub(crate) fn in_flight(&self, column: Column) -> usize {
        let cell = self.cell(column);
        cell.map_or(0, |cell| cell.in_flight.load(Ordering::Relaxed) as usize)
    }

    /// Returns what is known of all calls.
    pub(crate) fn of_all(&self, now: u64) -> Estimate {
        self.all.read(now, MEMORY)
    }

    /// Returns what is known of a tool's calls.
    pub(crate) fn of_tool(&self, column: Column, now: u64) -> Estimate {
        let cell = self.own(column);
        cell.map_or(Estimate::UNKNOWN, |cell| cell.latency.read(now, MEMORY))
    }

    fn cell(&self, column: Column) -> Option<&OfTool> {
        let cells = match column.place < TOGETHER {
            true => &self.first,
            false => self.more(column)?.get()?,
        };
        cells.get(TOGETHER - 1 - column.place % TOGETHER)
    }

    /// Returns where those are that are not among the first.
    fn more(&self, column: Column) -> Option<&Cells> {
        self.more.get((column.place / TOGETHER).checked_sub(1)?)
    }

    /// Finds a tool's numbers, unless they are another's.
    fn own(&self, column: Column) -> Option<&OfTool> {
        let cell = self.cell(column)?;
        (cell.tag.load(Ordering::Relaxed) == column.tag).then_some(cell)
    }
}

impl PeakEwma {
    fn learn(&self, took: Took, now: u64) {
        match took {
            Took::Answered(took) => self.succeeded(now, took, MEMORY),
            Took::Failed(took) => self.failed(now, took, MEMORY),
            Took::Longer(took) => self.outlasted(now, took),
        }
    }
}

const MEMORY: Memory = Memory::DEFAULT;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Column = Column { place: 3, tag: 1 };
    const SECOND: Column = Column { place: 200, tag: 2 };

    fn answered(millis: u64) -> Took {
        Took::Answered(Duration::from_millis(millis))
    }

    #[test]
    fn tools_are_measured_apart_and_all_together() {
        let server = Measured::new();
        server.begin(FIRST);
        server.begin(SECOND);
        assert_eq!((server.in_flight(FIRST), server.in_flight(SECOND)), (1, 1));
        server.end(Some(FIRST), answered(10), 0);
        assert_eq!((server.in_flight(FIRST), server.in_flight(SECOND)), (0, 1));
        server.end(Some(SECOND), answered(700), 0);
        assert_eq!(server.of_tool(FIRST, 0).nanos, 10e6);
        assert_eq!(server.of_tool(SECOND, 0).nanos, 700e6);
        assert_eq!(server.of_all(0).nanos, 700e6);
    }

    #[test]
    fn a_column_that_has_gone_to_another_tool_tells_nothing_of_the_first() {
        let server = Measured::new();
        let next = Column { tag: 9, ..FIRST };
        server.begin(FIRST);
        server.begin(FIRST);
        server.end(Some(FIRST), answered(900), 0);
        assert_eq!(server.of_tool(next, 0), Estimate::UNKNOWN);
        server.begin(next);
        assert_eq!(server.of_tool(next, 0), Estimate::UNKNOWN);
        assert_eq!(server.of_tool(FIRST, 0), Estimate::UNKNOWN);
        // what ends late is not told of the other
        server.end(Some(FIRST), answered(900), 1);
        assert_eq!(server.of_tool(next, 1), Estimate::UNKNOWN);
        server.end(Some(next), answered(5), 1);
        assert_eq!(server.of_tool(next, 1).nanos, 5e6);
        assert_eq!(server.in_flight(next), 0);
    }

    #[test]
    fn what_was_given_up_took_at_least_as_long() {
        let server = Measured::new();
        for secs in [3, 1] {
            server.begin(FIRST);
            let longer = Took::of(Outcome::Cancelled, Duration::from_secs(secs));
            server.end(Some(FIRST), longer, 0);
            assert_eq!(server.of_tool(FIRST, 0).nanos, 3e9);
        }
    }
}
