//! What clients and servers found, together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::world::World;

/// What clients and servers found, together.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The history of each server.
    worlds: Mutex<HashMap<String, Arc<World>>>,
    next: AtomicU64,
    pub(crate) calls: AtomicU64,
    pub(crate) looks: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) hung_up: AtomicU64,
    pub(crate) kills: AtomicU64,
    pub(crate) restarts: AtomicU64,
    violations: Mutex<Vec<String>>,
}

impl Found {
    /// Adds the world of a server.
    pub(crate) fn add(&self, server: &str) -> Arc<World> {
        let world = Arc::<World>::default();
        self.worlds.lock().insert(server.to_owned(), world.clone());
        world
    }

    /// Returns the world of a server.
    pub(crate) fn world(&self, server: &str) -> Option<Arc<World>> {
        self.worlds.lock().get(server).cloned()
    }

    /// Returns a number that no write has had.
    pub(crate) fn number(&self) -> u64 {
        1 + self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes note of a promise that was not kept.
    pub(crate) fn violated(&self, what: String) {
        eprintln!("violation: {what}");
        self.violations.lock().push(what);
    }

    /// Prints all counts; returns `true` if every promise was kept.
    pub(crate) fn tell(&self) -> bool {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (mut reads, mut writes, mut twice) = (0, 0, 0);
        for world in self.worlds.lock().values() {
            let of_one = world.totals();
            reads += of_one.0;
            writes += of_one.1;
            twice += of_one.2;
        }
        let violations = self.violations.lock().len();
        println!("calls             {:>10}", count(&self.calls));
        println!("  failed          {:>10}", count(&self.failed));
        println!("  hung up         {:>10}", count(&self.hung_up));
        println!("reads made        {:>10}", count(&self.looks));
        println!("reads run         {reads:>10}");
        println!("writes run        {writes:>10}");
        println!("processes killed  {:>10}", count(&self.kills));
        println!("gateways restarted{:>10}", count(&self.restarts));
        println!("writes run twice  {twice:>10}");
        println!("violations        {violations:>10}");
        violations == 0 && twice == 0
    }
}
