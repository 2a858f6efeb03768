//! The greeting on a fresh connection.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::timeout;

use super::connection::Connection;
use crate::client::answer::RequestError;
use crate::client::ask::Style;
use crate::client::handshake;
use crate::client::info::ServerInfo;
use crate::client::options::EraChoice;
use crate::client::shared::Shared;
use crate::wire::{Era, write};

/// Greets the server in the era that is set, or else in whichever it understands.
///
/// A program may keep the state of its client in the session that `initialize` opens, and one that
/// has answered a request of 2026-07-28 opens none any more. So `initialize` comes first: a server
/// that speaks both eras keeps its sessions.
///
/// `known` is what an earlier connection to the same program showed: the era belongs to the server,
/// so a modern one is not sent `initialize` again. `refuses` is set once the server has refused
/// that: it may end then.
pub(super) async fn greet(
    connection: &Arc<Connection>,
    shared: &Shared,
    known: Option<Era>,
    refuses: &AtomicBool,
) -> Result<ServerInfo, RequestError> {
    let choice = shared.options.era;
    if choice == EraChoice::Legacy {
        return initialize(connection, shared).await;
    }
    let (style, ask) = (Style::unknown(Era::Modern), handshake::discover());
    let mut discovery = pin!(async {
        let info = handshake::judge(connection.request(&ask, &style).await, choice)?;
        info.ok_or_else(|| RequestError::protocol("the server accepts no greeting"))
    });
    if choice == EraChoice::Modern || known == Some(Era::Modern) {
        return discovery.await;
    }
    let mut greeting = pin!(initialize(connection, shared));
    let Ok(greeted) = timeout(handshake::PROBE_TIMEOUT, greeting.as_mut()).await else {
        // It is still starting, or ignores what it does not know: what it accepts first decides.
        return tokio::select! {
            biased;
            Ok(info) = &mut greeting => Ok(info),
            Ok(info) = &mut discovery => Ok(info),
            else => Err(RequestError::protocol("the server accepts no greeting")),
        };
    };
    match greeted {
        Err(RequestError::Refused(error)) if handshake::refuses_initialize(error.code) => {
            refuses.store(true, Ordering::Relaxed);
            discovery.await
        }
        greeted => greeted,
    }
}

async fn initialize(connection: &Connection, shared: &Shared) -> Result<ServerInfo, RequestError> {
    let style = Style::unknown(Era::Legacy);
    let greeting = handshake::initialize(shared.declared().await);
    let result = connection.request(&greeting, &style).await?;
    let info = ServerInfo::initialized(&result).map_err(RequestError::protocol)?;
    if info.era == Era::Modern {
        // it answered `initialize` with a revision that has no handshake: believe it
        return Ok(info);
    }
    connection.say(write::notification("notifications/initialized", None));
    Ok(info)
}
