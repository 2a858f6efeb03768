//! The events of one upstream, for one subscriber: with pauses, so that a server cannot flood it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{List, ServerEvent};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{News, State, UpstreamStatus};

/// What a subscriber has not read yet.
#[derive(Debug)]
pub(in crate::client) struct Events {
    state: watch::Receiver<State>,
    /// Whether the last event that said so said that the server is up.
    is_up: bool,
    read: News,
    /// When the next change of each list may be announced.
    quiet_until: [Instant; List::ALL.len()],
    /// Updates that are announced next; `None` for resources that are not wanted.
    updated: VecDeque<Option<Arc<str>>>,
    /// When further ones may be.
    updates_from: Instant,
}

/// The least time between two announced updates of a resource: what is kept of all resources is
/// purged with each.
const UPDATES_PAUSE: Duration = Duration::from_millis(250);

/// Returns the least time between two announced changes of a list. What is done about each takes
/// time, and a server may announce them without end. Clients hear of each change of prompts and
/// resources, but of tools only once those are listed again, which takes another pause.
const fn changes_pause(list: List) -> Duration {
    match list {
        List::Tools => Duration::from_millis(100),
        _ => Duration::from_secs(1),
    }
}

impl Events {
    pub(super) fn new(state: watch::Receiver<State>) -> Self {
        let mut read = state.borrow().news;
        read.losses -= u64::from(state.borrow().status.is_down());
        Self {
            state,
            is_up: false,
            read,
            quiet_until: [Instant::now(); List::ALL.len()],
            updated: VecDeque::new(),
            updates_from: Instant::now(),
        }
    }

    /// Returns the next event; nothing after the end.
    pub(in crate::client) async fn next(&mut self) -> Option<ServerEvent> {
        loop {
            if let Some(event) = self.unread() {
                return Some(event);
            }
            if self.state.borrow().status == UpstreamStatus::Closed {
                return None;
            }
            let changed = self.state.borrow().news.changed;
            let counts = changed.iter().zip(&self.read.changed);
            let waiting = counts.zip(&self.quiet_until);
            let waiting = waiting.filter(|((now, read), _)| now != read);
            let lists = waiting.map(|(_, until)| *until);
            let is_updated = self.state.borrow().news.updates != self.read.updates;
            match lists.chain(is_updated.then_some(self.updates_from)).min() {
                Some(until) => sleep_until(until).await,
                None => self.state.changed().await.ok()?,
            }
        }
    }

    fn unread(&mut self) -> Option<ServerEvent> {
        let state = self.state.borrow_and_update();
        let News {
            losses,
            changed,
            stale,
            updates,
        } = state.news;
        let is_lost = std::mem::replace(&mut self.read.losses, losses) != losses;
        if is_lost && (self.is_up || state.status.is_down()) {
            self.is_up = false;
            return Some(ServerEvent::Down(state.loss.detail.clone()));
        }
        if state.status.is_up() && !self.is_up {
            self.is_up = true;
            return Some(ServerEvent::Up);
        }
        let now = Instant::now();
        for list in List::ALL {
            let at = *list as usize;
            if self.read.changed[at] != changed[at] && now >= self.quiet_until[at] {
                self.read.changed[at] = changed[at];
                self.quiet_until[at] = now + changes_pause(*list);
                return Some(ServerEvent::ListChanged(*list));
            }
        }
        if std::mem::replace(&mut self.read.stale, stale) != stale {
            return Some(ServerEvent::Stale);
        }
        if updates != self.read.updates && now >= self.updates_from {
            let read = std::mem::replace(&mut self.read.updates, updates);
            let new = state.updated.iter().filter(|(_, at)| **at > read);
            let new = new.map(|(uri, _)| Some(uri.clone()));
            self.updated.extend(new);
            if self.updated.is_empty() {
                self.updated.push_back(None);
            }
            self.updates_from = now + UPDATES_PAUSE;
        }
        self.updated.pop_front().map(ServerEvent::ResourceUpdated)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use callward_core::ServerId;

    use super::super::Shared;
    use super::*;
    use crate::client::options::UpstreamOptions;

    #[tokio::test(start_paused = true)]
    async fn endless_changes_are_announced_with_pauses_and_the_last_too() {
        for (list, times) in [(List::Tools, 11), (List::Prompts, 2), (List::Resources, 2)] {
            let id = ServerId::new("s").unwrap();
            let shared = Shared::new(id, UpstreamOptions::default(), None);
            let mut events = shared.subscribe();
            let mut announced = 0;
            let mut at_once = async || {
                let event = timeout(Duration::ZERO, events.next()).await;
                usize::from(event == Ok(Some(ServerEvent::ListChanged(list))))
            };
            for _ in 0..1005 {
                shared.list_changed(list);
                announced += at_once().await;
                advance(Duration::from_millis(1)).await;
            }
            assert_eq!(announced, times, "{list}");
            advance(changes_pause(list)).await;
            assert_eq!([at_once().await, at_once().await], [1, 0]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn endless_updates_are_announced_with_pauses_and_the_last_too() {
        let id = ServerId::new("s").unwrap();
        let shared = Shared::new(id, UpstreamOptions::default(), None);
        shared.watched.want(["a:dir", "b:x"].map(Arc::from).into());
        let mut events = shared.subscribe();
        let mut at_once = async || {
            let mut heard = Vec::new();
            while let Ok(event) = timeout(Duration::ZERO, events.next()).await {
                let Some(ServerEvent::ResourceUpdated(uri)) = event else {
                    panic!("{event:?}");
                };
                heard.push(uri.map(|uri| uri.to_string()));
            }
            heard
        };
        // what is below a wanted resource is a part of it; what is not wanted has no name
        for (uri, heard) in [
            ("a:dir/1", Some("a:dir")),
            ("a:directory", None),
            ("", None),
        ] {
            shared.resource_updated(uri);
            assert_eq!(at_once().await, [heard.map(str::to_owned)], "{uri}");
            advance(UPDATES_PAUSE).await;
        }
        let mut announced = 0;
        for _ in 0..1005 {
            for uri in ["a:dir", "b:x", "c:x"] {
                shared.resource_updated(uri);
            }
            announced += at_once().await.len();
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(announced, 10);
        advance(UPDATES_PAUSE).await;
        assert_eq!(at_once().await.len(), 2);
    }
}
