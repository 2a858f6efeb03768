//! The result of a replay of calls.

use serde::Serialize;

use super::Figures;
use crate::report::{Cell, Grid, Mark, percent};

/// The result of a replay of calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Replayed {
    /// The number of calls.
    pub calls: u64,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of invalid lines.
    pub left_out: u64,
    /// The figures of each policy, ours first.
    pub policies: Vec<Figures>,
}

impl Replayed {
    /// Returns the figures of a policy, by its name.
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<&Figures> {
        self.policies.iter().find(|figures| figures.policy == name)
    }

    /// Returns a row for each policy.
    #[must_use]
    pub fn grid(&self) -> Grid {
        let mut grid = Grid::new(&[
            "policy",
            "hits",
            "of calls",
            "of reads",
            "joined",
            "stale",
            "writes swallowed",
            "saved",
            "bytes",
        ]);
        for figures in &self.policies {
            grid.rows.push(vec![
                Cell::plain(figures.policy),
                Cell::plain(figures.hits),
                Cell::plain(percent(figures.hit_rate)),
                Cell::plain(percent(figures.read_hit_rate)),
                Cell::plain(figures.joined),
                stale(figures),
                wrong(figures.writes_swallowed),
                Cell::plain(span(figures.saved_ms)),
                Cell::plain(bytesize::ByteSize(figures.bytes)),
            ]);
        }
        grid
    }
}

fn stale(figures: &Figures) -> Cell {
    match (figures.stale, figures.not_compared) {
        (None, _) => Cell::marked("unknown", Mark::Doubtful),
        (Some(stale), 0) => wrong(stale),
        (Some(stale), unknown) => {
            let cell = wrong(stale);
            Cell::marked(
                format_args!(
                    "{stale} of {} known",
                    figures.hits + figures.joined - unknown
                ),
                cell.mark,
            )
        }
    }
}

fn wrong(count: u64) -> Cell {
    Cell::marked(count, if count == 0 { Mark::Good } else { Mark::Bad })
}

/// Formats a time.
fn span(millis: f64) -> String {
    let seconds = millis / 1e3;
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else if seconds < 3_600.0 {
        format!("{:.1} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}
