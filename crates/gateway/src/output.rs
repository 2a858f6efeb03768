//! Output: lines, colour on terminals, JSON.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Read, Write, stderr, stdin, stdout};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::json;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::plain;
use crate::stderr::Stderr;

/// Why standard output could not be written, the first time: what comes next is not read either.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// Whether standard output shows colour, and standard error.
pub(crate) static STDOUT_COLOURED: LazyLock<bool> =
    LazyLock::new(|| wants_colour() && stdout().is_terminal());
pub(crate) static STDERR_COLOURED: LazyLock<bool> =
    LazyLock::new(|| wants_colour() && stderr().is_terminal());

/// The severity of a cell or line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Bad,
    Doubtful,
    Good,
    Aside,
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
    write("INFO", String::new(), &line);
}

/// Writes why a command failed.
pub(crate) fn error(error: &impl Display) {
    let red = colour(AnsiColor::Red).bold();
    write("ERROR", paint("error:", red, *STDERR_COLOURED) + " ", error);
}

/// Writes a warning.
pub(crate) fn warning(warning: &impl Display) {
    let yellow = colour(AnsiColor::Yellow);
    let head = paint("warning:", yellow, *STDERR_COLOURED) + " ";
    write("WARN", head, warning);
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

/// Writes a heading to standard output.
pub(crate) fn heading(text: &str) {
    line(paint(text, Style::new().bold(), *STDOUT_COLOURED));
}

impl Tone {
    pub(crate) fn style(self) -> Style {
        match self {
            Self::Bad => colour(AnsiColor::Red).bold(),
            Self::Doubtful => colour(AnsiColor::Yellow),
            Self::Good => colour(AnsiColor::Green),
            Self::Aside => Style::new().dimmed(),
        }
    }
}

/// Shows a number of things: `1 call`, `2 calls`, `2 processes`.
pub(crate) fn counted(count: &impl ToString, word: &str) -> String {
    let count = count.to_string();
    let ending = match word.ends_with('s') {
        _ if count == "1" => "",
        true => "es",
        false => "s",
    };
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

/// Whether each line on standard error is a JSON object, as those of the log are.
pub(crate) static JSON_LINES: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard error, in one piece.
fn write(level: &str, head: String, text: &impl Display) {
    let (text, mut now) = (text.to_string(), String::new());
    let line = if JSON_LINES.load(Ordering::Relaxed) {
        // fails only if the clock cannot be shown
        let _ = SystemTime.format_time(&mut Writer::new(&mut now));
        let fields = json!({ "message": text });
        json!({ "timestamp": now, "level": level, "fields": fields, "target": "callward" })
            .to_string()
    } else {
        head + &plain::lines(&text)
    };
    let _ = Stderr.write_all((line + "\n").as_bytes());
}

pub(crate) fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}

pub(crate) fn paint(text: &str, style: Style, coloured: bool) -> String {
    match coloured {
        true => format!("{style}{text}{style:#}"),
        false => text.to_owned(),
    }
}

/// <https://no-color.org>: any text but none turns colour off.
fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
