//! `tollgate serve`: the gateway over HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use tollgate::registry::Catalogue;

use crate::args::Serve;
use crate::assemble::{self, Environment, Running};
use crate::commands::tools::table;
use crate::config::{Config, ServerConfig, TargetConfig, show_duration, show_size};
use crate::error::{AppError, Outcome};
use crate::http::{self, Operator};
use crate::inflight::Inflight;
use crate::metrics::Telemetry;
use crate::output::{Cell, Screen, Table};
use crate::record::Recorder;
use crate::sample::Embedded;
use crate::shutdown::{self, Stop};
use crate::view::ToolView;

pub(crate) async fn run(args: Serve, screen: &Screen) -> Outcome {
    let mut config = match &args.config {
        Some(file) => Config::load(file)?,
        None => Config::without_file(Vec::new()),
    };
    if let Some(address) = args.http {
        config.http.listen = address;
    }
    if args.check {
        return check(args.config.as_deref(), &config, args.json, screen);
    }
    let stop = shutdown::on_signal()?;
    let telemetry = Telemetry::new()?;
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
    let sample = Embedded::start().await?;
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
    let reports = config.cache.report;
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
    let servers = upstreams.clone();
    let calls = Inflight::default();
    telemetry.observe_calls(&calls);
    let operator = Arc::new(Operator {
        stack,
        upstreams,
        telemetry,
        calls: calls.clone(),
        recorder: recorder.clone(),
        allowed_hosts: config.allowed_hosts.clone(),
        reports,
    });
    let routes = http::gateway(operator, config, stop.asked())?;
    let served = http::serve(listener, routes, &calls, config.drain, stop, screen).await;
    shutdown::end_servers(&servers, stop).await;
    recorder.finish(screen).await;
    served?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Checked<'a> {
    ok: bool,
    listen: String,
    profile: &'a str,
    /// The keys of `[cache]` that are not the defaults.
    cache: Map<String, Value>,
    servers: Vec<CheckedServer<'a>>,
}

#[derive(Serialize)]
struct CheckedServer<'a> {
    id: &'a str,
    set: &'a str,
    weight: u32,
    prefix: Option<&'a str>,
    target: String,
}

/// Says what would run. The file was checked on the way here.
fn check(file: Option<&Path>, config: &Config, json: bool, screen: &Screen) -> Outcome {
    let server = |server: &'_ ServerConfig| -> String { target(&server.target) };
    if json {
        let servers = config.servers.iter().map(|one| CheckedServer {
            id: one.id.as_str(),
            set: one.set.as_str(),
            weight: one.weight,
            prefix: one.prefix.as_deref(),
            target: server(one),
        });
        screen.json(&Checked {
            ok: true,
            listen: config.http.listen.to_string(),
            profile: config.profile.name,
            cache: config.cache.changed(),
            servers: servers.collect(),
        });
        return Ok(ExitCode::SUCCESS);
    }
    match file {
        Some(file) => screen.heading(&format!("{}: no problems; it would run", file.display())),
        None => screen.heading("no --config: the embedded sample would run"),
    }
    screen.out(format_args!("endpoint   http://{}/mcp", config.http.listen));
    screen.out(format_args!(
        "profile    {}, whole calls within {}",
        config.profile.name,
        show_duration(config.call_deadline)
    ));
    screen.out(format_args!("cache      {}", cache(config)));
    for (key, value) in config.cache.changed() {
        screen.out(format_args!("           {key} = {value}"));
    }
    screen.out(format_args!(
        "repeats    at most {} attempts, {} repeats per call over time",
        config.retry.max_attempts,
        f64::from(config.retry.budget_percent) / 100.0
    ));
    screen.out(format_args!(
        "breaker    open for {} after {} failures in a row",
        show_duration(config.breaker.open_time),
        config.breaker.failures
    ));
    let mut servers = Table::new(&["server", "set", "weight", "prefix", "target"]);
    for one in &config.servers {
        servers.row(vec![
            Cell::plain(&one.id),
            Cell::plain(&one.set),
            Cell::plain(one.weight),
            Cell::plain(one.prefix.as_deref().unwrap_or("-")),
            Cell::plain(server(one)),
        ]);
    }
    screen.table(&servers);
    Ok(ExitCode::SUCCESS)
}

fn cache(config: &Config) -> String {
    if !config.cache.enabled {
        return "off".into();
    }
    let writes = if config.cache.idempotent_writes {
        "kept"
    } else {
        "not kept"
    };
    format!(
        "{} in all, {} per result, idempotent writes {writes}",
        show_size(config.cache.max_bytes),
        show_size(config.cache.max_item_bytes)
    )
}

/// Describes a target without its secrets: headers and environment are left out.
fn target(target: &TargetConfig) -> String {
    match target {
        TargetConfig::Command { program, args, .. } => std::iter::once(program)
            .chain(args)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        TargetConfig::Http { url, .. } => url.clone(),
    }
}
