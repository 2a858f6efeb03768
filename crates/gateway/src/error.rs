//! The errors of commands, and their exit codes.

use std::process::ExitCode;

use callward::approval::{ApprovalError, StoreError};
use callward::core::{InvalidName, InvalidValue};
use callward::telemetry::export::InvalidOtlp;
use callward::{BuildError, ToolError};
use callward_auth::keys::KeyError;
use callward_replay::ReplayError;
use callward_toolset::ToolsetError;

use crate::config::ConfigError;
use crate::connections::TlsError;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppError {
    #[error("`[approvals]`: {0}")]
    Approvals(#[from] ApprovalError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error("{0}")]
    Remote(String),
    #[error(transparent)]
    Otlp(#[from] InvalidOtlp),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Toolsets(#[from] ToolsetError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Value(#[from] InvalidValue),
}

impl AppError {
    /// Names the operation that failed.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// 2 for a wrong command line or config, 1 for a failure.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Replay(ReplayError::NoSizes(_)) => ExitCode::from(2),
            Self::Approvals(_)
            | Self::Io { .. }
            | Self::Key(_)
            | Self::Remote(_)
            | Self::Replay(_)
            | Self::Toolsets(_)
            | Self::Tool(_) => ExitCode::FAILURE,
            _ => ExitCode::from(2),
        }
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        Self::Approvals(error.into())
    }
}

/// The outcome of a command.
pub(crate) type Outcome = Result<ExitCode, AppError>;
