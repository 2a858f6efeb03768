//! Servers that are asked what they list.

use bytes::Bytes;
use callward::ToolError;
use callward_mcp::client::Upstream;
use futures_util::future::join_all;

use super::{Found, element};
use crate::args::Listings;
use crate::assemble::{Environment, upstream_of};
use crate::commands::from::{endpoint, own};
use crate::config::Config;
use crate::error::AppError;
use crate::shutdown::{self, Stop};

/// Servers that were asked, and what they list.
pub(crate) struct Live {
    pub(crate) config: Config,
    /// As many as the config has servers, in its order.
    answers: Vec<Result<Vec<Bytes>, ToolError>>,
}

impl Live {
    /// Asks the servers that the arguments name, all at once, and ends what was started for it.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the config is wrong. A server that does not answer hides no other.
    pub(super) async fn ask(from: &Listings) -> Result<Self, AppError> {
        let (config, environment) = match (own(from.config.as_deref(), &from.command)?, &from.url) {
            (Some(own), _) => own,
            (None, Some(url)) => (endpoint(url), Environment::Small),
            (None, None) => return Err(AppError::Usage("expected a command after `--`".into())),
        };
        let upstreams = config
            .servers
            .iter()
            .map(|server| upstream_of(server, environment, None))
            .collect::<Result<Vec<_>, _>>()?;
        let answers = join_all(upstreams.iter().map(Upstream::list_raw)).await;
        shutdown::end_servers(&upstreams, &Stop::default()).await;
        Ok(Self { config, answers })
    }

    /// Returns why servers did not answer.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &ToolError> {
        self.answers
            .iter()
            .filter_map(|answer| answer.as_ref().err())
    }

    pub(super) fn found(&self) -> Vec<Found<'_>> {
        let servers = self.config.servers.iter().zip(&self.answers).enumerate();
        servers
            .flat_map(|(group, (server, answer))| {
                let tools = answer.iter().flatten().enumerate();
                tools.map(move |(at, raw)| element(server.id.as_str(), at, group, raw))
            })
            .collect()
    }
}
