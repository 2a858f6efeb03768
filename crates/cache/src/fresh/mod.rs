//! How long answers are right, what is served beyond that, and how it is found out.
//!
//! An answer's own word ([`lifetime`]) only shortens what its plan allows. Beyond its lifetime an
//! answer is served only where the operator says so, only to a read, only within the epochs it was
//! read under, and only with a mark in its `_meta`: while a new one is fetched ([`revalidate`]), or
//! because the server fails ([`if_error`]). And whether answers within their lifetime are right is
//! looked at by sample ([`verify`]).

mod busy;
mod draw;
mod if_error;
mod lifetime;
mod mark;
mod observer;
mod revalidate;
mod verify;

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::CacheConfig;

use busy::Busy;
use draw::Draw;
pub(crate) use lifetime::Lifetime;
pub(crate) use observer::Observer;
pub(crate) use verify::Check;

/// What the calls share that the cache makes by itself.
#[derive(Debug)]
pub(crate) struct Fresh {
    /// The keys that are being fetched anew.
    refreshing: Busy,
    /// The keys that are being checked.
    checking: Busy,
    /// How many checks may run at once.
    checks: Arc<Semaphore>,
    draw: Draw,
    pub(crate) observer: Observer,
}

/// More checks at once tell nothing sooner.
const CHECKS: usize = 8;

impl Fresh {
    pub(crate) fn new(config: &CacheConfig) -> Self {
        Self {
            refreshing: Busy::default(),
            checking: Busy::default(),
            checks: Arc::new(Semaphore::new(CHECKS)),
            draw: Draw::new(config.verify_per_thousand, config.verify_seed),
            observer: Observer::default(),
        }
    }

    /// Says whether the next hit is to be checked.
    pub(crate) fn draws(&self) -> bool {
        self.draw.next()
    }
}
