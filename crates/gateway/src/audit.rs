//! The audit log of a process: opened before the first call, closed after the last.

use std::path::Path;

use callward::Stack;
use callward::audit::{AuditKey, AuditLog};

use crate::config::Audit;
use crate::error::AppError;
use crate::output;

/// Opens the log that a config names.
///
/// # Errors
///
/// [`AppError`] if it cannot be written, or the key cannot be read.
pub(crate) fn open(path: &Path, config: &Audit) -> Result<AuditLog, AppError> {
    let key = config.key_file.as_deref().map(read_key).transpose()?;
    let mut config = config.layer(path.to_owned());
    config.key = key;
    AuditLog::open(&config).map_err(|error| AppError::Usage(error.to_string()))
}

/// Reads a key: the bytes of a file, without line ends behind them.
///
/// # Errors
///
/// [`AppError`] names the file.
pub(crate) fn read_key(path: &Path) -> Result<AuditKey, AppError> {
    let mut bytes =
        std::fs::read(path).map_err(AppError::io(format!("{} cannot be read", path.display())))?;
    let end = bytes.trim_ascii_end().len();
    bytes.truncate(end);
    AuditKey::new(bytes)
        .map_err(|fault| AppError::Usage(format!("{}: {}", path.display(), fault.reason)))
}

/// Writes the records that wait, and warns of missing ones.
pub(crate) async fn close(stack: &Stack) {
    let Some(log) = stack.audit() else {
        return;
    };
    log.close().await;
    let stats = log.stats();
    let [path, _] = log.paths();
    output::missing(stats.dropped, "audit records", path, output::LATE);
    output::missing(stats.failed, "audit records", path, output::FAILED);
}
