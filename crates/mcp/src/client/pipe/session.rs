//! The greeting on a fresh connection.

use std::sync::Arc;

use super::connection::Connection;
use super::link::KnownEra;
use crate::client::answer::RequestError;
use crate::client::ask::Style;
use crate::client::builder::EraChoice;
use crate::client::handshake;
use crate::client::info::ServerInfo;
use crate::client::shared::Shared;
use crate::wire::{Era, LATEST};

/// Greets the server in whichever era it understands.
///
/// `known` is what an earlier connection to the same program showed: the era belongs to the server,
/// so a legacy one is not probed again.
pub(super) async fn greet(
    connection: &Arc<Connection>,
    shared: &Shared,
    known: KnownEra,
) -> Result<ServerInfo, RequestError> {
    let choice = shared.options.era;
    if choice == EraChoice::Legacy
        || (choice == EraChoice::Auto && known != KnownEra::Unknown && known != KnownEra::Modern)
    {
        return initialize(connection, shared).await;
    }
    let style = shared.options.style(&ServerInfo::new(LATEST));
    let ask = handshake::discover();
    let mut discovery = std::pin::pin!(connection.request(&ask, &style));
    let answer = match choice {
        EraChoice::Modern => Ok(discovery.as_mut().await),
        _ => tokio::time::timeout(shared.options.probe_timeout, discovery.as_mut()).await,
    };
    if let Ok(answer) = answer {
        return match handshake::judge(answer, choice)? {
            Some(info) => Ok(info),
            None => initialize(connection, shared).await,
        };
    }
    // Silence means legacy, or a program that is still starting: whichever answers first decides.
    let mut greeting = std::pin::pin!(initialize(connection, shared));
    tokio::select! {
        biased;
        answer = &mut discovery => match handshake::judge(answer, choice)? {
            Some(info) => Ok(info),
            None => greeting.await,
        },
        greeted = &mut greeting => greeted,
    }
}

async fn initialize(
    connection: &Arc<Connection>,
    shared: &Shared,
) -> Result<ServerInfo, RequestError> {
    let ask = handshake::initialize(&shared.options.client_info);
    let result = connection.request(&ask, &Style::default()).await?;
    let info = ServerInfo::initialized(&result).map_err(RequestError::protocol)?;
    if info.era == Era::Modern {
        // it answered `initialize` with a revision that has no handshake: believe it
        return Ok(info);
    }
    connection.notify("notifications/initialized");
    Ok(info)
}
