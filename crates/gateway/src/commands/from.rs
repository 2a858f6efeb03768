//! Where `call`, `tools` and `explain` find their tools: a running gateway, or a stack of their
//! own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callward::registry::Hold;
use callward::{Instances, ServerId};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::api::{self, Remote};
use crate::approvals::{self, Operators};
use crate::args::{From, Run};
use crate::assemble::{self, Environment};
use crate::commands::run::failure;
use crate::config::{Config, Server, ServerConfig, Servers};
use crate::error::AppError;
use crate::metrics::Telemetry;
use crate::record::Recorder;
use crate::runtime::Runtime;
use crate::shutdown::Stop;
use crate::state_dir::StateDir;
use crate::table::shown;
use crate::{output, pins};

/// How long a command waits for servers before it prints a note.
const SILENCE: Duration = Duration::from_secs(2);

/// A gateway to find tools in.
pub(crate) struct Place {
    pub(crate) remote: Remote,
    /// What lives as long as the command only: servers that are started for it.
    pub(super) own: Option<Arc<Runtime>>,
}

impl Place {
    /// Finds or starts what the arguments name, to make calls or only to ask. Calls are written to
    /// the audit log if the config asks for it.
    ///
    /// # Errors
    ///
    /// [`AppError`] if nothing answers there, the config is wrong, or the server does not start;
    /// and for calls, if the audit log cannot be written: a gateway that runs with the same config
    /// writes it.
    pub(crate) async fn find(
        from: &From,
        calls: bool,
        state: Option<&StateDir>,
    ) -> Result<Self, AppError> {
        let place = Self::open(from, calls, state).await?;
        let Some(own) = &place.own else {
            return Ok(place);
        };
        place.patiently(own.started.finished()).await;
        if let [server] = &own.stack.servers()[..]
            && !server.up
        {
            let silent = format!("server `{}` has not listed its tools in time", server.id);
            let error = failure(own).unwrap_or(AppError::Remote(silent));
            own.finish().await;
            return Err(error);
        }
        Ok(place)
    }

    /// Does the same, and does not wait for the servers that it starts.
    ///
    /// # Errors
    ///
    /// [`AppError`], as before, except for servers that do not start.
    pub(crate) async fn open(
        from: &From,
        calls: bool,
        state: Option<&StateDir>,
    ) -> Result<Self, AppError> {
        let (mut config, environment) = match own(from.config.as_deref(), &from.command)? {
            Some(own) => own,
            None => match api::find(from.url.as_deref(), None, state).await? {
                (Some(remote), _) => return Ok(Self { remote, own: None }),
                (None, url) => (endpoint(&url), Environment::Small),
            },
        };
        if !calls {
            config.audit.path = None;
        }
        // what is approved is for the gateway to say
        let kept = match (&from.config, state) {
            (Some(file), Some(state)) => state.file_of_config("pins", file, "json"),
            (None, Some(state)) => state.file_of_command("pins", &from.command, "json"),
            _ => None,
        };
        let hold = from.config.as_ref().map_or(Hold::Looser, |_| Hold::Changes);
        config.review = pins::open(&config, kept, hold, from.keeps)?;
        let approvals = match calls {
            // a gateway that runs with the same config has them open, and would decide
            true => {
                let (file, never) = (from.config.as_deref(), CancellationToken::new());
                approvals::open(&config, file, state, Operators::Later, &never).await?
            }
            false => approvals::only_shown(&config).await?,
        };
        let telemetry = Telemetry::exporting(None)?;
        let running = assemble::stack(&config, environment, &telemetry, None, approvals)?;
        // the command's own calls are not recorded
        let recorder = Recorder::default();
        let own = Runtime::new(&config, running, telemetry, recorder, Stop::default(), None);
        let remote = Remote::here(own.clone())?;
        Ok(Self {
            remote,
            own: Some(own),
        })
    }

    /// Waits for its servers. What takes long prints a note which of them have not listed their
    /// tools.
    pub(crate) async fn patiently<T>(&self, wait: impl Future<Output = T>) -> T {
        let mut wait = std::pin::pin!(wait);
        if let Ok(done) = tokio::time::timeout(SILENCE, &mut wait).await {
            return done;
        }
        if let Some(own) = &self.own {
            let waits = own.stack.servers().into_iter().filter(|server| !server.up);
            let names: Vec<_> = waits.map(|server| format!("`{}`", server.id)).collect();
            let names = names.join(", ");
            output::note(format_args!("waiting for {names} to list tools"));
        }
        wait.await
    }

    /// Stops what was started for the command.
    pub(crate) async fn end(self) {
        if let Some(own) = self.own {
            own.finish().await;
        }
    }

    /// Prints the missing tools and the reasons on standard error: the wanted tool may be one of
    /// them.
    pub(crate) async fn tell_missing(&self) {
        let missing: Result<Vec<Value>, _> = self.remote.ask(&["missing"], None).await;
        for one in missing.into_iter().flatten() {
            let (server, reason) = (shown("", &one["server"]), shown("", &one["reason"]));
            output::warning(&match one["tool"].as_str() {
                Some(tool) => {
                    format!("tool `{tool}` of server `{server}` is not offered: {reason}")
                }
                None => format!("server `{server}` is down: {reason}"),
            });
        }
    }
}

/// Returns the config of a stack of the command's own, if a file or a server's command is given.
///
/// # Errors
///
/// [`AppError`] if the config is wrong.
pub(crate) fn own(
    file: Option<&Path>,
    command: &[String],
) -> Result<Option<(Config, Environment)>, AppError> {
    Ok(match (file, command.split_first()) {
        (Some(file), _) => Some((Config::load(file, Servers::Some)?, Environment::Small)),
        (None, Some((program, args))) => {
            let config = Config::without_file(vec![wrap(program, args, None)?]);
            Some((config, Environment::Inherited))
        }
        (None, None) => None,
    })
}

/// Checks arguments before anything is started for them.
///
/// # Errors
///
/// [`AppError`] if they are not a JSON object.
pub(crate) fn check_arguments(text: &str) -> Result<(), AppError> {
    let wrong = |error| AppError::Usage(format!("the arguments are not a JSON object: {error}"));
    serde_json::from_str::<Map<String, Value>>(text).map_err(wrong)?;
    Ok(())
}

/// Describes one server to wrap: its tools keep their names unless a prefix is given.
///
/// # Errors
///
/// [`AppError`] if the prefix is not a name.
fn wrap(program: &str, args: &[String], prefix: Option<&str>) -> Result<ServerConfig, AppError> {
    let id = match prefix {
        Some(prefix) => {
            ServerId::new(prefix).map_err(|error| AppError::Usage(format!("--prefix: {error}")))?
        }
        None => id_of(program),
    };
    let table = Server {
        command: Some(program.to_owned()),
        args: args.to_vec(),
        // the only client started this process for itself
        instances: Some(Instances::Shared),
        ..Server::default()
    };
    let mut server = ServerConfig::new(id, table);
    server.prefix = prefix.map(str::to_owned);
    Ok(server)
}

/// Describes what `run` serves. Other programs may change what a single wrapped server reads, so
/// nothing is served beyond the burst window, unless the operator says so.
///
/// # Errors
///
/// [`AppError`] if the file or the arguments cannot be used.
pub(crate) fn wrapped(args: &Run) -> Result<Config, AppError> {
    let wrap = |(program, rest): (&String, _)| wrap(program, rest, args.prefix.as_deref());
    let given = args.command.split_first().map(wrap).transpose()?;
    let mut config = match &args.config {
        Some(file) => Config::load(file, Servers::Any)?,
        None => {
            let mut config = Config::without_file(Vec::new());
            config.profile.read_ttl = Duration::ZERO;
            config
        }
    };
    let mut server = match (config.servers.pop(), given) {
        (Some(_), _) if !config.servers.is_empty() => {
            return Err(AppError::Usage(
                "--config: expected at most one server; `callward serve` takes several".into(),
            ));
        }
        (Some(mut server), given) => {
            if let Some(given) = given {
                let ours = &mut server.table;
                (ours.command, ours.args) = (given.table.command, given.table.args);
                (ours.url, ours.env, ours.headers) = Default::default();
            }
            server.prefix = args.prefix.clone();
            server
        }
        (None, Some(given)) => given,
        (None, None) => {
            return Err(AppError::Usage(
                "expected a command after `--`, or a server in the file of --config".into(),
            ));
        }
    };
    if let Some(ttl) = args.ttl {
        (server.table.ttl, server.table.cache) = (Some(ttl), None);
    }
    if args.no_cache {
        config.cache.layer.enabled = false;
    }
    config.servers.push(server);
    Ok(config)
}

/// Describes one endpoint.
pub(crate) fn endpoint(url: &str) -> Config {
    let table = Server {
        url: Some(url.to_owned()),
        ..Server::default()
    };
    Config::without_file(vec![ServerConfig::new(fallback(), table)])
}

/// Names a server after its program, without characters that names do not allow.
fn id_of(program: &str) -> ServerId {
    let stem = Path::new(program).file_stem().unwrap_or_default();
    let stem = stem.to_str().unwrap_or_default().chars();
    let plain = stem.filter(|c| c.is_ascii_alphanumeric() || *c == '-');
    let plain = String::from_iter(plain.take(32));
    ServerId::new(plain.trim_start_matches('-')).unwrap_or_else(|_| fallback())
}

#[expect(clippy::expect_used, reason = "a fixed name, and a test makes it")]
fn fallback() -> ServerId {
    ServerId::new("server").expect("`server` is a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_after_its_program_as_far_as_names_allow() {
        for (program, want) in [
            ("/usr/bin/mcp-server-time", "mcp-server-time"),
            ("npx", "npx"),
            ("my_server.py", "myserver"),
            ("…", "server"),
            ("--", "server"),
        ] {
            assert_eq!(id_of(program).as_str(), want);
        }
    }
}
