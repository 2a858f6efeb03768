//! The rows as a table, and what of it was promised.

use crate::measure::{Found, median};
use crate::rows::{ALONE, Row};

const HEADINGS: &str = "\
| ns of processor time per call | thread | ± | process | ± |
| --- | ---: | ---: | ---: | ---: |
";

/// Shows what the processes found of each row, and which promise that keeps.
pub(crate) fn all(rows: &[Row], found: &[Vec<Found>]) -> String {
    let verdicts = rows.iter().zip(found);
    let verdicts: Vec<_> = verdicts
        .filter_map(|(row, found)| verdict(row, found))
        .collect();
    format!("{}\n{}", table(rows, found), verdicts.concat())
}

/// Shows what the processes found of each row.
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

/// The median, and half of the range in which the middle half lies.
fn cells(figures: impl Iterator<Item = f64>) -> String {
    let mut figures: Vec<_> = figures.collect();
    let middle = median(&mut figures);
    let at = |quarter: usize| figures.get(figures.len() * quarter / 4).copied();
    let spread = (at(3).unwrap_or(middle) - at(1).unwrap_or(middle)) / 2.0;
    format!("{middle:.1} | {spread:.1}")
}

/// Says of a row whether what was promised of it is kept.
fn verdict(row: &Row, found: &[Found]) -> Option<String> {
    let most = row.most?;
    let said = |place: &str, of: fn(&Found) -> f64| {
        let figure = median(&mut found.iter().map(of).collect::<Vec<_>>());
        let kept = if figure <= most { "kept" } else { "not kept" };
        format!("{figure:.1} in the {place}: {kept}")
    };
    let thread = said("thread", |found| found.thread);
    let process = said("process", |found| found.process);
    Some(format!(
        "- {}, at most {most} ns: {thread}; {process}\n",
        row.name
    ))
}
