//! The events of a server with instances: those of the lead, unless a loss is one owner's alone.

use std::slice;
use std::sync::Weak;
use std::time::Duration;

use callward_core::{List, ServerEvent};

use super::Pool;
use crate::client::shared::Events;

/// How long the return of a lead is waited for before its loss is the server's.
const SOON: Duration = Duration::from_secs(5);

/// The events of a server.
#[derive(Debug)]
pub(in crate::client) struct Heard {
    events: Events,
    pool: Weak<Pool>,
    queued: slice::Iter<'static, List>,
}

impl Heard {
    pub(in crate::client) fn new(events: Events, pool: Weak<Pool>) -> Self {
        Self {
            events,
            pool,
            queued: [].iter(),
        }
    }

    /// Returns the next event; nothing after the end.
    ///
    /// A lead that serves one session may crash of what that session does. The others have
    /// instances of their own, so the server is not down for them unless the lead stays away.
    pub(in crate::client) async fn next(&mut self) -> Option<ServerEvent> {
        if let Some(list) = self.queued.next() {
            return Some(ServerEvent::ListChanged(*list));
        }
        let event = self.events.next().await?;
        let pool = self.pool.upgrade();
        let is_one_owners = pool.is_some_and(|pool| pool.lead_is_owned());
        if !matches!(event, ServerEvent::Down(_)) || !is_one_owners {
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
            // started again, all that it lists may be other
            self.queued = List::ALL.iter();
            return Some(ServerEvent::Stale);
        }
        Some(event)
    }
}
