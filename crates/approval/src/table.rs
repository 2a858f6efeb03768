//! Requests in memory, by name and by key.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Bounds, Key, Limit, Put, Request, RequestId, State};

#[derive(Debug, Default)]
pub(crate) struct Table {
    by_id: HashMap<RequestId, Arc<Request>>,
    latest: HashMap<Key, RequestId>,
}

impl Table {
    pub(crate) fn get(&self, id: &RequestId) -> Option<Arc<Request>> {
        self.by_id.get(id).cloned()
    }

    pub(crate) fn latest(&self, key: &Key) -> Option<Arc<Request>> {
        self.get(self.latest.get(key)?)
    }

    /// Returns whether a new request may be inserted. It counts the pending ones: they are bounded,
    /// and a person decides each.
    pub(crate) fn may_put(&self, new: &Request, latest: Option<&RequestId>, most: Bounds) -> Put {
        if self.latest.get(&new.key()) != latest {
            return Put::Changed;
        }
        let (mut of_principal, mut in_all) = (0, 0);
        for pending in self
            .by_id
            .values()
            .filter(|request| request.state == State::Pending)
        {
            in_all += 1;
            of_principal += usize::from(pending.asked.principal == new.asked.principal);
        }
        if of_principal >= most.of_principal {
            Put::Full(Limit::OfPrincipal)
        } else if in_all >= most.in_all {
            Put::Full(Limit::InAll)
        } else {
            Put::Added
        }
    }

    /// Returns whether a request may replace the stored one.
    pub(crate) fn may_replace(&self, next: &Request) -> bool {
        let stored = self.by_id.get(&next.id);
        stored.is_some_and(|stored| stored.revision.checked_add(1) == Some(next.revision))
    }

    /// Stores a request, as the latest of its key if it is new.
    pub(crate) fn insert(&mut self, request: Arc<Request>) {
        let (id, key) = (request.id.clone(), request.key());
        if self.by_id.insert(id.clone(), request).is_none() {
            self.latest.insert(key, id);
        }
    }

    pub(crate) fn remove_all(&mut self, ids: &[RequestId]) {
        for id in ids {
            self.by_id.remove(id);
        }
        self.latest.retain(|_, id| self.by_id.contains_key(id));
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
        let old = ended.partition_point(|(since, _)| *since < before_ms);
        ended.truncate(old.max(beyond));
        ended.into_iter().map(|(_, id)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use callward_core::Principal;

    use super::*;
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
}
