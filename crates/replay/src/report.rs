//! What was found, as rows under headings: for a terminal, a log or a benchmark.

use std::fmt;

/// Rows under headings. [`Display`](fmt::Display) writes it as aligned plain text; a terminal may
/// colour the cells by their [`Mark`] instead.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One cell: its text, and how it should strike the eye.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// How good the news is.
    pub mark: Mark,
}

/// How good the news of a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Mark {
    /// Neither.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Worth a look.
    Doubtful,
    /// Wrong.
    Bad,
}

impl Grid {
    /// Starts a grid under these headings.
    #[must_use]
    pub fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Cells beyond the headings are not shown.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Returns the headings.
    #[must_use]
    pub fn headings(&self) -> &[&'static str] {
        &self.headings
    }

    /// Returns the rows.
    #[must_use]
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}

impl Cell {
    /// Makes a cell that does not stand out.
    #[must_use]
    pub fn plain(text: impl fmt::Display) -> Self {
        Self::marked(text, Mark::Plain)
    }

    /// Makes a cell that stands out as `mark` says.
    #[must_use]
    pub fn marked(text: impl fmt::Display, mark: Mark) -> Self {
        Self {
            text: text.to_string(),
            mark,
        }
    }
}

impl fmt::Display for Grid {
    /// Columns stand under each other, two spaces apart, and no line ends in a space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = || self.headings.iter().copied();
        let width = |column: usize, heading: &str| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.text.chars().count());
            widths.chain([heading.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = heads()
            .enumerate()
            .map(|(at, head)| width(at, head))
            .collect();
        writeln!(f, "{}", line(heads(), &widths))?;
        for row in &self.rows {
            let texts = row.iter().map(|cell| cell.text.as_str());
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

/// Writes a share as a percentage with two decimals, such as `41.27 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Writes the difference of two shares in percentage points with its sign, such as `+0.31`.
#[must_use]
pub fn points(difference: f64) -> String {
    format!("{:+.2}", difference * 100.0)
}

/// Returns `part` of `whole` as a share; 0 of nothing is 0.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of requests are far below 2^52"
)]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let mut grid = Grid::new(&["policy", "hits"]);
        grid.row(vec![Cell::plain("a_long_name"), Cell::plain(1)]);
        grid.row(vec![Cell::plain("b"), Cell::marked("none", Mark::Bad)]);
        assert_eq!(
            grid.to_string(),
            "policy       hits\na_long_name  1\nb            none\n"
        );
    }

    #[test]
    fn shares_are_written_with_two_decimals() {
        assert_eq!(percent(share(1, 3)), "33.33 %");
        assert_eq!(percent(share(0, 0)), "0.00 %");
        assert_eq!(points(0.5 - 0.4969), "+0.31");
        assert_eq!(points(-0.01), "-1.00");
    }
}
