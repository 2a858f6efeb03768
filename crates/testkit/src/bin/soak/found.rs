//! What the servers behind the gateways ran: the truth that clients' answers are held to; and what
//! was found.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// This many registers there are.
pub(crate) const KEYS: u64 = 8;

/// Registers, all values they ever held, and how often each write was applied.
#[derive(Debug, Default)]
pub(crate) struct World(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    held: HashMap<u64, Vec<u64>>,
    applied: HashMap<u64, u32>,
    reads: u64,
}

impl World {
    /// Returns a moment in the history of a register: how many values it has held.
    pub(crate) fn now(&self, key: u64) -> usize {
        self.0.lock().held.get(&key).map_or(0, Vec::len)
    }

    /// Returns `true` if the register held this value at some time since that moment.
    pub(crate) fn held_since(&self, key: u64, moment: usize, value: u64) -> bool {
        let inner = self.0.lock();
        let held = inner.held.get(&key).map_or(&[][..], Vec::as_slice);
        let before = moment.checked_sub(1).and_then(|last| held.get(last));
        before.copied().unwrap_or(0) == value
            || held
                .get(moment..)
                .is_some_and(|since| since.contains(&value))
    }

    /// Reads a register, as a call does.
    pub(crate) fn read(&self, key: u64) -> u64 {
        let mut inner = self.0.lock();
        inner.reads += 1;
        let held = inner.held.get(&key);
        held.and_then(|held| held.last()).copied().unwrap_or(0)
    }

    /// Writes a register: the number of the write is its value.
    pub(crate) fn write(&self, key: u64, number: u64) {
        let mut inner = self.0.lock();
        inner.held.entry(key).or_default().push(number);
        *inner.applied.entry(number).or_default() += 1;
    }

    /// Returns how often a write was applied.
    pub(crate) fn applied(&self, number: u64) -> u32 {
        self.0.lock().applied.get(&number).copied().unwrap_or(0)
    }

    /// Returns how many reads and writes were run, and how many writes more than once.
    pub(crate) fn totals(&self) -> (u64, usize, usize) {
        let inner = self.0.lock();
        let twice = inner.applied.values().filter(|times| **times > 1).count();
        (inner.reads, inner.applied.len(), twice)
    }
}

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
    /// Returns the world of a server.
    pub(crate) fn world(&self, server: &str) -> Arc<World> {
        let mut worlds = self.worlds.lock();
        worlds.entry(server.to_owned()).or_default().clone()
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
