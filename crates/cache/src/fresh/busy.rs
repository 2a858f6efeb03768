//! Keys for which something runs already.

use std::sync::Arc;

use dashmap::DashMap;

/// Keys for which something runs already.
#[derive(Debug, Clone, Default)]
pub(crate) struct Busy(Arc<DashMap<u128, ()>>);

/// One key, busy until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    busy: Busy,
    key: u128,
}

impl Busy {
    /// Makes a key busy; `None` if it is.
    pub(super) fn enter(&self, key: u128) -> Option<Turn> {
        let new = self.0.insert(key, ()).is_none();
        new.then(|| Turn {
            busy: self.clone(),
            key,
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.busy.0.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_busy_until_its_turn_ends() {
        let busy = Busy::default();
        let turn = busy.enter(1).unwrap();
        assert!(busy.enter(1).is_none());
        assert!(busy.enter(2).is_some());
        drop(turn);
        assert!(busy.enter(1).is_some());
    }
}
