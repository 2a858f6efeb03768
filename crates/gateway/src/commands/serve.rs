//! `callward serve`: the gateway over HTTP.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use axum::serve::ListenerExt;
use callward::registry::Hold;
use callward_auth::keys::Secret;
use serde_json::json;
use tokio::net::TcpListener;

use crate::admin::access::{self, Access};
use crate::approvals::Operators;
use crate::args::Serve;
use crate::assemble::{self, Environment};
use crate::auth::Auth;
use crate::commands::check::{check, warnings};
use crate::commands::{run, tools};
use crate::config::{AdminAddress, Config, PUBLIC, Servers, exposed};
use crate::error::{AppError, Outcome};
use crate::kept_names::NameFile;
use crate::log::Log;
use crate::metrics::Telemetry;
use crate::record::Recorder;
use crate::registered::{self, Gateway, Registration, Token};
use crate::runtime::Runtime;
use crate::sample::Embedded;
use crate::state_dir::StateDir;
use crate::toolsets::Toolsets;
use crate::{
    admin, approvals, connections, evidence, http, output, pins, shutdown, telemetry, view, webhook,
};

/// The config file that is used if it is in the current folder and no other is named.
pub(crate) const DEFAULT_FILE: &str = "callward.toml";

/// Returns that file, if it is there.
pub(crate) fn default_file() -> Option<PathBuf> {
    Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists())
}

pub(crate) async fn run(mut args: Serve, state: Option<&StateDir>, log: &Log) -> Outcome {
    if args.config.is_none() {
        args.config = default_file();
        if args.config.is_some() {
            output::note(format_args!("using {DEFAULT_FILE} in this folder"));
        } else if !args.check {
            output::note(format_args!(
                "no --config, and no {DEFAULT_FILE} in this folder: serving the embedded sample, one \
                 replica set of two servers over a small shop"
            ));
        }
    }
    let mut config = match &args.config {
        Some(file) => Config::load(file, Servers::Some)?,
        None => Config::without_file(Vec::new()),
    };
    if let Some(address) = args.http {
        listen_at(address, &mut config)?;
    }
    if args.check {
        log.start(None);
        Toolsets::open(&config, args.config.as_deref(), state)?;
        return check(args.config.as_deref(), &config, args.json);
    }
    shutdown::ignore_hangup()?;
    let stop = shutdown::on_signal()?;
    let file = args.config.as_deref();
    let evidence = |file| state?.file_of_config("evidence", file, "jsonl");
    config.cache.layer.evidence_file = file.and_then(evidence);
    let names = file.and_then(|file| NameFile::of_config(state, file));
    let sets = config.servers.iter().map(|server| server.set.clone());
    config.kept_names = names
        .as_ref()
        .map_or_else(Vec::new, |names| names.read(&sets.collect()));
    let pins = file.and_then(|file| state?.file_of_config("pins", file, "json"));
    config.review = pins::open(&config, pins, Hold::Changes, true)?;
    config.toolsets.open = Toolsets::open(&config, file, state)?;
    let exporter = telemetry::exporter(&config.telemetry)?;
    log.start(exporter.as_ref());
    // bound before any server starts: a taken port is said at once, and clients may wait here
    let listeners = bind(&config, state).await?;
    let telemetry = Telemetry::exporting(exporter)?;
    let recorder = Recorder::open(&args.recording)?;
    let (here, closing) = (Operators::Here, &stop.closing);
    let approvals = approvals::open(&config, file, state, here, closing).await?;
    let running = match &args.config {
        Some(_) => assemble::stack(&config, Environment::Small, &telemetry, None, approvals)?,
        None => {
            let sample = Embedded::new()?.replica_set()?;
            assemble::stack_over(&config, Vec::new(), sample, &telemetry, approvals)?
        }
    };
    let page = page(&listeners);
    let runtime = Runtime::new(&config, running, telemetry, recorder, stop, page);
    let manner = Manner {
        json: args.json,
        file: args.config,
        names,
        is_wrapped: false,
    };
    serve(runtime, listeners, manner, &config, state).await
}

/// Takes an address of the command line in place of the config's.
///
/// # Errors
///
/// [`AppError::Usage`] if other machines can reach it and the config does not allow that.
pub(crate) fn listen_at(address: SocketAddr, config: &mut Config) -> Result<(), AppError> {
    if !config.http.insecure
        && !config.identifies()
        && let Some(why) = exposed(address, PUBLIC)
    {
        return Err(AppError::Usage(format!("--http: {why}")));
    }
    config.http.listen = address;
    Ok(())
}

/// What differs between gateways.
#[derive(Debug, Default)]
pub(crate) struct Manner {
    /// Say where it listens as JSON too, and list no tools.
    pub(crate) json: bool,
    /// The config file; of `serve` without one, the sample is served.
    pub(crate) file: Option<PathBuf>,
    /// Where the names of tools are kept.
    pub(crate) names: Option<NameFile>,
    /// It wraps one server, and ends with an error if that cannot be started.
    pub(crate) is_wrapped: bool,
}

/// The bound listeners of a gateway, for clients and for operators, and what identifies clients.
pub(crate) type Listeners = (TcpListener, admin::Listener, Auth);

/// Binds both, and reads the keys of clients.
///
/// # Errors
///
/// [`AppError`] if an address is taken or not ours, or the keys cannot be read.
pub(crate) async fn bind(config: &Config, state: Option<&StateDir>) -> Result<Listeners, AppError> {
    let auth = Auth::open(config, state)?;
    let public = http::bind(config.http.listen, "--http or `http.listen`").await?;
    let admin = admin::Listener::bind(config.admin.listen.as_ref()).await?;
    Ok((public, admin, auth))
}

/// Returns the URL of the page for secrets; `None` if not all clients are where it can be opened:
/// without TLS, on this machine.
pub(super) fn page((public, admin, _): &Listeners) -> Option<String> {
    let AdminAddress::Tcp(admin) = admin.address().ok()? else {
        return None;
    };
    let is_local = admin.ip().is_loopback() && http::bound(public).ok()?.ip().is_loopback();
    is_local.then(|| format!("http://{admin}{}", admin::ask::PATH))
}

/// Serves over HTTP until a signal comes, then ends the servers behind it.
pub(crate) async fn serve(
    runtime: Arc<Runtime>,
    (public, admin, auth): Listeners,
    mut manner: Manner,
    config: &Config,
    state: Option<&StateDir>,
) -> Outcome {
    let files = &config.http.tls;
    let tls = connections::Tls::open(files)?;
    let scheme = tls.as_ref().map_or("http", |_| "https");
    let admin_address = admin.address()?;
    // on a socket, its mode is the credential
    let token = match admin_address {
        AdminAddress::Tcp(_) => Some(Secret::random()?),
        AdminAddress::Unix(_) => None,
    };
    let file = manner.file.as_deref();
    let gateway = Gateway {
        pid: std::process::id(),
        admin: admin_address.to_string(),
        public: format!("{scheme}://{}/mcp", http::bound(&public)?),
        config: file.and_then(|file| std::fs::canonicalize(file).ok()),
        token: token.as_ref().map(|token| Token(token.expose().to_owned())),
        file: PathBuf::new(),
    };
    let registration = register(state, &gateway);
    say_where(&gateway.public, &admin_address, &manner, config);
    if let Some(why) = auth.lacks() {
        output::warning(&why);
    }
    webhook::start(&runtime);
    let (stack, calls) = (&runtime.stack, &runtime.stop.calls);
    runtime.telemetry.observe_calls(calls);
    let routes = http::gateway(runtime.clone(), &config.http, &auth)?;
    let access = Access::new(
        &auth,
        token,
        &runtime.telemetry.refusals,
        access::principal(stack),
    );
    let hosts = http::patterns(&config.admin.allowed_hosts)?;
    let operators = admin::routes(runtime.clone(), access, hosts);
    let drained = runtime.stop.drained.clone();
    let mut limits = config.http.connections.clone();
    connections::make_fit(&mut limits);
    let public = public.tap_io(connections::prepare);
    let renewing = tls.clone().map(connections::Tls::watch);
    let serving = async move {
        tokio::join!(
            connections::serve(public, Some, routes, limits.clone(), tls, drained.clone()),
            admin.serve(operators, limits, drained)
        );
        Ok(())
    };
    let watched = runtime.toolsets.as_ref().map(Toolsets::watch);
    let mut names = manner.names.take();
    let starting = async {
        runtime.started.finished().await;
        let failure = run::failure(&runtime);
        if let Some(error) = failure.filter(|_| manner.is_wrapped) {
            return error;
        }
        if !manner.json && !manner.is_wrapped {
            tools::show(&view::tools(stack, stack.catalogue().entries()));
        }
        match stack.catalogue().entries().first() {
            _ if manner.file.is_none() && !manner.is_wrapped => {
                output::note("try:  callward call orders__get_order '{\"order_id\": 1}'");
            }
            Some(first) => output::note(format_args!(
                "try:  callward explain {}",
                first.client_name()
            )),
            None => {}
        }
        match evidence::keep(stack.clone()).await {}
    };
    // at once: a name that is not written may go to another tool after the next start
    let naming = forever(names.as_mut().map(|names| names.keep(stack)));
    let (end, stop) = (runtime.end_servers(), &runtime.stop);
    let (lame_duck, limit) = (config.http.lame_duck, config.http.drain);
    let serving = shutdown::serve(serving, calls.wait(), end, stop, lame_duck, limit);
    let served = tokio::select! {
        served = serving => served.map_err(AppError::io("the listener broke")),
        error = starting => Err(error),
        never = naming => match never {},
        never = auth.watch() => match never {},
        never = forever(renewing) => match never {},
        never = forever(watched) => match never {},
    };
    if let Some(names) = &mut names {
        names.save(stack).await;
    }
    if let Err(error) = auth.save().await {
        output::warning(&error);
    }
    drop(registration);
    runtime.finish().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Runs what never ends, if it is there.
pub(super) async fn forever(run: Option<impl Future<Output = Infallible>>) -> Infallible {
    match run {
        Some(run) => run.await,
        None => pending().await,
    }
}

fn say_where(url: &str, admin: &AdminAddress, manner: &Manner, config: &Config) {
    if manner.json {
        output::json(&json!({ "listening": url, "admin": admin.to_string() }));
    }
    output::note(format_args!("callward listening on {url}"));
    output::note(format_args!("admin on {admin}: /api, /metrics"));
    warnings(config).iter().for_each(output::warning);
}

/// Lets the command line find this gateway, and its token. The gateway serves even if its state
/// directory is not writable.
fn register(state: Option<&StateDir>, gateway: &Gateway) -> Option<Registration> {
    let why = match state.map(|state| registered::register(state, gateway)) {
        Some(Ok(registration)) => return Some(registration),
        Some(Err(error)) => format!("the state directory cannot be written: {error}"),
        None => "there is no state directory (`--state-dir`)".to_owned(),
    };
    let (admin, token) = (&gateway.admin, gateway.token.as_ref());
    let key = token.map_or("", |_| ", and a key of `[auth]` with a role");
    output::warning(&format_args!(
        "{why}; other commands need `--url {admin}`{key}"
    ));
    None
}
