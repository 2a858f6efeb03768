//! Output: tables, colour on terminals, JSON lines.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Read, Write, stderr, stdin, stdout};
use std::path::Path;
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::plain;
use crate::stderr::Stderr;

/// Why standard output could not be written, the first time: what comes next is not read either.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// Whether standard output shows colour, and standard error.
static STDOUT_COLOURED: LazyLock<bool> = LazyLock::new(|| wants_colour() && stdout().is_terminal());
pub(crate) static STDERR_COLOURED: LazyLock<bool> =
    LazyLock::new(|| wants_colour() && stderr().is_terminal());

/// Rows under headings.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// A column of a table: its heading, and the cell of an item.
pub(crate) type Column<T> = (&'static str, fn(&T) -> Cell);

/// The severity of a cell or line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Bad,
    Doubtful,
    Good,
    Aside,
}

/// One cell: its text, and its colour on a terminal.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

/// Writes a line to standard output. The first failure is kept for the end: see [`lost`].
pub(crate) fn line(line: impl Display) {
    if let Err(error) = writeln!(stdout().lock(), "{line}") {
        let _ = LOST.set(error);
    }
}

/// Writes a text of a tool to standard output: unchanged, but at a terminal it cannot control that.
pub(crate) fn text(text: &str) {
    match stdout().is_terminal() {
        true => line(plain::lines(text)),
        false => line(text),
    }
}

/// Reads standard input to its end. At a terminal a note asks for the input.
pub(crate) fn input(what: &str) -> std::io::Result<Vec<u8>> {
    if stdin().is_terminal() {
        note(what);
    }
    let mut bytes = Vec::new();
    stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Colours a text by its severity, if standard output shows colour.
pub(crate) fn toned(text: impl Display, tone: Tone) -> String {
    paint(&text.to_string(), tone.style(), *STDOUT_COLOURED)
}

/// Returns the error of standard output, if a write failed. A reader that went away is not an
/// error.
pub(crate) fn lost() -> Option<&'static std::io::Error> {
    let error = LOST.get()?;
    (error.kind() != ErrorKind::BrokenPipe).then_some(error)
}

/// Returns `true` if no write to standard output has failed yet.
pub(crate) fn is_read() -> bool {
    LOST.get().is_none()
}

/// Writes a value to standard output as one line of JSON.
pub(crate) fn json(value: &(impl Serialize + ?Sized)) {
    if let Ok(text) = serde_json::to_string(value) {
        line(text);
    }
}

/// Writes a line to standard error. Text from servers and files cannot control the terminal.
pub(crate) fn note(line: impl Display) {
    write_line(&plain::lines(&line.to_string()));
}

/// Writes why a command failed.
pub(crate) fn error(error: &impl Display) {
    headed("error:", colour(AnsiColor::Red).bold(), error);
}

/// Writes a warning.
pub(crate) fn warning(warning: &impl Display) {
    headed("warning:", colour(AnsiColor::Yellow), warning);
}

pub(crate) const LATE: &str = "they came faster than they could be written";
pub(crate) const FAILED: &str = "it could not be written";

/// Warns of what was not written to a file, if there is any.
pub(crate) fn missing(count: u64, what: &str, file: &Path, why: &str) {
    if count > 0 {
        let file = file.display();
        warning(&format_args!("{count} {what} are missing in {file}: {why}"));
    }
}

fn headed(word: &str, style: Style, text: &impl Display) {
    let word = paint(word, style, *STDERR_COLOURED);
    let text = plain::lines(&text.to_string());
    write_line(&format!("{word} {text}"));
}

/// Writes a table to standard output.
pub(crate) fn table(table: &Table) {
    for text in table.lines(*STDOUT_COLOURED) {
        line(text);
    }
}

/// Writes a table to standard error.
pub(crate) fn note_table(table: &Table) {
    for line in table.lines(*STDERR_COLOURED) {
        write_line(&line);
    }
}

/// Writes a heading to standard output.
pub(crate) fn heading(text: &str) {
    line(paint(text, Style::new().bold(), *STDOUT_COLOURED));
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Bad => colour(AnsiColor::Red).bold(),
            Self::Doubtful => colour(AnsiColor::Yellow),
            Self::Good => colour(AnsiColor::Green),
            Self::Aside => Style::new().dimmed(),
        }
    }
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Makes a table with a row for each item.
    pub(crate) fn of<'a, T: 'a>(
        columns: &[Column<T>],
        items: impl IntoIterator<Item = &'a T>,
    ) -> Self {
        let (headings, cells): (Vec<_>, Vec<_>) = columns.iter().copied().unzip();
        let mut table = Self::new(&headings);
        for item in items {
            table.row(cells.iter().map(|cell| cell(item)).collect());
        }
        table
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    fn lines(&self, coloured: bool) -> Vec<String> {
        let heading = |text: &&'static str| Cell::styled(*text, Style::new().bold());
        let head: Vec<Cell> = self.headings.iter().map(heading).collect();
        let all = || std::iter::once(&head).chain(&self.rows);
        let width = |column: usize| {
            let widths = all()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.text.chars().count());
            widths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
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

impl Cell {
    /// A cell without colour.
    pub(crate) fn plain(text: impl Display) -> Self {
        Self::styled(text, Style::new())
    }

    fn styled(text: impl Display, style: Style) -> Self {
        Self {
            text: plain::line(&text.to_string()),
            style,
        }
    }

    /// A cell with a severity, if it has one.
    pub(crate) fn toned(text: impl Display, tone: Option<Tone>) -> Self {
        Self::styled(text, tone.map_or_else(Style::new, Tone::style))
    }

    /// A cell of an effect: the more harmful, the warmer its colour.
    pub(crate) fn effect(effect: &str) -> Self {
        let style = match effect {
            "read_only" => colour(AnsiColor::Green),
            "idempotent" => colour(AnsiColor::Cyan),
            "mutating" => colour(AnsiColor::Yellow),
            "destructive" => colour(AnsiColor::Red),
            _ => Style::new(),
        };
        Self::styled(effect, style)
    }

    /// A cell of a share from 0 to 1, in percent: the larger, the greener.
    pub(crate) fn share(share: Option<f64>) -> Self {
        let Some(share) = share else {
            return Self::plain("-");
        };
        let tone = match share {
            share if share >= 0.5 => Some(Tone::Good),
            share if share > 0.0 => None,
            _ => Some(Tone::Doubtful),
        };
        Self::toned(format_args!("{:.1} %", share * 100.0), tone)
    }

    /// A cell that stands out if `when`.
    pub(crate) fn warn(text: impl Display, when: bool) -> Self {
        Self::toned(text, when.then_some(Tone::Doubtful))
    }
}

/// Shows a number of things: `1 call`, `2 calls`.
pub(crate) fn counted(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}

/// Writes a measured time in three digits or so.
pub(crate) fn took(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1_000.0;
    if ms < 1.0 {
        format!("{:.0} µs", ms * 1_000.0)
    } else if ms < 1_000.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{:.2} s", ms / 1_000.0)
    }
}

/// Writes a line to standard error, in one piece.
fn write_line(line: &str) {
    let _ = Stderr.write_all(format!("{line}\n").as_bytes());
}

fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}

fn paint(text: &str, style: Style, coloured: bool) -> String {
    if coloured {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// <https://no-color.org>: any text but none turns colour off.
fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other_with_and_without_colour() {
        let mut table = Table::new(&["tool", "effect"]);
        table.row(vec![Cell::plain("a_long_name"), Cell::effect("read_only")]);
        table.row(vec![Cell::plain("b"), Cell::effect("destructive")]);
        assert_eq!(
            table.lines(false),
            [
                "tool         effect",
                "a_long_name  read_only",
                "b            destructive"
            ]
        );
        let coloured = table.lines(true);
        assert!(
            coloured[2].contains("\u{1b}[31mdestructive\u{1b}[0m"),
            "{coloured:?}"
        );
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (micros, want) in [(250, "250 µs"), (1_500, "1.5 ms"), (2_000_000, "2.00 s")] {
            assert_eq!(took(Duration::from_micros(micros)), want);
        }
    }
}
