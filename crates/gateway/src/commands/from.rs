//! Where `call`, `tools` and `explain` find their tools: a running gateway, or a stack of their own.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use callward::{Caching, Caller, Instances, ServerId, Stack};
use callward_mcp::upstream::Upstream;

use crate::api::{self, Remote};
use crate::args::{From, Run};
use crate::assemble::{self, Environment, Running};
use crate::config::{Config, ServerConfig};
use crate::error::AppError;
use crate::metrics::Telemetry;
use crate::output::Screen;
use crate::record::Recorder;
use crate::shutdown::{self, Stop};
use crate::state_dir::StateDir;
use crate::view::{CallView, ExplainView, MissingView, ToolView};

/// A place to find tools in.
pub(crate) enum Place {
    /// A running gateway.
    Gateway(Remote),
    /// A stack that lives as long as the command.
    Own(Box<Own>),
}

/// A stack of the command's own.
pub(crate) struct Own {
    stack: Stack,
    upstreams: Vec<Upstream>,
    /// Held for its drop: the stack writes into it.
    _telemetry: Telemetry,
}

impl Place {
    /// Finds or starts what the arguments name, to be asked about.
    ///
    /// # Errors
    ///
    /// [`AppError`] if nothing answers there, the config is wrong, or the server does not start.
    pub(crate) async fn find(from: &From, state: Option<&StateDir>) -> Result<Self, AppError> {
        Self::start(from, state, false).await
    }

    /// Finds or starts what the arguments name, to be called: calls are written down if the config
    /// asks for it.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find), and if the audit log cannot be written: a gateway that runs with the
    /// same config writes it.
    pub(crate) async fn find_to_call(
        from: &From,
        state: Option<&StateDir>,
    ) -> Result<Self, AppError> {
        Self::start(from, state, true).await
    }

    async fn start(from: &From, state: Option<&StateDir>, calls: bool) -> Result<Self, AppError> {
        let (mut config, environment) = if let Some(file) = &from.config {
            (Config::load(file)?, Environment::Small)
        } else if let Some((program, args)) = from.command.split_first() {
            (wrap(program, args, None)?, Environment::Inherited)
        } else {
            let url = match &from.url {
                Some(url) => url.clone(),
                None => api::address(state, None)?,
            };
            match Remote::find(&url).await? {
                Some(remote) => return Ok(Self::Gateway(remote)),
                None => (endpoint(&url), Environment::Small),
            }
        };
        if !calls {
            config.audit = None;
        }
        let telemetry = Telemetry::new()?;
        let Running {
            stack,
            upstreams,
            startup,
        } = assemble::stack(&config, environment, &telemetry)?;
        startup.finished().await;
        if let [server] = &stack.servers()[..]
            && !server.up
        {
            end(&upstreams).await;
            let reason = server.last_error.as_deref().unwrap_or("it does not answer");
            return Err(AppError::Remote(format!(
                "server `{}` is down: {reason}",
                server.id
            )));
        }
        Ok(Self::Own(Box::new(Own {
            stack,
            upstreams,
            _telemetry: telemetry,
        })))
    }

    /// Ends what was started for the command.
    pub(crate) async fn end(self) {
        if let Self::Own(own) = self {
            own.stack.shutdown().await;
            end(&own.upstreams).await;
        }
    }

    pub(crate) async fn tools(&self) -> Result<Vec<ToolView>, AppError> {
        match self {
            Self::Gateway(remote) => remote.tools().await,
            Self::Own(own) => Ok(ToolView::all(&own.stack)),
        }
    }

    /// Says on standard error what is not among the tools, and why: what is looked for may be that.
    pub(crate) async fn tell_missing(&self, screen: &Screen) {
        let missing = match self {
            Self::Gateway(remote) => remote.missing().await,
            Self::Own(own) => MissingView::all(&own.stack),
        };
        for missing in missing {
            screen.warning(&missing);
        }
    }

    pub(crate) async fn explain(
        &self,
        tool: &str,
        arguments: Option<String>,
    ) -> Result<ExplainView, AppError> {
        match (self, arguments) {
            (Self::Gateway(remote), arguments) => {
                remote.explain(tool, arguments.map(Bytes::from)).await
            }
            (Self::Own(own), Some(arguments)) => {
                let explanation = own.stack.explain_call(tool, arguments)?;
                Ok(ExplainView::of(&explanation))
            }
            (Self::Own(own), None) => Ok(ExplainView::of(&own.stack.explain(tool)?)),
        }
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: String,
        pin: Option<ServerId>,
    ) -> Result<CallView, AppError> {
        let arguments = Bytes::from(arguments);
        match self {
            Self::Gateway(remote) => remote.call(tool, arguments, pin).await,
            Self::Own(own) => {
                // what the command itself asks is nobody's traffic
                let unrecorded = Recorder::default();
                let caller = Caller::local();
                Ok(CallView::make(&own.stack, &unrecorded, tool, arguments, caller, pin).await?)
            }
        }
    }
}

/// Checks arguments before anything is started for them.
///
/// # Errors
///
/// [`AppError`] if they are no JSON object.
pub(crate) fn check_arguments(text: &str) -> Result<(), AppError> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(arguments) if arguments.is_object() => Ok(()),
        Ok(_) => Err(AppError::Usage("the arguments are no JSON object".into())),
        Err(error) => Err(AppError::Usage(format!(
            "the arguments are no JSON object: {error}"
        ))),
    }
}

/// Ends a command's own servers; Ctrl-C ends the command itself.
async fn end(upstreams: &[Upstream]) {
    shutdown::end_servers(upstreams, &Stop::default()).await;
}

/// Describes one server to wrap: its tools keep their names unless a prefix is given.
///
/// # Errors
///
/// [`AppError`] if the prefix is no name.
pub(crate) fn wrap(
    program: &str,
    args: &[String],
    prefix: Option<&str>,
) -> Result<Config, AppError> {
    let id = match prefix {
        Some(prefix) => {
            ServerId::new(prefix).map_err(|error| AppError::Usage(format!("--prefix: {error}")))?
        }
        None => id_of(program),
    };
    let mut server = ServerConfig::command(id, program.to_owned(), args.to_vec());
    server.prefix = prefix.map(str::to_owned);
    // there is one client, and it started this process for itself
    server.instances.mode = Some(Instances::Shared);
    Ok(Config::without_file(vec![server]))
}

/// Describes what `run` serves. Other programs may change what a single wrapped server reads, so
/// nothing is served beyond the burst window, unless the operator says so.
///
/// # Errors
///
/// [`AppError`] if the file or the arguments cannot be used.
pub(crate) fn wrapped(args: &Run) -> Result<Config, AppError> {
    let given = match args.command.split_first() {
        Some((program, rest)) => {
            let mut given = wrap(program, rest, args.prefix.as_deref())?;
            given.servers.pop()
        }
        None => None,
    };
    let mut config = match &args.config {
        Some(file) => Config::load_settings(file)?,
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
                server.target = given.target;
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
        server.caching = Some(Caching::For(ttl));
    }
    if args.no_cache {
        config.cache.enabled = false;
    }
    config.servers.push(server);
    Ok(config)
}

/// Describes one endpoint.
pub(crate) fn endpoint(url: &str) -> Config {
    Config::without_file(vec![ServerConfig::url(fallback(), url.to_owned())])
}

/// Names a server after its program, as far as names allow.
fn id_of(program: &str) -> ServerId {
    let stem = Path::new(program)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let plain: String = stem
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(32)
        .collect();
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
