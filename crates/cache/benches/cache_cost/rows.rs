//! Each row: a bare part, or a way a call can go.

use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use callward_cache::{CacheConfig, CacheHandle, CacheLayer, Entry, MokaStore, Store};
use callward_core::{ReplicaSetId, ToolCall, ToolOutput};
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::calls::{Leaf, answer, calls_asked, sip};
use crate::measure::{Row, timed, timed_with};

/// Takes the key as its own hash, as the stores do.
#[derive(Clone, Default)]
struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

fn layer_of(lean: bool) -> CacheLayer {
    let config = CacheConfig::default();
    if lean {
        #[cfg(feature = "lean")]
        return CacheLayer::with_store(config, Arc::new(callward_cache::LeanStore::new(64 << 20)));
    }
    CacheLayer::with_store(config, Arc::new(MokaStore::new(64 << 20)))
}

pub(crate) fn moka_get(keys: &Arc<[u128]>, output: &ToolOutput) -> Row {
    let moka: moka::sync::Cache<u128, Arc<ToolOutput>, BuildHasherDefault<Plain>> =
        moka::sync::Cache::builder()
            .max_capacity(1 << 16)
            .build_with_hasher(BuildHasherDefault::default());
    for key in keys.iter() {
        moka.insert(*key, Arc::new(output.clone()));
    }
    let keys = keys.clone();
    Row::new("bare moka get", move || {
        let (moka, keys) = (moka.clone(), keys.clone());
        timed(move |i| drop(black_box(moka.get(&keys[i % calls_asked()]).unwrap())))
    })
}

#[cfg(feature = "lean")]
pub(crate) fn quick_cache_get(keys: &Arc<[u128]>, output: &ToolOutput) -> Row {
    let quick: Arc<quick_cache::sync::Cache<u128, Arc<ToolOutput>, _, _>> =
        Arc::new(quick_cache::sync::Cache::with(
            1 << 16,
            1 << 16,
            quick_cache::UnitWeighter,
            BuildHasherDefault::<Plain>::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        ));
    for key in keys.iter() {
        quick.insert(*key, Arc::new(output.clone()));
    }
    let keys = keys.clone();
    Row::new("bare quick_cache get", move || {
        let (quick, keys) = (quick.clone(), keys.clone());
        timed(move |i| drop(black_box(quick.get(&keys[i % calls_asked()]).unwrap())))
    })
}

pub(crate) fn bare_service(leaf: &Leaf, calls: &Arc<[ToolCall]>) -> Row {
    let (leaf, calls) = (leaf.clone(), calls.clone());
    Row::new("service alone", move || {
        let mut leaf = leaf.clone();
        timed_with(calls.clone(), move |call| answer(&mut leaf, call))
    })
}

pub(crate) fn bare_sip(calls: &Arc<[ToolCall]>) -> Row {
    let calls = calls.clone();
    Row::new("bare SipHash-1-3-128 of 200 bytes", move || {
        let calls = calls.clone();
        timed(move |i| {
            black_box(sip(black_box(calls[i % calls_asked()].arguments())));
        })
    })
}

pub(crate) fn store_get(keys: &Arc<[u128]>, output: &ToolOutput) -> Row {
    let store = Arc::new(MokaStore::new(64 << 20));
    for key in keys.iter() {
        let entry = Entry::new(output.clone(), Duration::from_secs(300), Instant::now());
        store.put(*key, entry);
    }
    let keys = keys.clone();
    Row::new("our store on moka: get", move || {
        let (store, keys) = (store.clone(), keys.clone());
        timed(move |i| drop(black_box(store.get(keys[i % calls_asked()]).unwrap())))
    })
}

/// The cache layer of tower-resilience. With room for half the calls, each one is a miss.
pub(crate) fn other_layer(
    name: &'static str,
    leaf: &Leaf,
    calls: &Arc<[ToolCall]>,
    room: usize,
) -> Row {
    let layer = tower_resilience_cache::SharedCacheLayer::builder()
        .max_size(room)
        .ttl(Duration::from_secs(300))
        .key_extractor(|call: &ToolCall| sip(call.arguments()))
        .build()
        .unwrap();
    let mut cache = layer.layer(leaf.clone());
    for i in 0..calls_asked() {
        answer(&mut cache, calls[i * 389 % calls_asked()].clone());
    }
    let calls = calls.clone();
    Row::new(name, move || {
        let mut cache = cache.clone();
        timed_with(calls.clone(), move |call| answer(&mut cache, call))
    })
}

pub(crate) fn hits(name: &'static str, lean: bool, leaf: &Leaf, calls: &Arc<[ToolCall]>) -> Row {
    let layer = layer_of(lean);
    let mut cache = layer.layer(leaf.clone());
    for call in calls.iter() {
        answer(&mut cache, call.clone());
    }
    let handle: CacheHandle = layer.handle();
    assert_eq!(
        handle.stats().entries,
        calls_asked() as u64,
        "all calls are kept"
    );
    let calls = calls.clone();
    Row::new(name, move || {
        let mut cache = cache.clone();
        timed_with(calls.clone(), move |call| answer(&mut cache, call))
    })
}

/// Each call comes in an epoch of its own: it is sent, stored, and what is out of reach evicted.
pub(crate) fn misses(
    name: &'static str,
    lean: bool,
    leaf: &Leaf,
    calls: &Arc<[ToolCall]>,
    set: &ReplicaSetId,
) -> Row {
    let layer = layer_of(lean);
    let cache = layer.layer(leaf.clone());
    let handle = layer.handle();
    let (calls, set) = (calls.clone(), set.clone());
    Row::new(name, move || {
        let (mut cache, handle, set) = (cache.clone(), handle.clone(), set.clone());
        timed_with(calls.clone(), move |call| {
            handle.purge_set(&set);
            answer(&mut cache, call);
        })
    })
}

/// Two identical calls, of which one runs and the other waits for it.
pub(crate) fn joined(leaf: &Leaf, calls: &Arc<[ToolCall]>) -> Row {
    let (leaf, calls) = (leaf.clone(), calls.clone());
    Row::new("layer on moka: a miss and one joined", move || {
        let gate = Arc::new(AtomicBool::new(false));
        let layer = layer_of(false);
        let mut cache = layer.layer(Leaf {
            gate: Some(gate.clone()),
            ..leaf.clone()
        });
        let handle = layer.handle();
        timed_with(calls.clone(), move |call| {
            handle.purge_set(call.tool().set());
            gate.store(false, Ordering::Relaxed);
            let mut cx = Context::from_waker(Waker::noop());
            let (mut first, mut second) = (pin!(cache.call(call.clone())), pin!(cache.call(call)));
            assert!(first.as_mut().poll(&mut cx).is_pending());
            assert!(second.as_mut().poll(&mut cx).is_pending());
            gate.store(true, Ordering::Relaxed);
            assert!(first.poll(&mut cx).is_ready());
            assert!(second.poll(&mut cx).is_ready());
        })
    })
}

pub(crate) fn invalidations(leaf: &Leaf, write: &ToolCall) -> Row {
    let cache = layer_of(false).layer(leaf.clone());
    let write = write.clone();
    Row::new("layer on moka: a write that invalidates", move || {
        let mut cache = cache.clone();
        timed_with([write.clone()].into(), move |call| answer(&mut cache, call))
    })
}
