//! Figures as a table.

use std::fmt;

/// A table. [`Display`](fmt::Display) writes aligned plain text.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
#[must_use]
pub struct Grid {
    /// The headings.
    pub headings: Vec<&'static str>,
    /// The rows. Cells beyond the headings are not shown.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// Creates a table with these headings and no rows.
    pub fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }
}

impl fmt::Display for Grid {
    /// Columns are aligned, two spaces apart; no line ends in a space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = || self.headings.iter().copied();
        let width = |column: usize, heading: &str| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            widths.chain([heading.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = heads()
            .enumerate()
            .map(|(at, head)| width(at, head))
            .collect();
        writeln!(f, "{}", line(heads(), &widths))?;
        for row in &self.rows {
            let texts = row.iter().map(String::as_str);
            writeln!(f, "{}", line(texts, &widths))?;
        }
        Ok(())
    }
}

fn line<'a>(texts: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
    let mut line = String::new();
    for (text, width) in texts.zip(widths) {
        line.push_str(&format!("{text:width$}  "));
    }
    line.truncate(line.trim_end().len());
    line
}

/// Formats a share as a percentage with two decimals, such as `41.27 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Formats the difference of two shares in percentage points, such as `+0.31`.
#[must_use]
pub fn points(difference: f64) -> String {
    format!("{:+.2}", difference * 100.0)
}

/// Returns `part / whole`; 0 if `whole` is 0.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
