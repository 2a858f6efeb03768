//! Tables: rows are JSON objects, as `--json` and the API give them, and the names of their members
//! decide how values are shown.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::config::show_size;
use crate::output::{self, Tone, colour, paint, took};
use crate::plain;

/// Rows under headings.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// One cell: its text, and its colour on a terminal.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Table {
    pub(crate) fn new(headings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            headings: headings.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Makes a table of JSON objects. `columns` names members, separated by spaces: `set`,
    /// `client.name`, or `name=client.name` for another heading than the member's name.
    pub(crate) fn of<'a>(columns: &str, rows: impl IntoIterator<Item = &'a Value>) -> Self {
        let columns: Vec<_> = columns.split(' ').map(column).collect();
        let mut table = Self::new(columns.iter().map(|(heading, _)| heading.clone()));
        for row in rows {
            let cell = |(_, path): &(String, &str)| {
                let mut path = path.split('.');
                let value = path.clone().fold(row, |value, name| &value[name]);
                Cell::of(path.next_back().unwrap_or_default(), value)
            };
            table.row(columns.iter().map(cell).collect());
        }
        table
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Writes it to standard output.
    pub(crate) fn print(&self) {
        for line in self.lines(output::is_coloured()) {
            output::line(line);
        }
    }

    fn lines(&self, coloured: bool) -> Vec<String> {
        let heading = |text: &String| Cell::styled(text, Style::new().bold());
        let head: Vec<Cell> = self.headings.iter().map(heading).collect();
        let all = || std::iter::once(&head).chain(&self.rows);
        let width = |column: usize| {
            let cells = all().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.chars().count()).max()
        };
        let widths: Vec<usize> = (0..head.len()).filter_map(width).collect();
        let line = |row: &Vec<Cell>| {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&paint(&cell.text, cell.style, coloured));
                let pad = width.saturating_sub(cell.text.chars().count()) + 2;
                line.extend(std::iter::repeat_n(' ', pad));
            }
            line.trim_end().to_owned()
        };
        all().map(line).collect()
    }
}

/// Splits a row of a table in the source, such as `name | text`.
pub(crate) fn split<const N: usize>(row: &'static str) -> [&'static str; N] {
    let mut parts = row.split(" | ");
    [(); N].map(|()| parts.next().unwrap_or_default())
}

/// Returns heading and path of a column.
fn column(column: &str) -> (String, &str) {
    let (heading, path) = column.split_once('=').unwrap_or_else(|| {
        let name = column.rsplit('.').next().unwrap_or_default();
        let unit = name.strip_suffix("_ms").or_else(|| name.strip_suffix("_s"));
        (unit.unwrap_or(name), column)
    });
    (heading.replace('_', " "), path)
}

impl Cell {
    /// A cell with a severity, if it has one.
    pub(crate) fn toned(text: &str, tone: Option<Tone>) -> Self {
        Self::styled(text, tone.map_or_else(Style::new, Tone::style))
    }

    fn styled(text: &str, style: Style) -> Self {
        let text = plain::line(text);
        Self { text, style }
    }

    /// A cell of a member. What is not as it should be stands out, and effects have colours: the
    /// more harmful, the warmer.
    fn of(name: &str, value: &Value) -> Self {
        let text = shown(name, value);
        let well = ["-", "0", "0.0 %", "no"].contains(&&*text);
        let style = match (name, &*text) {
            ("effect", "read_only") => colour(AnsiColor::Green),
            ("effect", "idempotent") => colour(AnsiColor::Cyan),
            ("effect", "mutating") => colour(AnsiColor::Yellow),
            ("effect", "destructive") => colour(AnsiColor::Red),
            ("state", "healthy" | "closed" | "up" | "listing" | "spare" | "starting")
            | ("outcome", "answered") => Style::new(),
            ("state" | "outcome", _) => Tone::Doubtful.style(),
            (
                "confirm" | "duplicates" | "error_rate" | "expired" | "refused" | "rescued"
                | "shed" | "stale",
                _,
            ) if !well => Tone::Doubtful.style(),
            _ => Style::new(),
        };
        Self::styled(&text, style)
    }
}

/// Shows a member: times, shares and sizes with the unit that the end of their name stands for, of
/// an object what is not 0, `-` for nothing.
pub(crate) fn shown(name: &str, value: &Value) -> String {
    let listed = |items: Vec<String>| match items.is_empty() {
        true => "-".to_owned(),
        false => items.join(", "),
    };
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => listed(items.iter().map(|item| shown("", item)).collect()),
        Value::Object(members) => {
            let parts = members.iter().filter_map(|(name, value)| match value {
                Value::Null | Value::Bool(false) => None,
                Value::Bool(true) => Some(name.clone()),
                Value::Number(count) if count.as_f64() == Some(0.0) => None,
                Value::Number(_) => Some(format!("{} {name}", shown(name, value))),
                _ => Some(format!("{name} {}", shown("", value))),
            });
            listed(parts.collect())
        }
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or_default();
            let time = |seconds| Duration::try_from_secs_f64(seconds).map(took);
            match name.rsplit('_').next() {
                Some("us") => time(float / 1e6).unwrap_or_default(),
                Some("ms") => time(float / 1e3).unwrap_or_default(),
                Some("s") => time(float).unwrap_or_default(),
                Some("rate") => format!("{:.1} %", float * 100.0),
                Some("bytes" | "memory") => show_size(number.as_u64().unwrap_or_default()),
                _ if number.is_f64() => float.to_string(),
                _ => number.to_string(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_stand_under_each_other_with_and_without_colour() {
        let rows = [
            json!({"tool": "a_long_name", "effect": "read_only", "client": {"name": "x"}}),
            json!({"tool": "b", "effect": "destructive"}),
        ];
        let table = Table::of("tool effect by=client.name", &rows);
        assert_eq!(
            table.lines(false),
            [
                "tool         effect       by",
                "a_long_name  read_only    x",
                "b            destructive  -"
            ]
        );
        let coloured = table.lines(true);
        assert!(
            coloured[2].contains("\u{1b}[31mdestructive\u{1b}[0m"),
            "{coloured:?}"
        );
    }

    #[test]
    fn a_member_is_shown_by_its_name_and_type() {
        for (name, value, text) in [
            ("took_ms", json!(1.5), "1.5 ms"),
            ("hit_rate", json!(0.5), "50.0 %"),
            (
                "bypasses",
                json!({"plan": 2, "settling": 0, "writing": 1}),
                "2 plan, 1 writing",
            ),
            ("calls", json!({"answers": 0}), "-"),
            ("servers", json!(["a", "b"]), "a, b"),
            (
                "purged",
                json!({"purged": {"tool": "x"}, "set": null}),
                "purged tool x",
            ),
        ] {
            assert_eq!(shown(name, &value), text);
        }
    }
}
