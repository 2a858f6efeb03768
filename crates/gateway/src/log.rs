//! The program's log on standard error, and the exported spans.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use callward::telemetry::export::Exporter;
use callward::telemetry::names;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Args, Command, LogFormat};
use crate::error::AppError;
use crate::stderr::Stderr;
use crate::{output, plain};

/// What is to be logged.
#[derive(Debug)]
pub(crate) struct Log {
    levels: Targets,
    format: LogFormat,
}

impl Log {
    /// Reads what the arguments say.
    ///
    /// # Errors
    ///
    /// [`AppError::Usage`] if a level is unknown.
    pub(crate) fn new(args: &Args) -> Result<Self, AppError> {
        let serves = matches!(args.command, Command::Serve(_));
        let default = if serves { "info" } else { "error" };
        let levels = parse_levels(args.log.as_deref().unwrap_or(default))?;
        let format = args.log_format;
        output::JSON_LINES.store(format == LogFormat::Json, Ordering::Relaxed);
        Ok(Self { levels, format })
    }

    /// Starts to log to standard error: standard output carries results, or a protocol. What is
    /// exported does not depend on what is logged. A second start changes nothing.
    pub(crate) fn start(&self, exporter: Option<&Exporter>) {
        let registry = tracing_subscriber::registry().with(lines(&self.levels, self.format));
        // fails only if this subscriber is set already
        let _ = match exporter {
            None => registry.try_init(),
            Some(exporter) => registry.with(exporter.layer()).try_init(),
        };
    }
}

/// Writes lines. Formatting the fields of a call's span takes longer than all layers of the stack,
/// so lines have no spans unless details are asked for.
fn lines<S>(levels: &Targets, format: LogFormat) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let in_detail = levels.would_enable(names::TARGET, &Level::DEBUG);
    let shown = move |metadata: &Metadata<'_>| {
        in_detail || metadata.is_event() || metadata.target() != names::TARGET
    };
    let shown = filter_fn(shown).with_max_level_hint(LevelFilter::TRACE);
    let (layer, ansi) = (tracing_subscriber::fmt::layer(), *output::STDERR_COLOURED);
    let layer = match format {
        LogFormat::Text => layer.with_ansi(ansi).with_writer(|| Text).boxed(),
        LogFormat::Json => layer.json().with_writer(|| Stderr).boxed(),
    };
    // a filter of this layer alone: one of all layers would not keep unused spans from being made
    layer.with_filter(levels.clone().and(shown))
}

/// Standard error for lines of text. What servers say has no escapes in them any more, but may have
/// line ends and characters that change the direction of writing.
struct Text;

impl Write for Text {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = plain::logged(String::from_utf8_lossy(line).trim_end_matches('\n'));
        // in one piece: another thread may write at the same time
        Stderr.write_all((text + "\n").as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads `LEVEL` or `TARGET=LEVEL` pairs. A lone word must be a level: taken for a target, a typing
/// error would turn the log off.
fn parse_levels(text: &str) -> Result<Targets, AppError> {
    let lone_words_are_levels = text
        .split(',')
        .filter(|part| !part.contains('='))
        .all(|part| part.trim().parse::<LevelFilter>().is_ok());
    let targets = text.parse::<Targets>().ok();
    targets.filter(|_| lone_words_are_levels).ok_or_else(|| {
        AppError::Usage(format!(
            "--log {text:?}: expected off, error, warn, info, debug or trace, or TARGET=LEVEL pairs"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_word_we_know_or_a_pair() {
        for text in ["info", "off", "warn,callward_cache=debug"] {
            assert!(parse_levels(text).is_ok(), "{text}");
        }
        for text in ["loud", "callward_cache", "info,callward=loud"] {
            assert!(parse_levels(text).is_err(), "{text}");
        }
    }
}
