//! The events of a server with instances: those of the lead, unless a loss is one owner's alone.

use std::sync::Weak;
use std::time::Duration;

use callward_core::ServerEvent;

use super::Pool;
use crate::client::shared::Events;

/// How long the return of a lead is waited for before its loss is the server's.
const SOON: Duration = Duration::from_secs(5);

/// The events of a server.
#[derive(Debug)]
pub(in crate::client) struct Heard {
    events: Events,
    pool: Weak<Pool>,
    queued: Option<ServerEvent>,
    is_up: bool,
}

impl Heard {
    pub(in crate::client) const fn new(events: Events, pool: Weak<Pool>) -> Self {
        Self {
            events,
            pool,
            queued: None,
            is_up: false,
        }
    }

    /// Returns the next event; nothing after the end.
    ///
    /// A lead that was closed and opened again was up all the time.
    ///
    /// A lead that serves one session may crash of what that session does. The others have
    /// instances of their own, so the server is not down for them unless the lead stays away.
    pub(in crate::client) async fn next(&mut self) -> Option<ServerEvent> {
        if let Some(event) = self.queued.take() {
            return Some(event);
        }
        let event = loop {
            let event = self.events.next().await?;
            let was_up = self.is_up;
            self.is_up |= event == ServerEvent::Up;
            if !was_up || event != ServerEvent::Up {
                break event;
            }
        };
        let is_one_owners = || {
            let pool = self.pool.upgrade();
            pool.is_some_and(|pool| pool.lead_is_owned())
        };
        if !matches!(event, ServerEvent::Down(_)) {
            return Some(event);
        }
        if !is_one_owners() {
            self.is_up = false;
            return Some(event);
        }
        let back = async {
            while let Some(event) = self.events.next().await {
                if event == ServerEvent::Up {
                    return true;
                }
            }
            false
        };
        if tokio::time::timeout(SOON, back).await == Ok(true) {
            // started again, it may list other tools
            self.queued = Some(ServerEvent::ToolsChanged);
            return Some(ServerEvent::Stale);
        }
        self.is_up = false;
        Some(event)
    }
}
