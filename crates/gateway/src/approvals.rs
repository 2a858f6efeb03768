//! The requests for approval of a process.

use std::path::Path;
use std::time::Duration;

use callward::approval::{Approvals, LocalStore};

use crate::config::Config;
use crate::error::AppError;
use crate::state_dir::{StateDir, create_private};

/// The folder of the files in the state directory, one for each config file.
const FOLDER: &str = "approvals";

/// Opens the requests of a config, if it asks operators. A process without operators holds no call:
/// no decision can come.
///
/// # Errors
///
/// [`AppError`] if there is no state directory, or the file cannot be opened.
pub(crate) async fn open(
    config: &Config,
    file: Option<&Path>,
    state: Option<&StateDir>,
    has_operators: bool,
) -> Result<Option<Approvals>, AppError> {
    let Some(asking) = &config.approvals else {
        return Ok(None);
    };
    let none = || {
        let text = "`[approvals]` keeps requests in the state directory, and there is none: set \
                    `--state-dir`";
        AppError::Usage(text.to_owned())
    };
    let (state, file) = state.zip(file).ok_or_else(none)?;
    let folder = state.path(FOLDER);
    let what = format!("{} cannot be created", folder.display());
    create_private(&folder).map_err(AppError::io(what))?;
    let path = state.file_of_config(FOLDER, file, "redb");
    let store = LocalStore::open(path.ok_or_else(none)?).await?;
    let mut layer = asking.layer();
    if !has_operators {
        layer.hold = Duration::ZERO;
    }
    Ok(Some(Approvals::open(store, layer).await?))
}

/// Opens requests for a stack that makes no call, if the config asks operators.
///
/// # Errors
///
/// None in practice: memory does not fail, and the config was checked.
pub(crate) async fn only_shown(config: &Config) -> Result<Option<Approvals>, AppError> {
    let Some(asking) = &config.approvals else {
        return Ok(None);
    };
    let approvals = Approvals::open(LocalStore::default(), asking.layer());
    Ok(Some(approvals.await?))
}
