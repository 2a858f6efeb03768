//! The rows as a table.

use crate::measure::{Found, median};
use crate::rows::{ALONE, Row};

const HEADINGS: &str = "\
| ns of processor time per call | thread | ± | process | ± |
| --- | ---: | ---: | ---: | ---: |
";

/// Shows the figures of each row.
pub(crate) fn table(rows: &[Row], found: &[Vec<Found>]) -> String {
    let mut table = HEADINGS.to_owned();
    let alone = cells(found.iter().flatten().map(|found| found.alone));
    table += &format!("| {ALONE} | {alone} | | |\n");
    for (row, found) in rows.iter().zip(found) {
        let thread = cells(found.iter().map(|found| found.thread));
        let process = cells(found.iter().map(|found| found.process));
        table += &format!("| {} | {thread} | {process} |\n", row.name);
    }
    table
}

/// The median, and half of the interquartile range.
fn cells(figures: impl Iterator<Item = f64>) -> String {
    let mut figures: Vec<_> = figures.collect();
    let middle = median(&mut figures);
    let at = |quarter: usize| figures.get(figures.len() * quarter / 4).copied();
    let spread = (at(3).unwrap_or(middle) - at(1).unwrap_or(middle)) / 2.0;
    format!("{middle:.1} | {spread:.1}")
}
