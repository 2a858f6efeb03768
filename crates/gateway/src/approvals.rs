//! Who is asked about the calls of a process, and where their requests are.

use std::path::Path;
use std::time::Duration;

use callward::approval::{ApprovalLayer, Approvals, LocalStore};
use callward::core::{Approver, Ask};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::error::AppError;
use crate::state_dir::{StateDir, create_private};

/// The folder of the files in the state directory, one for each config file.
const FOLDER: &str = "approvals";

/// Where operators decide about the calls of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operators {
    /// At its admin listener.
    Here,
    /// At the gateway that runs with the same config next: no call waits.
    Later,
    /// Nowhere: it has one client, over stdio.
    Nowhere,
}

/// Opens the requests of a process. Without operators they are in memory, and end with it.
///
/// # Errors
///
/// [`AppError`] if there is no state directory, the file cannot be opened, or the config asks
/// operators and there are none.
pub(crate) async fn open(
    config: &Config,
    file: Option<&Path>,
    state: Option<&StateDir>,
    operators: Operators,
    closing: &CancellationToken,
) -> Result<ApprovalLayer, AppError> {
    let asking = match operators {
        Operators::Nowhere => config.approvals.clone(),
        _ => config.asking(),
    };
    if operators == Operators::Nowhere && config.needs_operators() {
        let text = "`[approvals]` or a rule asks operators: over stdio there is no admin listener, \
                    so that no operator can decide; add --http, set `by = \"client\"`, or use \
                    `callward serve`";
        return Err(AppError::Usage(text.to_owned()));
    }
    let Some(asking) = asking else {
        let approvals = Approvals::open(LocalStore::default(), Default::default()).await?;
        close_with(closing, &approvals);
        return Ok(ApprovalLayer::from(approvals).advisory());
    };
    let mut settings = asking.layer();
    if operators == Operators::Later {
        settings.hold = Duration::ZERO;
    }
    let store = match operators {
        Operators::Nowhere => LocalStore::default(),
        _ => open_file(file, state).await?,
    };
    let approvals = Approvals::open(store, settings).await?;
    close_with(closing, &approvals);
    let layer = ApprovalLayer::from(approvals).by(asking.by);
    Ok(match operators {
        Operators::Nowhere => layer.without_operators(),
        _ => layer,
    })
}

async fn open_file(file: Option<&Path>, state: Option<&StateDir>) -> Result<LocalStore, AppError> {
    let none = || {
        let text = "requests for approval are kept in the state directory, and there is none: set \
                    `--state-dir`";
        AppError::Usage(text.to_owned())
    };
    let (state, file) = state.zip(file).ok_or_else(none)?;
    let folder = state.path(FOLDER);
    let what = format!("{} cannot be created", folder.display());
    create_private(&folder).map_err(AppError::io(what))?;
    let path = state.file_of_config(FOLDER, file, "redb");
    Ok(LocalStore::open(path.ok_or_else(none)?).await?)
}

/// Ends the waits of calls when the process takes no more: they are answered, and requests stay.
fn close_with(closing: &CancellationToken, approvals: &Approvals) {
    let (closing, approvals) = (closing.clone(), approvals.clone());
    tokio::spawn(async move {
        closing.cancelled().await;
        approvals.close();
    });
}

/// Makes the layer of a stack that makes no call.
///
/// # Errors
///
/// None in practice: memory does not fail, and the config was checked.
pub(crate) async fn only_shown(config: &Config) -> Result<ApprovalLayer, AppError> {
    let asking = config.asking();
    let settings = asking.as_ref().map(|asking| asking.layer());
    let approvals = Approvals::open(LocalStore::default(), settings.unwrap_or_default()).await?;
    let layer = ApprovalLayer::from(approvals);
    Ok(match asking {
        Some(asking) => layer.by(asking.by),
        None => layer.advisory(),
    })
}

/// Describes who approves a call that a rule asks about.
pub(crate) fn of_rule(ask: &Ask, layer: &ApprovalLayer) -> String {
    let roles = ask.roles.join("` or `");
    match (
        ask.by.unwrap_or_else(|| layer.approver()),
        layer.has_operators(),
    ) {
        (Approver::Operator, _) if roles.is_empty() => "an operator approves it.".to_owned(),
        (Approver::Operator, _) => format!("an operator with the role `{roles}` approves it."),
        (Approver::Client, has_operators) => format!(
            "a client that declares elicitation asks its user, and any other call {}.",
            if has_operators {
                "waits for an operator"
            } else {
                "is refused"
            }
        ),
    }
}

/// Describes who approves a call whose plan asks for confirmation.
pub(crate) fn described(layer: &ApprovalLayer) -> &'static str {
    match (layer.has_operators(), layer.approver()) {
        (true, Approver::Operator) => {
            "each call waits for an operator, who decides with `callward approvals`, and is sent once \
             if it is approved."
        }
        (true, Approver::Client) => {
            "a client that declares elicitation asks its user, any other call waits for an operator, \
             and each is sent once if it is approved."
        }
        (false, _) => {
            "a client that declares elicitation asks its user. As the config has neither \
             `[approvals]` nor `[auth]`, the calls of other clients are sent, and such a client is \
             left to ask a person first. The plan is in the `_meta` of the list of tools."
        }
    }
}
