//! Formats trails for terminals and spans.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::decision::coarse;
use super::{Decision, Tense, Trail};

impl Trail {
    /// Writes the decisions in one line, for a span: parted by `; `, each as
    /// `stage#attempt:verdict@server +waited took (reason)`, without what is not known. A `+` after
    /// the attempt's number says that it runs beside another.
    ///
    /// `plan:read_only (declared, the server says so); cache:miss; route#1:chosen@a (in turn);
    /// attempt#1:answered@a 12.1ms; answer:answered`
    pub fn to_line(&self) -> String {
        line(self.decisions.iter().map(Cow::Borrowed), self.left_out)
    }

    /// What the columns hold.
    const COLUMNS: [&'static str; 6] = ["stage", "attempt", "verdict", "server", "time", "reason"];
}

/// As [`Trail::to_line`], for these decisions and the number of those left out.
pub(super) fn line<'a>(
    decisions: impl Iterator<Item = Cow<'a, Decision>>,
    left_out: u32,
) -> String {
    let mut line = String::with_capacity(USUAL);
    for (place, decision) in decisions.enumerate() {
        line.push_str(if place == 0 { "" } else { "; " });
        // writing into a string does not fail
        let _ = decision.write_in_line(&mut line);
    }
    if left_out != 0 {
        let _ = write!(line, "; {left_out} more");
    }
    line
}

/// Bytes of a line: it grows if it has to.
const USUAL: usize = 512;

fn row(decision: &Decision) -> [String; 6] {
    let attempt = decision.attempt.map_or_else(String::new, |number| {
        let beside = if decision.beside { "+" } else { "" };
        format!("{number}{beside}")
    });
    let server = decision.server.as_ref().map(ToString::to_string);
    let time = match (decision.took, decision.waited) {
        (Some(took), _) => format!("{:?}", coarse(took)),
        (None, Some(waited)) => format!("+{:?}", coarse(waited)),
        (None, None) => String::new(),
    };
    [
        decision.stage.to_string(),
        attempt,
        decision.verdict.to_string(),
        server.unwrap_or_default(),
        time,
        decision.reason.to_string(),
    ]
}

/// A line for the tool and its hints, then a table of the decisions.
impl fmt::Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tense = match self.tense {
            Tense::Expected => "would happen to",
            Tense::Observed => "happened to",
        };
        let (tool, set, hints) = (&self.tool, &self.set, &self.annotations);
        let hints = if hints.is_empty() { "no hints" } else { hints };
        writeln!(f, "What {tense} a call of `{tool}` of `{set}` ({hints}):\n")?;
        let rows: Vec<_> = self.decisions.iter().map(row).collect();
        let widths: Vec<_> = Self::COLUMNS
            .iter()
            .enumerate()
            .map(|(column, name)| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                let longest = cells.map(|cell| cell.chars().count()).max();
                longest.unwrap_or_default().max(name.len())
            })
            .collect();
        let head = Self::COLUMNS.map(str::to_owned);
        for row in std::iter::once(&head).chain(&rows) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:width$}  "));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        match self.left_out {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}
