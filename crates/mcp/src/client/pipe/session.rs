//! The greeting on a fresh connection.

use std::sync::Arc;

use super::connection::Connection;
use crate::client::answer::RequestError;
use crate::client::ask::Style;
use crate::client::handshake;
use crate::client::info::ServerInfo;
use crate::client::options::EraChoice;
use crate::client::shared::Shared;
use crate::wire::{Era, write};

/// Greets the server in whichever era it understands.
///
/// `known` is what an earlier connection to the same program showed: the era belongs to the server,
/// so a legacy one is not probed again.
pub(super) async fn greet(
    connection: &Arc<Connection>,
    shared: &Shared,
    known: Option<Era>,
) -> Result<ServerInfo, RequestError> {
    let choice = shared.options.era;
    let is_legacy = choice == EraChoice::Auto && known == Some(Era::Legacy);
    if choice == EraChoice::Legacy || is_legacy {
        return initialize(connection).await;
    }
    let style = Style::unknown(Era::Modern);
    let ask = handshake::discover();
    let mut discovery = std::pin::pin!(connection.request(&ask, &style));
    let answer = match choice {
        EraChoice::Modern => Ok(discovery.as_mut().await),
        _ => tokio::time::timeout(handshake::PROBE_TIMEOUT, discovery.as_mut()).await,
    };
    let mut greeting = std::pin::pin!(initialize(connection));
    let answer = match answer {
        Ok(answer) => answer,
        // Silence means legacy, or a program that is still starting: whichever answers first
        // decides.
        Err(_) => tokio::select! {
            biased;
            answer = &mut discovery => answer,
            greeted = &mut greeting => return greeted,
        },
    };
    match handshake::judge(answer, choice)? {
        Some(info) => Ok(info),
        None => greeting.await,
    }
}

async fn initialize(connection: &Connection) -> Result<ServerInfo, RequestError> {
    let style = Style::unknown(Era::Legacy);
    let result = connection.request(&handshake::initialize(), &style).await?;
    let info = ServerInfo::initialized(&result).map_err(RequestError::protocol)?;
    if info.era == Era::Modern {
        // it answered `initialize` with a revision that has no handshake: believe it
        return Ok(info);
    }
    connection.say(write::notification("notifications/initialized", None));
    Ok(info)
}
