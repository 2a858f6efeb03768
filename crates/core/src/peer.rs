//! Observers of MCP requests and sessions: the interface between a protocol and its metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{ServerId, Tool, ToolError, ToolOutput};

/// Receives each MCP request and session when it ends, on the client's and on the server's side.
///
/// It is called on the path of requests, so it must neither block nor panic.
pub trait PeerObserver: fmt::Debug + Send + Sync + 'static {
    /// Takes a request that ended.
    fn request_ended(&self, request: &PeerRequest<'_>, took: Duration);

    /// Takes a session that ended. Only revisions of MCP that have sessions have any.
    fn session_ended(&self, session: &PeerSession, took: Duration);
}

/// A request that ended.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "the protocol side builds it")]
pub struct PeerRequest<'a> {
    /// The side of this process.
    pub side: PeerSide,
    /// The method, one that the protocol knows.
    pub method: &'static str,
    /// The tool, if one was called and is known.
    pub tool: Option<&'a Arc<Tool>>,
    /// The server that was asked, on the client's side.
    pub server: Option<&'a ServerId>,
    /// What came of it.
    pub outcome: PeerOutcome<'a>,
}

impl PeerOutcome<'_> {
    /// Returns the outcome of a request that was answered with an output, or failed.
    pub fn of(result: &Result<ToolOutput, ToolError>) -> PeerOutcome<'_> {
        match result {
            Ok(output) if output.is_error() => PeerOutcome::ToolError,
            Ok(_) => PeerOutcome::Answered,
            Err(error) => PeerOutcome::Failed(error),
        }
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum PeerOutcome<'a> {
    /// It was answered.
    Answered,
    /// It was abandoned before its end.
    Cancelled,
    /// It failed.
    Failed(&'a ToolError),
    /// It was refused with this code of JSON-RPC.
    Refused(i64),
    /// It was answered, and the tool itself reported failure.
    ToolError,
}

/// The side of this process in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a conversation has two sides")]
pub enum PeerSide {
    /// It asks.
    Client,
    /// It is asked.
    Server,
}

/// A session that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the protocol side builds it")]
pub struct PeerSession {
    /// The side of this process.
    pub side: PeerSide,
    /// `network.transport` of OpenTelemetry's conventions: `pipe` or `tcp`.
    pub transport: &'static str,
}
