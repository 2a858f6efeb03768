//! The last execution of each call whose lifetime is learned.

use std::sync::Arc;

#[cfg(feature = "store")]
use moka::sync::Cache;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::Instant;

/// The executions that are remembered. One takes about 200 bytes.
const MAX_EXECUTIONS: u64 = 65_536;

/// The sessions that are remembered for one answer; further ones count as if they had received it.
const MAX_READERS: usize = 64;

/// The last execution of each call, by the key of its result: the epochs are part of it.
#[derive(Debug)]
pub(crate) struct Executions(Cache<u128, Arc<Execution>>);

/// One execution of a call.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) dispatched: Instant,
    /// `None` if the answer is never served, or cannot be compared with others.
    pub(crate) digest: Option<u128>,
    /// Its number in the order of its set; `None` if others ran at the same time.
    pub(crate) number: Option<u64>,
    /// The sessions that received the answer.
    readers: Mutex<SmallVec<[u64; 2]>>,
}

impl Default for Executions {
    fn default() -> Self {
        Self(Cache::new(MAX_EXECUTIONS))
    }
}

impl Executions {
    pub(crate) fn last(&self, key: u128) -> Option<Arc<Execution>> {
        self.0.get(&key)
    }

    pub(crate) fn put(&self, key: u128, execution: Execution) {
        self.0.insert(key, Arc::new(execution));
    }

    pub(crate) fn clear(&self) {
        self.0.invalidate_all();
    }
}

/// Remembers nothing: what is not kept needs no lifetime.
#[cfg(not(feature = "store"))]
#[derive(Debug)]
struct Cache<K, V>(std::marker::PhantomData<(K, V)>);

#[cfg(not(feature = "store"))]
#[expect(clippy::unused_self, reason = "as moka has it")]
impl<K, V> Cache<K, V> {
    const fn new(_: u64) -> Self {
        Self(std::marker::PhantomData)
    }

    const fn get(&self, _: &K) -> Option<V> {
        None
    }

    fn insert(&self, _: K, _: V) {}

    const fn invalidate_all(&self) {}
}

impl Execution {
    pub(crate) fn new(
        dispatched: Instant,
        digest: Option<u128>,
        number: Option<u64>,
        session: u64,
    ) -> Self {
        Self {
            dispatched,
            digest,
            number,
            readers: Mutex::new(SmallVec::from_slice(&[session])),
        }
    }

    /// Notes that the session receives the answer. Returns `true` if it had not received it before.
    pub(crate) fn serve(&self, session: u64) -> bool {
        let mut readers = self.readers.lock();
        let is_new = readers.len() < MAX_READERS && !readers.contains(&session);
        if is_new {
            readers.push(session);
        }
        is_new
    }

    /// Returns `true` if the session has not received the answer.
    pub(crate) fn is_new_to(&self, session: u64) -> bool {
        let readers = self.readers.lock();
        readers.len() < MAX_READERS && !readers.contains(&session)
    }
}
