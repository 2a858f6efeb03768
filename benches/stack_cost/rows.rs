//! What is measured.

use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callward::{ToolCall, ToolOutput, ToolServer};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::calls::{CALLED, READ, WRITE, World, argument, arguments, calls, server};
use crate::measure::{RUN, Subject, bare, prepared};
use crate::peer::{self, sip};
use crate::{layers, report, telemetry};

/// How many distinct calls there are where nothing else is said.
pub(crate) const DISTINCT: usize = 1024;
/// What a hit costs depends on how many distinct calls there are: what a few of them take in memory
/// stays in the processor's nearest cache, what many take does not.
pub(crate) const SIZES: [usize; 3] = [16, DISTINCT, 10_000];
/// How often each read is asked for before anything is timed.
const ASKED: usize = 40;
/// How many tools are registered, in the worlds that are compared by it.
pub(crate) const TOOLS: [usize; 2] = [10, 100_000];

/// One row.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) part: Part,
    pub(crate) subject: Subject,
}

/// What a row's figures are there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The service without a stack.
    Service,
    /// A keyed hash of this many distinct arguments.
    Hash(usize),
    /// A bare look-up of this many distinct keys.
    Get(usize),
    /// Bare entries put into a cache that is full.
    Put,
    /// Reads that are answered from the cache, this many distinct ones.
    Cached(usize),
    /// Calls that reach the service, past the cache.
    Uncached,
    /// Calls that reach the service, and whose answers are kept.
    Kept,
    /// Layers that a hit passes, innermost first.
    Hit,
    /// Layers that a call to the service passes, innermost first.
    Passed,
    /// Calls by name among this many tools: hits.
    HitsAmong(usize),
    /// The same: writes.
    WritesAmong(usize),
    /// Calls whose spans are seen, and measured or sent.
    Watched,
    /// Another stack.
    Peer,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, part: Part, subject: Subject) -> Self {
        let name = name.into();
        Self {
            name,
            part,
            subject,
        }
    }

    /// Returns `true` if other rows are compared with it.
    pub(crate) const fn is_needed(&self) -> bool {
        matches!(
            self.part,
            Part::Service | Part::Hash(_) | Part::Get(_) | Part::Put
        )
    }

    /// Asks for what is kept so often that it is where it stays: among the entries that are asked
    /// for again and again.
    pub(crate) fn settle(&self) {
        if matches!(self.part, Part::Cached(_) | Part::Hit | Part::HitsAmong(_)) {
            self.subject.settle(ASKED);
        }
    }

    pub(crate) fn round(&mut self) {
        self.subject.round(1);
        // layers one by one, and tools by the thousand, say nothing else with two threads
        if !matches!(
            self.part,
            Part::Hit | Part::Passed | Part::HitsAmong(_) | Part::WritesAmong(_)
        ) {
            self.subject.round(2);
        }
    }

    pub(crate) fn count(&mut self) {
        self.subject.count();
    }
}

/// All rows.
pub(crate) fn all(part: &str) -> Vec<Row> {
    let world = World::new(10);
    let read = world.stack.prepare(READ, "").unwrap();
    let write = world.stack.prepare(WRITE, "").unwrap();
    let mut rows = vec![Row::new(report::SERVICE, Part::Service, service(&write))];
    for distinct in SIZES {
        let of = |what: &str| format!("{what}, {distinct} distinct");
        // a write elsewhere would make the next warm-up store everything again
        let world = World::new(10);
        rows.extend([
            Row::new(of("bare keyed hash"), Part::Hash(distinct), hash(distinct)),
            Row::new(of("bare moka get"), Part::Get(distinct), get(distinct)),
            Row::new(
                of("cached call, prepared"),
                Part::Cached(distinct),
                ready(&world, READ, distinct),
            ),
            Row::new(
                of("cached call, by name"),
                Part::Cached(distinct),
                named(&world, &[READ], distinct),
            ),
        ]);
    }
    let uncached = |name, subject| Row::new(name, Part::Uncached, subject);
    rows.extend([
        uncached("write, prepared", ready(&world, WRITE, DISTINCT)),
        uncached("write, by name", named(&world, &[WRITE], DISTINCT)),
        Row::new("bare moka insert, full", Part::Put, put()),
        Row::new("read that is kept, prepared", Part::Kept, missed()),
    ]);
    rows.extend(layers::hit(&read));
    rows.extend(layers::passed(&write));
    rows.extend(telemetry::watched(&write));
    rows.extend([
        Row::new(
            "tower-resilience: cached call",
            Part::Peer,
            peer::hit(&read),
        ),
        Row::new(
            "tower-resilience: uncached call",
            Part::Peer,
            peer::passed(&write),
        ),
    ]);
    if "tools".contains(part) || part.contains("tools") {
        rows.extend(among());
    }
    rows
}

/// The service alone, called as the stack calls it.
fn service(call: &ToolCall) -> Subject {
    let server = Arc::new(server(10));
    let calls = calls(call.tool(), DISTINCT);
    Subject::new(DISTINCT, move || {
        let (server, calls) = (server.clone(), calls.clone());
        prepared(
            move |number| calls[number].clone(),
            move |call| server.call(call),
        )
    })
}

/// A keyed hash of arguments.
fn hash(distinct: usize) -> Subject {
    let texts = arguments(distinct);
    Subject::new(distinct, move || {
        let texts = texts.clone();
        bare(move |number| {
            black_box(sip(black_box(&texts[number])));
        })
    })
}

/// A look-up in a bare cache, by a key that is there already, and that is its own hash.
fn get(distinct: usize) -> Subject {
    let cache = moka();
    let keys: Arc<[u128]> = arguments(distinct).iter().map(|text| sip(text)).collect();
    for key in keys.iter() {
        cache.insert(*key, kept());
    }
    Subject::new(distinct, move || {
        let (cache, keys) = (cache.clone(), keys.clone());
        bare(move |number| drop(black_box(cache.get(&keys[number]).unwrap())))
    })
}

/// An entry put into a bare cache that is full, under a key that is new.
fn put() -> Subject {
    let cache = moka();
    let next = Arc::new(AtomicU64::new(0));
    let put = move || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        // a key is its own hash, and hashes are spread evenly
        cache.insert(number.wrapping_mul(SPREAD).into(), kept());
    };
    (0..MOST_KEPT).for_each(|_| put());
    Subject::new(RUN, move || {
        let put = put.clone();
        bare(move |_| put())
    })
}

/// A bare cache that evicts as the stack's does.
fn moka() -> Cache<u128, Arc<ToolOutput>, BuildHasherDefault<Itself>> {
    Cache::builder()
        .max_capacity(MOST_KEPT)
        .eviction_policy(EvictionPolicy::lru())
        .build_with_hasher(BuildHasherDefault::default())
}

const MOST_KEPT: u64 = 1 << 16;
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

fn kept() -> Arc<ToolOutput> {
    Arc::new(ToolOutput::text("x".repeat(200)))
}

/// Takes a key as its own hash.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

/// Calls through the stack that were made before.
fn ready(world: &Arc<World>, tool: &str, distinct: usize) -> Subject {
    let calls: Arc<[ToolCall]> = arguments(distinct)
        .iter()
        .map(|arguments| world.stack.prepare(tool, arguments.clone()).unwrap())
        .collect();
    let world = world.clone();
    Subject::new(distinct, move || {
        let (world, calls) = (world.clone(), calls.clone());
        prepared(
            move |number| calls[number].clone(),
            move |call| world.stack.run(call),
        )
    })
}

/// Calls through the stack that are made as part of the row, of each of these tools in turn.
fn named(world: &Arc<World>, tools: &[&str], distinct: usize) -> Subject {
    let texts = arguments(distinct);
    let tools: Arc<[String]> = tools.iter().map(ToString::to_string).collect();
    let world = world.clone();
    Subject::new(distinct, move || {
        let (world, texts, tools) = (world.clone(), texts.clone(), tools.clone());
        prepared(
            move |number| (number, texts[number].clone()),
            move |(number, text)| {
                let tool = &tools[number % tools.len()];
                world.stack.run(world.stack.prepare(tool, text).unwrap())
            },
        )
    })
}

/// Reads that were not made before, and whose answers are kept.
fn missed() -> Subject {
    let world = World::new(10);
    let next = Arc::new(AtomicU64::new(0));
    Subject::new(RUN, move || {
        let (world, next) = (world.clone(), next.clone());
        let prepare = world.clone();
        prepared(
            move |_| {
                let number = next.fetch_add(1, Ordering::Relaxed);
                prepare.stack.prepare(READ, argument(number)).unwrap()
            },
            move |call| world.stack.run(call),
        )
    })
}

/// The same calls of the same tools, with few and with many others registered.
fn among() -> Vec<Row> {
    let mut rows = Vec::new();
    for tools in TOOLS {
        let kinds = [
            ("get_item", "cached call", Part::HitsAmong(tools)),
            ("create_item", "write", Part::WritesAmong(tools)),
        ];
        for (tool, what, part) in kinds {
            // a write among the hits would make the next ones store everything again
            let world = World::new(tools);
            // spread over all that there are
            let place = |number| number * (tools / 2 / CALLED);
            let names: Vec<String> = (0..CALLED)
                .map(|number| format!("bench.{tool}_{}", place(number)))
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let subject = named(&world, &names, DISTINCT);
            rows.push(Row::new(
                format!("{what} by name, {tools} tools"),
                part,
                subject,
            ));
        }
    }
    rows
}
