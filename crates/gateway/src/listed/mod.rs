//! Lists of tools: JSON in a file or on standard input, or the list of a server.
//!
//! Nothing is left out: an element that cannot be read is a [`Fault`] in its place.

mod text;
mod tool;

use std::path::Path;

use callward::ToolError;
use callward_mcp::client::Upstream;
use futures_util::future::join_all;

pub(crate) use self::tool::{Fault, Listed};
use crate::args::Listings;
use crate::assemble::{Environment, upstream_of};
use crate::commands::from::{endpoint, own};
use crate::config::Config;
use crate::error::AppError;
use crate::output;
use crate::shutdown::{self, Stop};

/// All listed tools: those of one server may stand far apart.
#[derive(Default)]
pub(crate) struct Listing {
    /// In the order of the list.
    pub(crate) found: Vec<Found>,
    /// The config of the servers that were asked.
    pub(crate) config: Config,
    /// Why servers did not answer.
    pub(crate) failures: Vec<ToolError>,
}

/// One tool, or the fault in its place.
pub(crate) struct Found {
    /// The file or the server, the line and the tool's place in a list, for messages.
    pub(crate) place: String,
    /// Tools of one server have the same number, wherever they stand.
    pub(crate) group: usize,
    pub(crate) tool: Result<Listed, Fault>,
}

impl Listing {
    /// Reads what the arguments name. Servers are asked, and ended again.
    ///
    /// # Errors
    ///
    /// [`AppError`] if nothing can be read at all.
    pub(crate) async fn read(from: &Listings) -> Result<Self, AppError> {
        if from.url.is_some() || from.config.is_some() || !from.command.is_empty() {
            return Self::ask(from).await;
        }
        match from.file.as_deref().filter(|file| *file != Path::new("-")) {
            Some(file) => Self::of_file(file),
            None => {
                let what =
                    "reading tools, one JSON object a line, to the end of the input (Ctrl-D)";
                let bytes = output::input(what);
                let bytes = bytes.map_err(AppError::io("standard input cannot be read"))?;
                Self::of_text("standard input", &bytes)
            }
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`AppError`] if it cannot be read at all.
    pub(crate) fn of_file(file: &Path) -> Result<Self, AppError> {
        let name = file.display().to_string();
        let bytes = std::fs::read(file).map_err(AppError::io(format!("{name} cannot be read")))?;
        Self::of_text(&name, &bytes)
    }

    fn of_text(name: &str, bytes: &[u8]) -> Result<Self, AppError> {
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err(AppError::Usage(format!(
                "{name} is UTF-16; JSON is UTF-8, so convert it first"
            )));
        }
        Ok(Self {
            found: text::split(name, bytes),
            ..Self::default()
        })
    }

    /// Asks the servers that the arguments name, all at once, and ends what was started for it. A
    /// server that does not answer hides no other.
    async fn ask(from: &Listings) -> Result<Self, AppError> {
        let (config, environment) = match (own(from.config.as_deref(), &from.command)?, &from.url) {
            (Some(own), _) => own,
            (None, Some(url)) => (endpoint(url), Environment::Small),
            (None, None) => return Err(AppError::Usage("expected a command after `--`".into())),
        };
        let upstream = |server| upstream_of(server, environment, None, None);
        let upstreams: Result<Vec<_>, _> = config.servers.iter().map(upstream).collect();
        let upstreams = upstreams?;
        let answers = join_all(upstreams.iter().map(Upstream::list_raw)).await;
        shutdown::end_servers(&upstreams, &Stop::default()).await;
        let mut listing = Self::default();
        for (group, (server, answer)) in config.servers.iter().zip(answers).enumerate() {
            let tools = answer.map_err(|error| listing.failures.push(error));
            for (at, raw) in (1..).zip(tools.into_iter().flatten()) {
                let mut tool = Listed::read(&raw).and_then(Listed::into_tool);
                if let Ok(tool) = &mut tool {
                    // the server that was asked is certain, unlike what is written
                    tool.server = Some(server.id.to_string());
                }
                let place = format!("{}: tool {at}", server.id);
                listing.found.push(Found { place, group, tool });
            }
        }
        listing.config = config;
        Ok(listing)
    }
}
