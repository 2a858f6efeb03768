//! `callward run`: the stack around one MCP server.

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use callward::Stack;
use callward_mcp::client::Upstream;

use crate::args::Run;
use crate::assemble::{self, Environment, Running};
use crate::audit;
use crate::backend::StackBackend;
use crate::commands::serve::{Announce, Listeners, Served};
use crate::commands::{from, serve};
use crate::error::{AppError, Outcome};
use crate::inflight::Inflight;
use crate::log::Log;
use crate::metrics::Telemetry;
use crate::output::Screen;
use crate::record::Recorder;
use crate::started::Started;
use crate::state_dir::StateDir;
use crate::{evidence, shutdown, stdio, telemetry, view};

pub(crate) async fn run(
    args: Run,
    state: Option<&StateDir>,
    log: &Log,
    screen: &Screen,
) -> Outcome {
    shutdown::ignore_hangup()?;
    let stop = shutdown::on_signal()?;
    let mut config = from::wrapped(&args)?;
    let program = args.command.first().map_or("the server", String::as_str);
    config.cache.layer.evidence_file = match &args.config {
        Some(file) => evidence::file_of_config(state, file),
        None => evidence::file_of_command(state, &args.command),
    };
    if let Some(address) = args.http {
        serve::listen_at(address, &mut config)?;
    }
    let exporter = telemetry::exporter(&config.telemetry)?;
    log.start(exporter.as_ref());
    let listeners = match args.http {
        Some(_) => Some(Listeners::bind(&config).await?),
        None => None,
    };
    let telemetry = Telemetry::exporting(exporter)?;
    let recorder = Recorder::open(&args.recording)?;
    let running = assemble::stack(&config, Environment::Inherited, &telemetry)?;
    if let Some(listeners) = listeners {
        let served = Served {
            running,
            telemetry,
            recorder,
            listeners,
            names: None,
            needs_start: true,
        };
        let announce = Announce::default();
        return served.run(&config, announce, state, &stop, screen).await;
    }
    let Running {
        stack,
        upstreams,
        startup,
    } = running;
    let calls = Inflight::default();
    let started = Started::default();
    let backend = StackBackend::new(
        stack.clone(),
        upstreams.clone(),
        calls.clone(),
        recorder.clone(),
    );
    let backend = backend
        .with_started(started.clone())
        .with_observer(telemetry.observer())
        .with_baggage(telemetry::baggage(&config.telemetry));
    let backend = Arc::new(backend.with_reports(config.reports()));
    let starting = async {
        started.follow(startup).await;
        if let Some(error) = failure(&stack, &upstreams) {
            return error;
        }
        if stack.servers().iter().any(|server| !server.up) {
            screen.note(format_args!(
                "`{program}` has not listed its tools; attempts go on"
            ));
        }
        match evidence::keep(stack.clone()).await {}
    };
    let mut starting = pin!(starting);
    let mut served = tokio::select! {
        error = &mut starting => Err(error),
        served = stdio::serve(backend, &calls, config.http.drain, &upstreams, &stop, screen) => served,
    };
    if served.is_ok() && !started.is_finished() {
        // the client left before it was known whether there is a server
        served = tokio::select! {
            biased;
            error = &mut starting => Err(error),
            () = started.soon() => Ok(()),
        };
    }
    evidence::save(&stack).await;
    stack.stop_discovery();
    shutdown::end_servers(&upstreams, &stop).await;
    recorder.finish(screen).await;
    audit::close(&stack, screen).await;
    telemetry.finish(screen).await;
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Returns why the wrapped server failed to start. Without it there is nothing to serve, and the
/// client gets the end that it gets if it starts the server itself.
pub(super) fn failure(stack: &Stack, upstreams: &[Upstream]) -> Option<AppError> {
    if let Some(reason) = upstreams.iter().find_map(Upstream::start_failure) {
        return Some(AppError::Remote(reason));
    }
    let down = stack.servers().into_iter().find(|server| !server.up)?;
    let reason = view::advised(down.last_error.as_deref()?);
    Some(AppError::Remote(format!(
        "server `{}` did not start: {reason}",
        down.id
    )))
}
