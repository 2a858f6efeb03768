//! `tollgate serve`: the gateway over HTTP.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use tollgate::registry::Catalogue;

use crate::args::Serve;
use crate::assemble::{self, Environment, Running};
use crate::audit;
use crate::commands::check::check;
use crate::commands::tools::table;
use crate::config::Config;
use crate::error::{AppError, Outcome};
use crate::http::{self, Operator};
use crate::inflight::Inflight;
use crate::log::Log;
use crate::metrics::Telemetry;
use crate::output::Screen;
use crate::record::Recorder;
use crate::sample::Embedded;
use crate::shutdown::{self, Stop};
use crate::state_dir::StateDir;
use crate::telemetry;
use crate::view::ToolView;

pub(crate) async fn run(
    args: Serve,
    state: Option<&StateDir>,
    log: &Log,
    screen: &Screen,
) -> Outcome {
    let mut config = match &args.config {
        Some(file) => Config::load(file)?,
        None => Config::without_file(Vec::new()),
    };
    if let Some(address) = args.http {
        config.http.listen = address;
    }
    if args.check {
        log.start(None);
        return check(args.config.as_deref(), &config, args.json, screen);
    }
    let stop = shutdown::on_signal()?;
    let exporter = telemetry::exporter(&config.telemetry)?;
    log.start(exporter.as_ref());
    let telemetry = Telemetry::exporting(exporter)?;
    let recorder = Recorder::open(&args.recording)?;
    let running = tokio::select! {
        running = start(&args, &config, &telemetry) => running?,
        () = stop.asked().cancelled() => return Ok(ExitCode::SUCCESS),
    };
    if !config.http.listen.ip().is_loopback() {
        screen.note(format_args!(
            "note: {} is not loopback, and the gateway asks nobody who they are; put something in \
             front that does",
            config.http.listen
        ));
    }
    if args.config.is_none() {
        screen.note(
            "no --config: serving the embedded sample, one replica set of two MCP servers over a \
             small shop",
        );
    }
    if !args.json {
        screen.table(&table(&ToolView::all(&running.stack)));
    }
    let announce = Announce {
        json: args.json,
        sample: args.config.is_none(),
    };
    listen(
        running, telemetry, recorder, &config, announce, &stop, screen,
    )
    .await
}

async fn start(args: &Serve, config: &Config, telemetry: &Telemetry) -> Result<Running, AppError> {
    if args.config.is_some() {
        return assemble::stack(config, Environment::Small, telemetry).await;
    }
    let sample = Embedded::start(telemetry).await?;
    assemble::stack_over(
        config,
        sample.upstreams.to_vec(),
        sample.servers()?,
        telemetry,
    )
    .await
}

/// What is said once the listener is there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Announce {
    /// Say where it listens as JSON too.
    pub(crate) json: bool,
    /// The tools are those of the sample.
    pub(crate) sample: bool,
}

impl Announce {
    /// Returns the next command to try.
    fn next(self, tools: &Catalogue, address: SocketAddr) -> String {
        if self.sample {
            return format!(
                "tollgate call orders__get_order '{{\"order_id\": 1}}' --url http://{address}/mcp"
            );
        }
        match tools.entries().first() {
            Some(first) => {
                format!(
                    "tollgate explain {} --url http://{address}/mcp",
                    first.client_name()
                )
            }
            None => format!("curl http://{address}/readyz"),
        }
    }
}

#[derive(Serialize)]
struct Listening {
    listening: String,
    tools: usize,
}

/// Serves a stack until a signal comes, then ends the servers behind it.
pub(crate) async fn listen(
    running: Running,
    telemetry: Telemetry,
    recorder: Recorder,
    config: &Config,
    announce: Announce,
    stop: &Stop,
    screen: &Screen,
) -> Outcome {
    let reports = config.reports();
    let baggage = telemetry::baggage(&config.telemetry);
    let config = &config.http;
    let listener = http::bind(config.listen).await?;
    let address = http::bound(&listener)?;
    let Running { stack, upstreams } = running;
    let tools = stack.catalogue();
    if announce.json {
        screen.json(&Listening {
            listening: format!("http://{address}/mcp"),
            tools: tools.entries().len(),
        });
    }
    screen.note(format_args!("tollgate listening on http://{address}/mcp"));
    screen.note(format_args!("try:  {}", announce.next(&tools, address)));
    let (servers, audited) = (upstreams.clone(), stack.clone());
    let calls = Inflight::default();
    telemetry.observe_calls(&calls);
    let telemetry = Arc::new(telemetry);
    let operator = Arc::new(Operator {
        stack,
        upstreams,
        telemetry: telemetry.clone(),
        calls: calls.clone(),
        recorder: recorder.clone(),
        allowed_hosts: config.allowed_hosts.clone(),
        reports,
        baggage,
        stopping: stop.asked().clone(),
    });
    let routes = http::gateway(operator, config, stop.asked())?;
    let served = http::serve(listener, routes, &calls, config.drain, stop, screen).await;
    shutdown::end_servers(&servers, stop).await;
    recorder.finish(screen).await;
    audit::close(&audited, screen).await;
    telemetry.finish(screen).await;
    served?;
    Ok(ExitCode::SUCCESS)
}
