//! Tables: rows are JSON objects, as `--json` and the API give them, and the names of their members
//! decide how values are shown.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::config::show_size;
use crate::output::{self, Tone, colour, paint, took};
use crate::plain;

/// One cell: its text, and its colour on a terminal.
type Cell = (String, Style);

/// Writes a table of JSON objects to standard output. `columns` names members, separated by spaces:
/// `set`, `client.name`, or `name=client.name` for another heading than the member's name.
pub(crate) fn print<'a>(columns: &str, rows: impl IntoIterator<Item = &'a Value>) {
    for line in lines(columns, rows, *output::STDOUT_COLOURED) {
        output::line(line);
    }
}

fn lines<'a>(
    columns: &str,
    rows: impl IntoIterator<Item = &'a Value>,
    coloured: bool,
) -> Vec<String> {
    let columns: Vec<_> = columns.split(' ').map(column).collect();
    let heading = |(heading, _): &(String, _)| (heading.clone(), Style::new().bold());
    let mut cells: Vec<Vec<Cell>> = vec![columns.iter().map(heading).collect()];
    for row in rows {
        let cell = |(_, path): &(String, &str)| {
            let value = path.split('.').fold(row, |value, name| &value[name]);
            cell(path.rsplit('.').next().unwrap_or_default(), value)
        };
        cells.push(columns.iter().map(cell).collect());
    }
    let width = |column: usize| {
        let cells = cells.iter().filter_map(|row| row.get(column));
        cells.map(|(text, _)| text.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns.len()).filter_map(width).collect();
    let line = |row: &Vec<Cell>| {
        let mut line = String::new();
        for ((text, style), width) in row.iter().zip(&widths) {
            line.push_str(&paint(text, *style, coloured));
            let pad = width.saturating_sub(text.chars().count()) + 2;
            line.extend(std::iter::repeat_n(' ', pad));
        }
        line.trim_end().to_owned()
    };
    cells.iter().map(line).collect()
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

/// Makes a cell of a member. What is not as it should be stands out, and effects have colours: the
/// more harmful, the warmer.
fn cell(name: &str, value: &Value) -> Cell {
    let text = plain::line(&shown(name, value));
    let doubtful = Tone::Doubtful.style();
    let style = match (name, &*text) {
        ("effect", "read_only") => colour(AnsiColor::Green),
        ("effect", "idempotent") => colour(AnsiColor::Cyan),
        ("effect", "mutating") => colour(AnsiColor::Yellow),
        ("effect", "destructive") => colour(AnsiColor::Red),
        ("outcome", "answered") => Style::new(),
        ("state", "healthy" | "closed" | "up" | "listing" | "spare" | "starting" | "valid") => {
            Style::new()
        }
        ("outcome" | "state", _) => doubtful,
        (_, "-" | "0" | "0.0 %" | "no") => Style::new(),
        ("confirm" | "duplicates" | "error_rate" | "expired", _) => doubtful,
        ("refused" | "rescued" | "shed" | "stale", _) => doubtful,
        _ => Style::new(),
    };
    (text, style)
}

/// Shows a member: times, shares and sizes with the unit that the end of their name stands for, of
/// an object what is not 0, `-` for nothing. A text is made one [line](plain::line).
pub(crate) fn shown(name: &str, value: &Value) -> String {
    let listed = |items: Vec<String>| match items.is_empty() {
        true => "-".to_owned(),
        false => items.join(", "),
    };
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => plain::line(text),
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
    fn a_word_of_danger_is_coloured() {
        let rows = [json!({"tool": "b", "effect": "destructive"})];
        let coloured = lines("tool effect", &rows, true);
        assert!(
            coloured[1].contains("\u{1b}[31mdestructive\u{1b}[0m"),
            "{coloured:?}"
        );
    }

    #[test]
    fn a_member_is_shown_by_its_name_and_type() {
        for (name, value, text) in [
            ("took_us", json!(250), "250 µs"),
            ("took_ms", json!(1.5), "1.5 ms"),
            ("served_s", json!(2.0), "2.00 s"),
            ("hit_rate", json!(0.5), "50.0 %"),
            (
                "bypasses",
                json!({"plan": 2, "settling": 0, "writing": 1}),
                "2 plan, 1 writing",
            ),
            ("calls", json!({"answers": 0}), "-"),
            ("servers", json!(["a", "b"]), "a, b"),
            ("name", json!("x\u{1b}[2J\ny"), "x\\u{1b}[2J\\ny"),
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
