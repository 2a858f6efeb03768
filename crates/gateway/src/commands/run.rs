//! `callward run`: the stack around one MCP server.

use std::cell::Cell;
use std::process::ExitCode;

use callward::registry::Hold;
use callward_mcp::client::Upstream;
use tokio::sync::watch;

use crate::approvals::Operators;
use crate::args::Run;
use crate::assemble::{self, Environment};
use crate::backend::StackBackend;
use crate::commands::serve::Manner;
use crate::commands::{from, serve};
use crate::error::{AppError, Outcome};
use crate::log::Log;
use crate::metrics::Telemetry;
use crate::output::counted;
use crate::record::Recorder;
use crate::runtime::Runtime;
use crate::state_dir::StateDir;
use crate::toolsets::Toolsets;
use crate::{approvals, evidence, output, pins, shutdown, stdio, telemetry, view};

pub(crate) async fn run(args: Run, state: Option<&StateDir>, log: &Log) -> Outcome {
    shutdown::ignore_hangup()?;
    let stop = shutdown::on_signal()?;
    let mut config = from::wrapped(&args)?;
    let program = args.command.first().map_or("the server", String::as_str);
    let file = |folder: &str, kind: &str| match (&args.config, state?) {
        (Some(file), state) => state.file_of_config(folder, file, kind),
        (None, state) => state.file_of_command(folder, &args.command, kind),
    };
    config.cache.layer.evidence_file = file("evidence", "jsonl");
    // its server may be upgraded at any start
    config.review = pins::open(&config, file("pins", "json"), Hold::Looser, true)?;
    if let Some(address) = args.http {
        serve::listen_at(address, &mut config)?;
    }
    config.toolsets.open = Toolsets::open(&config, args.config.as_deref(), state)?;
    let exporter = telemetry::exporter(&config.telemetry)?;
    log.start(exporter.as_ref());
    let listeners = match args.http {
        Some(_) => Some(serve::bind(&config, state).await?),
        None => None,
    };
    let telemetry = Telemetry::exporting(exporter)?;
    let recorder = Recorder::open(&args.recording)?;
    let (introduced, only_client) = watch::channel(None);
    let only_client = listeners.is_none().then_some(&only_client);
    let operators = match listeners {
        Some(_) => Operators::Here,
        None => Operators::Nowhere,
    };
    let file = args.config.as_deref();
    let approvals = approvals::open(&config, file, state, operators, &stop.closing).await?;
    let environment = Environment::Inherited;
    let running = assemble::stack(&config, environment, &telemetry, only_client, approvals)?;
    let page = listeners.as_ref().and_then(serve::page);
    let runtime = Runtime::new(&config, running, telemetry, recorder, stop, page);
    if let Some(listeners) = listeners {
        let manner = Manner {
            file: args.config,
            is_wrapped: true,
            ..Manner::default()
        };
        return serve::serve(runtime, listeners, manner, &config, state).await;
    }
    let (started, has_started) = (&runtime.started, Cell::new(false));
    let starting = async {
        started.finished().await;
        if let Some(error) = failure(&runtime) {
            return error;
        }
        has_started.set(true);
        if runtime.stack.servers().iter().any(|server| !server.up) {
            output::note(format_args!(
                "`{program}` has not listed its tools; attempts go on"
            ));
        }
        warn_of_held(&runtime);
        match evidence::keep(runtime.stack.clone()).await {}
    };
    let backend = StackBackend::for_one(runtime.clone(), introduced);
    let (end, stop) = (runtime.end_servers(), &runtime.stop);
    let watched = runtime.toolsets.as_ref().map(Toolsets::watch);
    let mut served = tokio::select! {
        error = starting => Err(error),
        never = serve::forever(watched) => match never {},
        served = stdio::serve(backend, config.http.drain, end, stop) => served,
    };
    if served.is_ok() && !has_started.get() {
        // the client may have left before it was known whether there is a server
        started.soon().await;
        served = failure(&runtime).map_or(Ok(()), Err);
    }
    runtime.finish().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

/// How many held tools are named.
const NAMED: usize = 8;

/// Says once which tools clients do not get. Where nothing is logged, this is all that is seen.
fn warn_of_held(runtime: &Runtime) {
    let catalogue = runtime.stack.catalogue();
    let named = catalogue.held().iter().take(NAMED);
    let named: Vec<_> = named.map(|held| format!("`{}`", held.tool)).collect();
    if !named.is_empty() {
        output::warning(&format_args!(
            "{} held for review, and not offered: {}; see `callward review --help`",
            counted(&catalogue.held().len(), "tool"),
            named.join(", ")
        ));
    }
}

/// Returns why the wrapped server failed to start. Then the process ends, as the server's would if
/// the client had started it.
pub(super) fn failure(runtime: &Runtime) -> Option<AppError> {
    if runtime.stop.cut_off.is_cancelled() {
        return None;
    }
    if let Some(reason) = runtime.upstreams.iter().find_map(Upstream::start_failure) {
        return Some(AppError::Remote(reason));
    }
    let down = runtime
        .stack
        .servers()
        .into_iter()
        .find(|server| !server.up)?;
    let reason = view::advised(down.last_error.as_deref()?);
    Some(AppError::Remote(format!(
        "server `{}` did not start: {reason}",
        down.id
    )))
}
