//! The arguments of `callward toolsets` and `callward notes`.

use std::path::PathBuf;

use callward_toolset::{Line, Name};
use clap::{Args, Subcommand};

/// List, build and delete toolsets
#[derive(Debug, Args)]
#[command(after_help = "\
A toolset is a selection of tools that clients see at /mcp/t/NAME, or choose with `equip-toolset`.
It is in the file of `[toolsets]`; a gateway that runs sees a change within a second or so.

Examples:
  callward toolsets
  callward toolsets build review git.diff github.get_pull_request --description 'code review'
  callward toolsets delete review")]
pub(crate) struct Toolsets {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsetsCommand>,
    #[command(flatten)]
    pub(crate) file: ToolsetFile,
}

/// Where toolsets are, and how they are shown.
#[derive(Debug, Args)]
pub(crate) struct ToolsetFile {
    /// The config file of the gateway (default: `callward.toml` in the current folder, if it is
    /// there)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print a JSON array
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsetsCommand {
    /// List the toolsets
    List,
    /// Save a selection of tools, without notes
    Build {
        #[arg(value_name = "NAME")]
        name: Name,
        /// The tools, by name or by the `refId` that `list-available-tools` shows
        #[arg(value_name = "SET.TOOL", required = true)]
        tools: Vec<String>,
        /// What it is for, in one line
        #[arg(long, value_name = "TEXT")]
        description: Option<Line>,
    },
    /// Delete a toolset with its notes
    Delete {
        #[arg(value_name = "NAME")]
        name: Name,
    },
}

/// List, edit and remove the notes about tools
#[derive(Debug, Args)]
#[command(after_help = "\
Notes are behind the descriptions that clients of a toolset see. Agents add them with
`add-tool-annotation`, and can neither change nor remove any.

Examples:
  callward notes
  callward notes set review github.get_pull_request scope 'Read the diff first'
  callward notes remove review github.get_pull_request scope")]
pub(crate) struct Notes {
    #[command(subcommand)]
    pub(crate) command: Option<NotesCommand>,
    #[command(flatten)]
    pub(crate) file: ToolsetFile,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotesCommand {
    /// List the notes of all toolsets
    List,
    /// Add a note, or replace its text
    Set {
        #[arg(value_name = "TOOLSET")]
        toolset: Name,
        /// The tool, by name or by its `refId`
        #[arg(value_name = "SET.TOOL")]
        tool: String,
        #[arg(value_name = "NAME")]
        name: Name,
        /// One line of text
        #[arg(value_name = "TEXT")]
        text: Line,
    },
    /// Remove a note, or all notes of a tool
    Remove {
        #[arg(value_name = "TOOLSET")]
        toolset: Name,
        /// The tool, by name or by its `refId`
        #[arg(value_name = "SET.TOOL")]
        tool: String,
        #[arg(value_name = "NAME")]
        name: Option<Name>,
    },
}
