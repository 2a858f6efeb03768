//! Listed tools from anywhere: JSON in a file or on standard input, or a server that is asked.
//!
//! Nothing is left out: what cannot be read is found as a [`Fault`], in its place.

mod live;
mod text;
mod tool;

use std::fmt;
use std::path::Path;

use bytes::Bytes;

pub(crate) use self::live::Live;
pub(crate) use self::tool::{Fault, Listed};

use crate::args::Listings;
use crate::error::AppError;
use crate::output::Screen;

/// Where the tools are, read as a whole: those of one server may stand far apart.
pub(crate) enum Listing {
    /// JSON, from a file or standard input.
    Text {
        /// What it is called in messages.
        name: String,
        bytes: Vec<u8>,
    },
    /// Servers that were asked.
    Live(Box<Live>),
}

/// One tool, or what stands in its place.
pub(crate) struct Found<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) group: Group,
    pub(crate) tool: Result<Listed<'a>, Fault>,
}

/// Which tools are of one server. Equal groups belong together, wherever they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group(usize);

/// Where a tool was found, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The file or the server.
    whole: &'a str,
    /// The line, from 1.
    line: Option<usize>,
    /// The tool's place in a list, from 1.
    tool: Option<usize>,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.whole)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(tool) = self.tool {
            write!(f, ": tool {tool}")?;
        }
        Ok(())
    }
}

impl Listing {
    /// Reads what the arguments name. Servers are asked, and ended again.
    ///
    /// # Errors
    ///
    /// [`AppError`] if nothing can be read at all.
    pub(crate) async fn read(from: &Listings, screen: &Screen) -> Result<Self, AppError> {
        if from.url.is_some() || from.config.is_some() || !from.command.is_empty() {
            return Ok(Self::Live(Box::new(Live::ask(from).await?)));
        }
        match from.file.as_deref().filter(|file| *file != Path::new("-")) {
            Some(file) => Self::of_file(file),
            None => {
                let bytes = screen
                    .input(
                        "reading tools, one JSON object a line, to the end of the input (Ctrl-D)",
                    )
                    .map_err(AppError::io("standard input cannot be read"))?;
                Self::text("standard input".into(), bytes)
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
        Self::text(name, bytes)
    }

    fn text(name: String, bytes: Vec<u8>) -> Result<Self, AppError> {
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err(AppError::Usage(format!(
                "{name} is UTF-16; JSON is UTF-8, so convert it first"
            )));
        }
        Ok(Self::Text { name, bytes })
    }

    /// Returns what was found, in the order it stands there.
    pub(crate) fn found(&self) -> Vec<Found<'_>> {
        match self {
            Self::Text { name, bytes } => text::split(name, bytes),
            Self::Live(live) => live.found(),
        }
    }

    /// Returns the servers that were asked, if any.
    pub(crate) fn live(&self) -> Option<&Live> {
        match self {
            Self::Text { .. } => None,
            Self::Live(live) => Some(live),
        }
    }
}

/// Reads one element of a server's list.
fn element<'a>(whole: &'a str, index: usize, group: usize, raw: &'a Bytes) -> Found<'a> {
    let tool = std::str::from_utf8(raw)
        .map_err(|error| Fault::of_bytes(&error))
        .and_then(Listed::read)
        .map(|mut tool| {
            // the server that was asked is certain, unlike what is written
            tool.server = Some(whole.into());
            tool
        });
    Found {
        place: Place {
            whole,
            line: None,
            tool: Some(index + 1),
        },
        group: Group(group),
        tool,
    }
}
