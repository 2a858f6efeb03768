//! Requests in memory, by name and by key, with the counts of pending ones.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::Principal;

use crate::{Bounds, Key, Limit, Put, Request, RequestId, State};

#[derive(Debug, Default)]
pub(crate) struct Table {
    by_id: HashMap<RequestId, Arc<Request>>,
    latest: HashMap<Key, RequestId>,
    pending: HashMap<Principal, usize>,
    in_all: usize,
}

impl Table {
    pub(crate) fn get(&self, id: &RequestId) -> Option<Arc<Request>> {
        self.by_id.get(id).cloned()
    }

    pub(crate) fn latest(&self, key: &Key) -> Option<Arc<Request>> {
        self.get(self.latest.get(key)?)
    }

    /// Returns whether a new request may be inserted.
    pub(crate) fn may_put(
        &self,
        request: &Request,
        latest: Option<&RequestId>,
        bounds: Bounds,
    ) -> Put {
        let of_principal = self.pending.get(&request.asked.principal);
        if self.latest.get(&request.key()) != latest {
            Put::Changed
        } else if of_principal.is_some_and(|pending| *pending >= bounds.of_principal) {
            Put::Full(Limit::OfPrincipal)
        } else if self.in_all >= bounds.in_all {
            Put::Full(Limit::InAll)
        } else {
            Put::Added
        }
    }

    /// Returns whether a request may replace the stored one.
    pub(crate) fn may_replace(&self, request: &Request) -> bool {
        let stored = self.by_id.get(&request.id);
        stored.is_some_and(|stored| stored.revision.checked_add(1) == Some(request.revision))
    }

    /// Stores a request, as the latest of its key if it is new.
    pub(crate) fn insert(&mut self, request: Arc<Request>) {
        self.count(&request, true);
        let key = request.key();
        let (id, old) = (
            request.id.clone(),
            self.by_id.insert(request.id.clone(), request),
        );
        match old {
            Some(old) => self.count(&old, false),
            None => _ = self.latest.insert(key, id),
        }
    }

    fn remove(&mut self, id: &RequestId) {
        if let Some(old) = self.by_id.remove(id) {
            self.count(&old, false);
            let key = old.key();
            if self.latest.get(&key) == Some(id) {
                self.latest.remove(&key);
            }
        }
    }

    pub(crate) fn remove_all(&mut self, ids: &[RequestId]) {
        ids.iter().for_each(|id| self.remove(id));
    }

    fn count(&mut self, request: &Request, is_there: bool) {
        if request.state != State::Pending {
            return;
        }
        let principal = &request.asked.principal;
        let pending = self.pending.entry(principal.clone()).or_default();
        if is_there {
            *pending += 1;
            self.in_all += 1;
        } else {
            *pending = pending.saturating_sub(1);
            self.in_all = self.in_all.saturating_sub(1);
            if *pending == 0 {
                self.pending.remove(principal);
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
        let old = ended.partition_point(|(since, _)| *since < before_ms);
        ended.truncate(old.max(beyond));
        ended.into_iter().map(|(_, id)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            (table.list().len(), table.in_all, table.pending.len()),
            (2, 2, 2)
        );
    }
}
