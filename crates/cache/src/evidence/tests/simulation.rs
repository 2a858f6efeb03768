//! A day of agents' reads in worlds that change in different ways: how many answers are served, and
//! how many of those are stale. Time is simulated, and seeds are fixed.

use std::collections::HashMap;
use std::time::Duration;

use callward_core::{ReplicaSetId, ToolName};
use tokio::time::Instant;

use super::super::{Evidences, Subject};

const ODDS: f64 = 0.01;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 24.0 * HOUR;
/// Agents' sessions in a day. Each reads 6 keys, each of them 8 times.
const SESSIONS: u64 = 1_500;

/// Which keys change, and who reads them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum World {
    /// Each key at times of its own.
    Each,
    /// All keys at once.
    Together,
    /// Three of ten keys.
    Mixed,
    /// Each key; and agents read right before a change and right after it.
    Watched,
}

/// How keys change at random, how often on average (in seconds), and how many there are.
const CASES: [(World, f64, u64); 12] = [
    (World::Each, f64::INFINITY, 60),
    (World::Each, f64::INFINITY, 1_000),
    (World::Each, HOUR, 60),
    (World::Each, 600.0, 60),
    (World::Each, 60.0, 60),
    (World::Each, 10.0, 60),
    (World::Each, 1.0, 60),
    (World::Together, HOUR, 60),
    (World::Together, 600.0, 1_000),
    (World::Watched, HOUR, 60),
    (World::Watched, 600.0, 60),
    (World::Mixed, 20.0, 600),
];

/// The times at which one key changes.
struct Changes {
    every: f64,
    rng: fastrand::Rng,
    next: f64,
    version: u64,
}

impl Changes {
    fn new(world: World, every: f64, key: u64) -> Self {
        let is_quiet = world == World::Mixed && key % 10 >= 3;
        let seed = if world == World::Together { 0 } else { key };
        let mut changes = Self {
            every: if is_quiet { f64::INFINITY } else { every },
            rng: fastrand::Rng::with_seed(1_000 + seed),
            next: 0.0,
            version: 0,
        };
        changes.next = changes.pause();
        changes
    }

    /// Exponentially distributed.
    fn pause(&mut self) -> f64 {
        match self.every {
            f64::INFINITY => f64::INFINITY,
            mean => -mean * (1.0 - self.rng.f64()).ln(),
        }
    }

    /// Returns which value the key has. Times never go back.
    fn version(&mut self, at: f64) -> u64 {
        while self.next <= at {
            self.version += 1;
            self.next += self.pause();
        }
        self.version
    }
}

#[derive(Debug, Clone, Copy)]
struct Read {
    at: f64,
    session: u64,
    key: u64,
    version: u64,
}

/// All reads of a day in their order. A session reads a key again after 0.3 to 250 s; short and
/// long gaps are as likely. A few keys are read most.
fn reads(world: World, every: f64, keys: u64) -> Vec<Read> {
    let mut rng = fastrand::Rng::with_seed(42);
    let mut reads = Vec::new();
    let mut read = |at, session, key| {
        reads.push(Read {
            at,
            session,
            key,
            version: 0,
        });
    };
    for session in 0..SESSIONS {
        let start = rng.f64() * DAY;
        for _ in 0..6 {
            let key = (keys as f64 * rng.f64().powi(2)) as u64;
            let mut at = start + rng.f64() * 10.0;
            for _ in 0..8 {
                read(at, session, key);
                at += 0.3 * (250.0_f64 / 0.3).powf(rng.f64());
            }
        }
    }
    if world == World::Watched {
        for key in 0..keys {
            let mut changes = Changes::new(world, every, key);
            while changes.next < DAY {
                let (change, session) = (changes.next, rng.u64(0..SESSIONS));
                changes.version(change);
                read(change - rng.f64() * 60.0, session, key);
                read(change + 0.2 + rng.f64() * 3.0, session, key);
            }
        }
    }
    reads.retain(|read| read.at >= 0.0);
    reads.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut all: Vec<_> = (0..keys)
        .map(|key| Changes::new(world, every, key))
        .collect();
    for read in &mut reads {
        read.version = all[read.key as usize].version(read.at);
    }
    reads
}

/// Returns how many reads are served, and how many of those stale.
fn run(reads: &[Read]) -> (u64, u64) {
    let tool = Evidences::new(ODDS).of(&Subject {
        set: ReplicaSetId::new("set").unwrap(),
        tool: ToolName::new("read").unwrap(),
        definition: 1,
        partition: 1,
    });
    let (start, mut rng) = (Instant::now(), fastrand::Rng::with_seed(9));
    let mut kept: HashMap<u64, (f64, u64)> = HashMap::new();
    let (mut served, mut stale) = (0, 0);
    for read in reads {
        let now = start + Duration::from_secs_f64(read.at);
        let key = u128::from(read.key);
        if let Some((dispatched, version)) = kept.get(&read.key) {
            let (age, equal) = (read.at - dispatched, *version == read.version);
            let gap = Duration::from_secs_f64(age);
            let lifetime = tool.allowed_for(key, now);
            if gap <= lifetime && !tool.verifies(key, gap, rng.f64(), now) {
                served += 1;
                stale += u64::from(!equal);
                continue;
            }
            tool.observe(key, read.session, gap, equal, now);
        }
        kept.insert(read.key, (read.at, read.version));
    }
    (served, stale)
}

#[test]
fn stale_answers_stay_below_the_odds() {
    println!("world: hits and, of these, stale answers, in %; the odds are {ODDS}");
    for (world, every, keys) in CASES {
        let reads = reads(world, every, keys);
        let (served, stale) = run(&reads);
        let hits = 100.0 * served as f64 / reads.len() as f64;
        let stale = 100.0 * stale as f64 / served.max(1) as f64;
        println!("{world:?} {every} {keys}: {hits:.1} {stale:.3}");
        assert!(stale <= 100.0 * ODDS, "{world:?} {every} {keys}: {stale}");
        // evidence comes to use
        assert!(every.is_finite() || hits >= 50.0, "{keys}: {hits}");
    }
}
