//! Requests and grants in memory: requests by name and by key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use callward_core::Principal;

use crate::{Bounds, Grant, Key, Limit, Put, Request, RequestId, State};

/// How large the arguments of ended requests may be, all together.
const MAX_ENDED_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Table {
    by_id: HashMap<RequestId, Arc<Request>>,
    latest: HashMap<Key, RequestId>,
    /// How many are pending, of each principal that has some.
    pending: HashMap<Principal, usize>,
    /// How many wait: those that are pending, and those that a grant approves and that do not run.
    waiting: usize,
    pub(crate) grants: HashMap<RequestId, Arc<Grant>>,
}

impl Table {
    pub(crate) fn get(&self, id: &RequestId) -> Option<Arc<Request>> {
        self.by_id.get(id).cloned()
    }

    pub(crate) fn latest(&self, key: &Key) -> Option<Arc<Request>> {
        self.get(self.latest.get(key)?)
    }

    /// Returns whether a new request may be inserted.
    pub(crate) fn may_put(&self, new: &Request, latest: Option<&RequestId>, most: Bounds) -> Put {
        if self.latest.get(&new.key()) != latest {
            return Put::Changed;
        }
        if new.grant.is_some() && self.grant_after(new).is_none() {
            return Put::Changed;
        }
        let of_principal = self.pending.get(&new.asked.principal);
        if new.grant.is_none() && of_principal.is_some_and(|count| *count >= most.of_principal) {
            Put::Full(Limit::OfPrincipal)
        } else if self.waiting >= most.in_all {
            Put::Full(Limit::InAll)
        } else {
            Put::Added
        }
    }

    /// Returns the grant of a new request without the use that it takes; `None` if there is no such
    /// grant, or no use is left.
    pub(crate) fn grant_after(&self, new: &Request) -> Option<Arc<Grant>> {
        let grant = self.grants.get(new.grant.as_ref()?)?;
        let used = grant.used.checked_add(1)?;
        let with_use = grant.has_uses().then(|| Grant::clone(grant))?;
        Some(Arc::new(Grant { used, ..with_use }))
    }

    /// Returns whether a request may replace the stored one.
    pub(crate) fn may_replace(&self, next: &Request) -> bool {
        let stored = self.by_id.get(&next.id);
        stored.is_some_and(|stored| stored.revision.checked_add(1) == Some(next.revision))
    }

    /// Stores a request, as the latest of its key if it is new.
    pub(crate) fn insert(&mut self, request: Arc<Request>) {
        let id = request.id.clone();
        if let State::Pending = request.state {
            *self
                .pending
                .entry(request.asked.principal.clone())
                .or_default() += 1;
        }
        self.waiting += usize::from(request.waits());
        // a revision has the key of the one before
        if !self.by_id.contains_key(&id) {
            self.latest.insert(request.key(), id.clone());
        }
        if let Some(before) = self.by_id.insert(id, request) {
            self.uncount(&before);
        }
    }

    fn uncount(&mut self, request: &Request) {
        self.waiting -= usize::from(request.waits());
        if let (State::Pending, Entry::Occupied(mut entry)) = (
            request.state,
            self.pending.entry(request.asked.principal.clone()),
        ) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    pub(crate) fn remove_all(&mut self, ids: &[RequestId]) {
        for id in ids {
            if let Some(gone) = self.by_id.remove(id) {
                self.uncount(&gone);
                if let Entry::Occupied(latest) = self.latest.entry(gone.key())
                    && latest.get() == id
                {
                    latest.remove();
                }
            }
        }
    }

    pub(crate) fn list(&self) -> Vec<Arc<Request>> {
        let mut all: Vec<_> = self.by_id.values().cloned().collect();
        all.sort_unstable_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        all
    }

    /// Returns those that ended before this time, and the oldest of the others beyond `most`.
    pub(crate) fn outdated(&self, before_ms: u64, most: usize) -> Vec<RequestId> {
        let ended = self
            .by_id
            .values()
            .filter(|request| request.state.is_ended());
        let mut ended: Vec<_> = ended
            .map(|request| (request.since_ms, &request.id))
            .collect();
        ended.sort_unstable();
        let beyond = ended.len().saturating_sub(most);
        // the latest that fit
        let mut bytes = 0;
        let fit = ended.iter().rev().take_while(|(_, id)| {
            bytes += self
                .get(id)
                .map_or(0, |request| request.asked.arguments.len());
            bytes <= MAX_ENDED_BYTES
        });
        let beyond = beyond.max(ended.len() - fit.count());
        let old = ended.partition_point(|(since, _)| *since < before_ms);
        ended.truncate(old.max(beyond));
        ended.into_iter().map(|(_, id)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Asked;
    use crate::step::tests::request;

    const BOUNDS: Bounds = Bounds {
        of_principal: 2,
        in_all: 3,
    };

    #[test]
    fn bounds_count_pending_requests_only_and_fall_with_their_end() {
        let mut table = Table::default();
        let of = |principal: &str| {
            let mut new = request(State::Pending);
            new.asked.principal = Principal::new(principal);
            new
        };
        let put = |table: &mut Table, new: &Request| {
            let latest = table.latest(&new.key()).map(|latest| latest.id.clone());
            let put = table.may_put(new, latest.as_ref(), BOUNDS);
            if put == Put::Added {
                table.insert(Arc::new(new.clone()));
            }
            put
        };
        let (one, other) = (of("ada"), of("bob"));
        assert_eq!(
            [put(&mut table, &one), put(&mut table, &of("ada"))],
            [Put::Added; 2]
        );
        assert_eq!(put(&mut table, &of("ada")), Put::Full(Limit::OfPrincipal));
        assert_eq!(put(&mut table, &other), Put::Added);
        assert_eq!(put(&mut table, &of("eve")), Put::Full(Limit::InAll));
        let ended = Request {
            state: State::Denied,
            revision: 1,
            ..one
        };
        assert!(table.may_replace(&ended));
        table.insert(Arc::new(ended.clone()));
        assert!(!table.may_replace(&ended), "each revision comes once");
        assert_eq!(put(&mut table, &of("eve")), Put::Added);
        assert_eq!(table.may_put(&other, None, BOUNDS), Put::Changed);
        assert_eq!(table.outdated(0, 1), []);
        for (before, most) in [(u64::MAX, 1), (0, 0)] {
            assert_eq!(table.outdated(before, most), vec![ended.id.clone()]);
        }
        table.remove_all(&[ended.id, other.id]);
        assert_eq!(table.list().len(), 2);
    }

    #[test]
    fn the_arguments_of_ended_requests_are_bounded_together() {
        let mut table = Table::default();
        let count = 2 * MAX_ENDED_BYTES / Asked::MAX_ARGUMENT_BYTES;
        let large: Arc<str> = "x".repeat(Asked::MAX_ARGUMENT_BYTES).into();
        let mut ids = Vec::new();
        for since_ms in 0..count as u64 {
            let mut ended = request(State::Withdrawn);
            ended.since_ms = since_ms;
            ended.asked.arguments = large.clone();
            ids.push(ended.id.clone());
            table.insert(Arc::new(ended));
        }
        assert_eq!(table.outdated(0, usize::MAX), ids[..count / 2]);
    }
}
