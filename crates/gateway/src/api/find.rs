//! Finding a running gateway.

use std::path::Path;

use super::Remote;
use crate::admin;
use crate::args;
use crate::error::AppError;
use crate::registered::{self, Gateway};
use crate::state_dir::StateDir;

/// Finds the gateway that the arguments name, or else the one that is running.
///
/// # Errors
///
/// [`AppError`] if none answers, if what answers is not a gateway, or if several are running and
/// none is named.
pub(crate) async fn gateway(
    args: &args::Gateway,
    state: Option<&StateDir>,
) -> Result<(Remote, String), AppError> {
    let url = match &args.url {
        Some(url) => url.clone(),
        None => address(state, args.config.as_deref())?,
    };
    match Remote::find(&url).await? {
        Some(remote) => Ok((remote, url)),
        None => Err(AppError::Remote(format!(
            "what answers at {url} is not a gateway"
        ))),
    }
}

/// Returns the admin address of the gateway that runs with this config file, or of the only one
/// that runs. If none is registered, it is the default address.
///
/// # Errors
///
/// [`AppError`] if several gateways could be meant, or none runs with this config file.
pub(crate) fn address(state: Option<&StateDir>, config: Option<&Path>) -> Result<String, AppError> {
    let all = state.map(registered::gateways).unwrap_or_default();
    let listed: String = all.iter().map(|one| format!("\n  {one}")).collect();
    let shown = config
        .map(|file| file.display().to_string())
        .unwrap_or_default();
    let absolute = config.map(std::fs::canonicalize).transpose();
    let absolute = absolute.map_err(AppError::io(format!("--config {shown}")))?;
    let is_meant = |one: &&Gateway| absolute.is_none() || one.config == absolute;
    let with = config.map_or_else(String::new, |_| format!(" with {shown}"));
    match &all.iter().filter(is_meant).collect::<Vec<_>>()[..] {
        [only] => Ok(only.admin.clone()),
        [] if config.is_none() => Ok(format!("http://{}", admin::DEFAULT)),
        [] if all.is_empty() => Err(AppError::Remote(format!(
            "no gateway is running{with}; start it with `callward serve --config {shown}`"
        ))),
        [] => Err(AppError::Remote(format!(
            "no gateway is running{with}, but others are; name one:{listed}"
        ))),
        _ => Err(AppError::Usage(format!(
            "several gateways are running{with}; name one:{listed}"
        ))),
    }
}
