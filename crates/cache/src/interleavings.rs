//! The whole layer in many orders of steps, chosen by a scheduler.
//!
//! Clients read, set and bump one value through the cache; the store, the atomics, locks and
//! permits of the cache yield to the scheduler at each step, and so does the server before and
//! after each effect. Some clients leave, and their calls may land later. Then each read answers a
//! value that the server held between the read's beginning and end, and each write that did not run
//! would have changed nothing at some moment of that time. All this once with everything in one
//! scope, and once with rules, so that each write changes another scope of the read set.
//!
//! `tests/never_stale` asks the same of random scripts, but lets each task run as far as it can;
//! here a task may be stopped between any two steps.
//!
//! Each of these faults, put in one at a time, fails a test here: no epoch raised by writes; a
//! write not counted in; writes in flight not looked at; two permits in a flight. The tests do not
//! tell the orders of counting and raising apart: either is sound while a write raises at both
//! ends.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;

use callward_core::{ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, call, tool};
use parking_lot::Mutex as Whole;
use serde_json::json;
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use tower::{Layer, ServiceExt};

use crate::{Cache, CacheConfig, CacheHandle, CacheLayer, ToolScopes};

/// How many orders each test tries: enough to find each fault above several times over.
const ORDERS: usize = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Read,
    Set(u64),
    Bump,
}

impl Action {
    fn any() -> Self {
        let mut rng = thread_rng();
        match rng.gen_range(0..8) {
            0..4 => Self::Read,
            4..7 => Self::Set(rng.gen_range(0..2)),
            _ => Self::Bump,
        }
    }

    fn to_call(self, id: usize) -> ToolCall {
        let mut call = match self {
            Self::Read => call(&tool("get").read_only().build(), json!({})),
            Self::Set(value) => call(&tool("set").idempotent().build(), json!({ "value": value })),
            Self::Bump => call(&tool("bump").build(), json!({})),
        };
        call.context_mut().id = Some(id.to_string().into());
        call
    }
}

/// The server: all values it ever held, and the calls in flight. Each change is one step.
#[derive(Debug, Default)]
struct World {
    actions: Vec<Action>,
    held: Vec<u64>,
    ran: Vec<usize>,
    /// Writes whose clients left, and that may land any time.
    late: Vec<usize>,
}

impl World {
    fn now(&self) -> usize {
        self.held.len()
    }

    fn value(&self) -> u64 {
        self.held.last().copied().unwrap_or(0)
    }

    fn run(&mut self, id: usize) -> ToolOutput {
        match self.actions[id] {
            Action::Read => return ToolOutput::text(self.value().to_string()),
            Action::Set(value) => self.held.push(value),
            Action::Bump => self.held.push(100 + self.now() as u64),
        }
        self.ran.push(id);
        ToolOutput::text("done")
    }

    /// Returns `true` if the server held this value at some moment since `from`.
    fn held_since(&self, from: usize, value: u64) -> bool {
        let first = if from == 0 { 0 } else { self.held[from - 1] };
        first == value || self.held[from..].contains(&value)
    }
}

/// A call inside the server. Dropped before its effect, it may still land.
struct Inside {
    world: Arc<Whole<World>>,
    id: usize,
    applied: bool,
}

impl Inside {
    async fn run(mut self) -> Result<ToolOutput, ToolError> {
        yield_now().await;
        let output = self.world.lock().run(self.id);
        self.applied = true;
        yield_now().await;
        Ok(output)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if !self.applied {
            self.world.lock().late.push(self.id);
        }
    }
}

/// A cache in front of a server.
#[derive(Clone)]
struct Setting {
    world: Arc<Whole<World>>,
    cache: Cache<MockService>,
    handle: CacheHandle,
}

impl Setting {
    fn new() -> Self {
        Self::with(CacheConfig::default())
    }

    /// Of the value there are two parts, each written by one tool; a read depends on both.
    fn in_parts() -> Self {
        let mut config = CacheConfig::default();
        for (action, said) in [
            (Action::Read, ToolScopes::reading(["a", "b"])),
            (Action::Set(0), ToolScopes::writing(["a"])),
            (Action::Bump, ToolScopes::writing(["b"])),
        ] {
            let tool = action.to_call(0).tool().clone();
            let (set, name) = (tool.set().clone(), tool.name().clone());
            config.scopes = config.scopes.with(set, name, said.unwrap());
        }
        Self::with(config)
    }

    fn with(config: CacheConfig) -> Self {
        let world = Arc::new(Whole::new(World::default()));
        let inside = world.clone();
        let server = MockService::new(move |call, _| {
            let id = call.id.as_deref().and_then(|id| id.parse().ok());
            Inside {
                world: inside.clone(),
                id: id.unwrap(),
                applied: false,
            }
            .run()
        });
        let layer = CacheLayer::new(config);
        Self {
            world,
            handle: layer.handle(),
            cache: layer.layer(server),
        }
    }

    /// A client that does this, and checks its answers.
    fn client(&self, actions: Vec<Action>) -> JoinHandle<()> {
        let this = self.clone();
        spawn(async move {
            for action in actions {
                this.ask(action).await;
            }
        })
    }

    /// Makes a call; returns its number and its answer.
    async fn call(&self, action: Action) -> (usize, ToolOutput) {
        let id = {
            let mut world = self.world.lock();
            world.actions.push(action);
            world.actions.len() - 1
        };
        let answer = self.cache.clone().oneshot(action.to_call(id)).await;
        (id, answer.unwrap())
    }

    /// Makes a call, and checks its answer.
    async fn ask(&self, action: Action) -> ToolOutput {
        let began = self.world.lock().now();
        let (id, output) = self.call(action).await;
        let world = self.world.lock();
        let sound = match action {
            Action::Read => {
                let value = output.to_text().parse();
                value.is_ok_and(|value| world.held_since(began, value))
            }
            Action::Set(value) => world.ran.contains(&id) || world.held_since(began, value),
            Action::Bump => world.ran.contains(&id),
        };
        assert!(sound, "call {id} from {began}: {output:?} of {world:?}");
        output
    }

    /// Runs the writes of clients that left.
    fn land_late_writes(&self) -> JoinHandle<()> {
        let world = self.world.clone();
        spawn(async move {
            for _ in 0..4 {
                yield_now().await;
                let write = world.lock().late.pop();
                if let Some(id) = write {
                    world.lock().run(id);
                }
            }
        })
    }
}

fn clients(setting: &Setting) {
    let clients: Vec<_> = (0..3)
        .map(|_| setting.client((0..2).map(|_| Action::any()).collect()))
        .collect();
    let late = setting.land_late_writes();
    if thread_rng().gen_bool(0.3) {
        clients[0].abort();
    }
    for client in clients {
        // one of them may have left
        let _left = block_on(client);
    }
    block_on(late).unwrap();
    // a read after all of them sees the last value
    block_on(setting.ask(Action::Read));
}

/// A change past the cache is seen after a purge.
fn purges() {
    let setting = Setting::new();
    // maps of tools and sets have locks that the scheduler does not know: no call writes to them
    // from here on
    block_on(setting.ask(Action::Read));
    let old = setting.clone();
    // it need not see a change past the cache
    let reader = spawn(async move {
        for _ in 0..2 {
            old.call(Action::Read).await;
        }
    });
    let world = setting.world.clone();
    let handle = setting.handle.clone();
    let changer = spawn(async move {
        world.lock().held.push(7);
        handle.purge_all();
    });
    block_on(changer).unwrap();
    assert_eq!(block_on(setting.ask(Action::Read)).to_text(), "7");
    block_on(reader).unwrap();
    assert_eq!(block_on(setting.ask(Action::Read)).to_text(), "7");
}

/// Identical reads at the same time run once, and those that come later find what was stored.
fn identical_reads() {
    let setting = Setting::new();
    let clients: Vec<_> = (0..4).map(|_| setting.client(vec![Action::Read])).collect();
    for client in clients {
        block_on(client).unwrap();
    }
    let stats = setting.handle.stats();
    let found = (stats.misses, stats.hits + stats.joined);
    assert_eq!(found, (1, 3), "{stats:?}");
}

#[test]
fn no_read_is_stale_in_random_orders() {
    shuttle::check_random(|| clients(&Setting::new()), ORDERS);
    shuttle::check_random(|| clients(&Setting::in_parts()), ORDERS / 2);
}

#[test]
fn no_read_is_stale_in_orders_with_few_changes() {
    shuttle::check_pct(|| clients(&Setting::new()), ORDERS, 3);
    shuttle::check_pct(|| clients(&Setting::in_parts()), ORDERS / 2, 3);
}

#[test]
fn a_purge_is_seen_in_random_orders() {
    shuttle::check_random(purges, ORDERS);
}

#[test]
fn identical_reads_run_once_in_random_orders() {
    shuttle::check_random(identical_reads, ORDERS);
}
