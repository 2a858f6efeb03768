//! From arguments to an exit code: logging, the runtime, one command.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::args::{Args, Command};
use crate::error::{AppError, Outcome};
use crate::log::Log;
use crate::state_dir::StateDir;
use crate::stderr::Stderr;
use crate::{commands, output};

/// How long the runtime may take to end. Reading standard input cannot be cancelled, so it is not
/// waited for.
const RUNTIME_END: Duration = Duration::from_millis(500);

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let args = Args::parse();
    let ended = Log::new(&args).and_then(|log| {
        let state = StateDir::locate(args.state_dir.as_deref());
        run(args.command, state.as_ref(), &log)
    });
    let code = ended.unwrap_or_else(|error| {
        output::error(&error);
        error.exit_code()
    });
    let code = match output::lost() {
        Some(error) => {
            output::error(&format_args!("standard output cannot be written: {error}"));
            ExitCode::FAILURE
        }
        None => code,
    };
    Stderr::finish();
    code
}

fn run(command: Command, state: Option<&StateDir>, log: &Log) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(AppError::io("the runtime does not start"))?;
    if matches!(
        command,
        Command::Serve(_) | Command::Run(_) | Command::Sample { .. }
    ) {
        Stderr::detach();
    }
    // the two commands with exporters start logging after the exporters
    if !matches!(command, Command::Serve(_) | Command::Run(_)) {
        log.start(None);
    }
    let ended = runtime.block_on(async {
        match command {
            Command::Annotate(args) => commands::annotate::run(args).await,
            Command::Lint(args) => commands::lint::run(args).await,
            Command::Serve(args) => commands::serve::run(args, state, log).await,
            Command::Run(args) => commands::run::run(args, state, log).await,
            Command::Call(args) => commands::call::run(args, state).await,
            Command::Discover(args) => commands::discover::run(args, state).await,
            Command::Tools(args) => commands::tools::run(args, state).await,
            Command::Prompts(args) => commands::relayed::prompts(args, state).await,
            Command::Resources(args) => commands::relayed::resources(args, state).await,
            Command::Read(args) => commands::relayed::read(args, state).await,
            Command::Complete(args) => commands::relayed::complete(args, state).await,
            Command::Explain(args) => commands::explain::run(args, state).await,
            Command::Cache(args) => commands::status::cache(args, state).await,
            Command::Approvals(args) => commands::approvals::run(args, state).await,
            Command::Review(args) => commands::review::run(args, state).await,
            Command::Toolsets(args) => commands::toolsets::toolsets(args, state).await,
            Command::Notes(args) => commands::toolsets::notes(args, state).await,
            Command::Audit(args) => commands::audit::run(args).await,
            Command::Breakers(args) => commands::status::breakers(args, state).await,
            Command::Limits(args) => commands::status::limits(args, state).await,
            Command::Servers(args) => commands::status::servers(args, state).await,
            Command::Events(args) => commands::events::run(args, state).await,
            Command::Keys(args) => commands::keys::run(args, state).await,
            Command::Demo(args) => commands::demo::run(args).await,
            Command::Replay(args) => commands::replay::run(args).await,
            Command::Sample { http } => commands::sample::run(http).await,
            Command::Completions { shell } => commands::shell::completions(shell),
            Command::Man { folder } => commands::shell::man(&folder),
        }
    });
    runtime.shutdown_timeout(RUNTIME_END);
    ended
}
