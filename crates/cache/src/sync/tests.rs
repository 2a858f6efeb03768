//! Doubles that let a scheduler choose the next step: as much of each type as this crate uses.
//!
//! Each operation of a double is one step. For tokio's semaphore that is enough: it has its own
//! loom tests.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::sync::{Mutex, MutexGuard};
use tokio::sync::AcquireError;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use crate::CacheConfig;
use crate::reason::Evictions;
use crate::store;
use crate::store::StoreUsage;

/// A point at which another task may run first.
#[derive(Debug, Default)]
struct Step(AtomicBool);

impl Step {
    fn take(&self) {
        self.0.load(Ordering::SeqCst);
    }
}

/// A cell that is written once.
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    step: Step,
    cell: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self {
            step: Step::default(),
            cell: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.step.take();
        self.cell.get()
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.step.take();
        self.cell.set(value)
    }
}

/// A semaphore.
#[derive(Debug)]
pub(crate) struct Semaphore {
    step: Step,
    permits: tokio::sync::Semaphore,
}

impl Semaphore {
    pub(crate) fn new(permits: usize) -> Self {
        Self {
            step: Step::default(),
            permits: tokio::sync::Semaphore::new(permits),
        }
    }

    pub(crate) async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.step.take();
        let permit = self.permits.acquire().await?;
        let step = &self.step;
        Ok(SemaphorePermit {
            step,
            permit: Some(permit),
        })
    }

    pub(crate) fn add_permits(&self, n: usize) {
        self.step.take();
        self.permits.add_permits(n);
    }

    pub(crate) fn close(&self) {
        self.step.take();
        self.permits.close();
    }
}

/// One permit, returned by dropping it.
#[derive(Debug)]
pub(crate) struct SemaphorePermit<'a> {
    step: &'a Step,
    permit: Option<tokio::sync::SemaphorePermit<'a>>,
}

impl Drop for SemaphorePermit<'_> {
    fn drop(&mut self) {
        self.step.take();
        self.permit.take();
    }
}

/// No time passes here: it never times out.
pub(crate) async fn timeout_at<F: Future>(_: Instant, future: F) -> Result<F::Output, Elapsed> {
    Ok(future.await)
}

/// A map with one lock where the real one has many: two keys may meet behind one lock there, too.
#[derive(Debug)]
pub(crate) struct DashMap<K, V>(Mutex<HashMap<K, V>>);

impl<K, V> Default for DashMap<K, V> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Eq + Hash + Clone, V> DashMap<K, V> {
    pub(crate) fn entry(&self, key: K) -> Entry<'_, K, V> {
        let map = self.lock();
        Entry { map, key }
    }

    pub(crate) fn remove_if(
        &self,
        key: &K,
        condition: impl FnOnce(&K, &V) -> bool,
    ) -> Option<(K, V)> {
        let mut map = self.lock();
        match map.entry(key.clone()) {
            Place::Occupied(place) if condition(key, place.get()) => Some(place.remove_entry()),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// A call that panicked while it held the lock left the map whole: each change is one step.
    fn lock(&self) -> MutexGuard<'_, HashMap<K, V>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The slot of one key; it locks the map.
pub(crate) struct Entry<'a, K, V> {
    map: MutexGuard<'a, HashMap<K, V>>,
    key: K,
}

impl<'a, K: Eq + Hash + Clone, V> Entry<'a, K, V> {
    pub(crate) fn or_insert_with(mut self, make: impl FnOnce() -> V) -> Held<'a, K, V> {
        self.map.entry(self.key.clone()).or_insert_with(make);
        Held {
            map: self.map,
            key: self.key,
        }
    }
}

/// The value of one key; it locks the map.
pub(crate) struct Held<'a, K, V> {
    map: MutexGuard<'a, HashMap<K, V>>,
    key: K,
}

impl<K: Eq + Hash, V> Deref for Held<'_, K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.map[self.key.borrow()]
    }
}

impl<K: Eq + Hash + Clone, V> DerefMut for Held<'_, K, V> {
    fn deref_mut(&mut self) -> &mut V {
        // the entry was there or was inserted under this lock, so it is found
        match self.map.entry(self.key.clone()) {
            Place::Occupied(place) => place.into_mut(),
            Place::Vacant(_) => unreachable!("held under the lock"),
        }
    }
}

/// A store without a bound.
#[derive(Debug, Clone)]
pub(crate) struct MokaStore(Arc<Mutex<HashMap<u128, Arc<store::Entry>>>>);

impl MokaStore {
    pub(crate) fn new(_: &CacheConfig) -> Self {
        Self(Arc::new(Mutex::new(HashMap::new())))
    }

    pub(crate) fn get(&self, key: u128) -> Option<Arc<store::Entry>> {
        self.lock().get(&key).cloned()
    }

    pub(crate) fn put(&self, key: u128, entry: store::Entry) -> bool {
        self.lock().insert(key, Arc::new(entry));
        true
    }

    pub(crate) fn remove(&self, key: u128) {
        self.lock().remove(&key);
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    pub(crate) fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }

    pub(crate) fn evictions(&self) -> Evictions {
        Evictions::default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Arc<store::Entry>>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
