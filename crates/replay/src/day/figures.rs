//! What a day gave, as figures and tables.

use std::time::Duration;

use callward_cache::EvidenceStatus;

use crate::report::{Cell, Grid, Mark, percent, share};

/// What one lifetime gave.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Figures {
    /// Calls of the measured day.
    pub calls: u64,
    /// Executions for them.
    pub executions: u64,
    /// Calls answered with the result of another call, kept or still running.
    pub hits: u64,
    /// Hits with another answer than executing the call at that moment would have returned.
    pub stale: u64,
    /// The age of the oldest kept answer that was served, from its dispatch.
    pub oldest: Duration,
    /// What was known at the beginning of the day; empty without evidence.
    pub tools: Vec<ToolEvidence>,
}

/// What is known of one tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolEvidence {
    /// The tool.
    pub name: String,
    /// The buckets, the shortest gaps first.
    pub buckets: Vec<BucketSum>,
    /// The equal weight that a bucket needs if none differed; `None` if none suffices.
    pub needed: Option<f64>,
    /// The lifetime that the rule allows.
    pub allowed: Duration,
    /// The lifetime if buckets without observations did not count.
    pub without_empty: Duration,
    /// The longest bucket that passes, whatever the shorter ones do.
    pub longest_alone: Duration,
}

/// What is known of one bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BucketSum {
    /// The longest gap, in seconds.
    pub up_to_s: u32,
    /// Executions that repeated an earlier one after such a gap.
    pub repeats: u64,
    /// Of these, the ones with another answer.
    pub different: u64,
    /// The equal ones by weight: aged, one for each visit, limited for each key.
    pub equal_weight: f64,
}

impl ToolEvidence {
    fn repeats(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.repeats).sum()
    }

    pub(super) fn new(name: &str, status: &EvidenceStatus) -> Self {
        let seconds = |up_to_s: u32| Duration::from_secs(up_to_s.into());
        let passing = |bucket: &&callward_cache::BucketStatus| bucket.passes;
        let observed = status.buckets.iter().filter(|bucket| bucket.repeats > 0);
        let edge = |bucket: Option<&callward_cache::BucketStatus>| {
            bucket.map_or(Duration::ZERO, |bucket| seconds(bucket.up_to_s))
        };
        Self {
            name: name.to_owned(),
            buckets: status
                .buckets
                .iter()
                .map(|bucket| BucketSum {
                    up_to_s: bucket.up_to_s,
                    repeats: bucket.repeats,
                    different: bucket.different,
                    equal_weight: bucket.equal_weight,
                })
                .collect(),
            needed: status.needed,
            allowed: status.allowed,
            without_empty: edge(observed.take_while(passing).last()),
            longest_alone: edge(status.buckets.iter().rev().find(passing)),
        }
    }
}

/// Puts lifetimes side by side.
#[must_use]
pub fn grid(rows: &[(&str, Figures)]) -> Grid {
    let mut grid = Grid::new(&[
        "lifetime",
        "calls",
        "executions",
        "hits",
        "of calls",
        "stale",
        "of hits",
        "oldest",
    ]);
    for (name, figures) in rows {
        let mark = match figures.stale {
            0 => Mark::Good,
            _ => Mark::Bad,
        };
        grid.row(vec![
            Cell::plain(name),
            Cell::plain(figures.calls),
            Cell::plain(figures.executions),
            Cell::plain(figures.hits),
            Cell::plain(percent(share(figures.hits, figures.calls))),
            Cell::marked(figures.stale, mark),
            Cell::plain(percent(share(figures.stale, figures.hits))),
            Cell::plain(format_args!("{:.1} s", figures.oldest.as_secs_f64())),
        ]);
    }
    grid
}

/// Shows the evidence of the tools with the most repeats, at most `most`: in each bucket
/// `equal weight (different of repeats)`.
#[must_use]
pub fn evidence_grid(tools: &[ToolEvidence], most: usize) -> Grid {
    let mut grid = Grid::new(&[
        "tool",
        "to 1 s",
        "to 3 s",
        "to 10 s",
        "to 30 s",
        "to 100 s",
        "to 300 s",
        "needed",
        "allowed",
        "without empty",
        "longest alone",
    ]);
    let mut tools: Vec<_> = tools.iter().filter(|tool| tool.repeats() > 0).collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.repeats()));
    for tool in tools.into_iter().take(most) {
        let mut cells = vec![Cell::plain(&tool.name)];
        cells.extend(tool.buckets.iter().map(|bucket| {
            Cell::plain(format_args!(
                "{:.0} ({} of {})",
                bucket.equal_weight, bucket.different, bucket.repeats
            ))
        }));
        cells.push(Cell::plain(format_args!(
            "{:.0}",
            tool.needed.unwrap_or(f64::INFINITY)
        )));
        for lifetime in [tool.allowed, tool.without_empty, tool.longest_alone] {
            cells.push(Cell::plain(format_args!("{} s", lifetime.as_secs())));
        }
        grid.row(cells);
    }
    grid
}
