//! The result of a replay of calls.

use serde::Serialize;

use super::Figures;
use crate::report::{Grid, percent};

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
                figures.policy.to_string(),
                figures.hits.to_string(),
                percent(figures.hit_rate),
                percent(figures.read_hit_rate),
                figures.joined.to_string(),
                stale(figures),
                figures.writes_swallowed.to_string(),
                span(figures.saved_ms),
                bytesize::ByteSize(figures.bytes).to_string(),
            ]);
        }
        grid
    }
}

fn stale(figures: &Figures) -> String {
    match (figures.stale, figures.not_compared) {
        (None, _) => "unknown".to_owned(),
        (Some(stale), 0) => stale.to_string(),
        (Some(stale), unknown) => {
            let known = figures.hits + figures.joined - unknown;
            format!("{stale} of {known} known")
        }
    }
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
