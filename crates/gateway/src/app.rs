//! From arguments to an exit code: logging, the runtime, one command.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tollgate::telemetry::names;
use tracing::{Level, Metadata};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Args, Command};
use crate::commands;
use crate::error::{AppError, Outcome};
use crate::output::Screen;

/// How long the runtime may take to end. Reading standard input cannot be cancelled, so it is not
/// waited for.
const RUNTIME_END: Duration = Duration::from_millis(500);

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let args = Args::parse();
    let screen = Screen::new();
    let ended = start_log(&args).and_then(|()| run(args.command, &screen));
    let code = ended.unwrap_or_else(|error| {
        screen.error(&error);
        error.exit_code()
    });
    match screen.lost() {
        Some(error) => {
            screen.error(&format_args!("standard output cannot be written: {error}"));
            ExitCode::FAILURE
        }
        None => code,
    }
}

fn run(command: Command, screen: &Screen) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(AppError::io("the runtime does not start"))?;
    let ended = runtime.block_on(async {
        match command {
            Command::Annotate(args) => commands::annotate::run(args, screen).await,
            Command::Lint(args) => commands::lint::run(args, screen).await,
            Command::Serve(args) => commands::serve::run(args, screen).await,
            Command::Run(args) => commands::run::run(args, screen).await,
            Command::Call(args) => commands::call::run(args, screen).await,
            Command::Tools(args) => commands::tools::run(args, screen).await,
            Command::Explain(args) => commands::explain::run(args, screen).await,
            Command::Cache(args) => commands::cache::run(args, screen).await,
            Command::Audit(args) => commands::audit::run(args, screen).await,
            Command::Breakers(args) => commands::breakers::run(args, screen).await,
            Command::Limits(args) => commands::limits::run(args, screen).await,
            Command::Servers(args) => commands::servers::run(args, screen).await,
            Command::Events(args) => commands::events::run(args, screen).await,
            Command::Demo(args) => commands::demo::run(args, screen).await,
            Command::Replay(args) => commands::replay::run(args, screen).await,
            Command::Sample(args) => commands::sample::run(args, screen).await,
        }
    });
    runtime.shutdown_timeout(RUNTIME_END);
    ended
}

/// Logs go to standard error: standard output carries results, or a protocol.
fn start_log(args: &Args) -> Result<(), AppError> {
    let default = if matches!(args.command, Command::Serve(_)) {
        "info"
    } else {
        "error"
    };
    let levels = args.log.as_deref().unwrap_or(default);
    let levels = parse_levels(levels)?;
    // To write out what a span says of its call takes longer than all layers of the stack. So lines
    // of the log stand alone, unless they are asked for in detail.
    let in_detail = levels.would_enable(names::TARGET, &Level::DEBUG);
    let shown = move |metadata: &Metadata<'_>| {
        in_detail || metadata.is_event() || metadata.target() != names::TARGET
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(Screen::stderr_is_coloured())
        // both in one filter of the layer: beside a filter of all layers, spans nobody looks at are
        // made all the same
        .with_filter(levels.and(filter_fn(shown).with_max_level_hint(LevelFilter::TRACE)));
    tracing_subscriber::registry().with(layer).init();
    Ok(())
}

/// Reads `LEVEL` or `TARGET=LEVEL` pairs. A lone word must be a level: taken for a target, a slip of
/// the keyboard would turn the log off.
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
        for text in ["info", "off", "warn,tollgate_cache=debug"] {
            assert!(parse_levels(text).is_ok(), "{text}");
        }
        for text in ["loud", "tollgate_cache", "info,tollgate=loud"] {
            assert!(parse_levels(text).is_err(), "{text}");
        }
    }
}
