//! `tollgate run`: the stack around one MCP server.

use std::process::ExitCode;
use std::sync::Arc;

use crate::args::Run;
use crate::assemble::{self, Environment};
use crate::audit;
use crate::backend::StackBackend;
use crate::commands::serve::Announce;
use crate::commands::{from, serve};
use crate::error::{AppError, Outcome};
use crate::inflight::Inflight;
use crate::log::Log;
use crate::metrics::Telemetry;
use crate::output::Screen;
use crate::record::Recorder;
use crate::state_dir::StateDir;
use crate::{shutdown, stdio, telemetry};

pub(crate) async fn run(
    args: Run,
    state: Option<&StateDir>,
    log: &Log,
    screen: &Screen,
) -> Outcome {
    let stop = shutdown::on_signal()?;
    let Some((program, rest)) = args.command.split_first() else {
        return Err(AppError::Usage("expected a command after `--`".into()));
    };
    let mut config = from::wrap(program, rest, args.prefix.as_deref())?;
    let exporter = telemetry::exporter(&config.telemetry)?;
    log.start(exporter.as_ref());
    let telemetry = Telemetry::exporting(exporter)?;
    let recorder = Recorder::open(&args.recording)?;
    let starting = assemble::stack(&config, Environment::Inherited, &telemetry);
    let running = tokio::select! {
        running = starting => running?,
        () = stop.asked().cancelled() => return Ok(ExitCode::SUCCESS),
    };
    for server in running
        .stack
        .servers()
        .into_iter()
        .filter(|server| !server.up)
    {
        let reason = server
            .last_error
            .as_deref()
            .unwrap_or("it does not answer yet");
        screen.note(format_args!(
            "`{program}` is not up: {reason}; attempts go on"
        ));
    }
    if let Some(address) = args.http {
        config.http.listen = address;
        return serve::listen(
            running,
            telemetry,
            recorder,
            &config,
            Announce::default(),
            &stop,
            screen,
        )
        .await;
    }
    let (servers, audited) = (running.upstreams.clone(), running.stack.clone());
    let calls = Inflight::default();
    let backend = StackBackend::new(
        running.stack,
        running.upstreams,
        calls.clone(),
        recorder.clone(),
    );
    let backend = backend
        .with_observer(telemetry.observer())
        .with_baggage(telemetry::baggage(&config.telemetry));
    let backend = Arc::new(backend.with_reports(config.reports()));
    let served = stdio::serve(backend, &calls, config.http.drain, &stop, screen).await;
    shutdown::end_servers(&servers, &stop).await;
    recorder.finish(screen).await;
    audit::close(&audited, screen).await;
    telemetry.finish(screen).await;
    served?;
    Ok(ExitCode::SUCCESS)
}
