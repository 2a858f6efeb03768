//! Calls by the thousand while servers are added, removed, drained and reweighed at random: each is
//! answered once or fails with a reason, and none goes where it must not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use callward::core::{BoxFuture, Weight};
use callward::limit::ConcurrencyLimitLayer;
use callward::{
    Delivery, Drained, Draining, ErrorKind, Server, ServerId, Stack, ToolCall, ToolDefinition,
    ToolError, ToolOutput, ToolServer,
};
use fastrand::Rng;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use crate::bed::paused;

/// What passes while something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Seconds of a paused clock: 3 to 6 of them for a call.
    Seconds,
    /// Turns of other tasks, on several threads.
    Turns,
}

/// What all servers of a round write into.
struct World {
    pace: Pace,
    /// Counts whatever happens, so that it can be said what came first.
    clock: AtomicU64,
    /// When each call began, and how often it was executed.
    calls: Mutex<Vec<(u64, u32)>>,
    faults: Mutex<Vec<String>>,
}

/// One server, from its coming to its going.
struct Site {
    id: ServerId,
    world: Arc<World>,
    /// Times in which some calls must not begin here: from the return of what forbade them to the
    /// call of what allows them again.
    spans: Mutex<Vec<(What, u64, Option<u64>)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Removed,
    Drained,
    TooLight,
}

const TOOLS: [&str; 3] = ["get", "add", "wipe"];

impl World {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    async fn pass(&self, rng: &mut Rng) {
        match self.pace {
            Pace::Seconds => sleep(Duration::from_millis(rng.u64(3_000..6_000))).await,
            Pace::Turns => {
                for _ in 0..rng.u32(0..40) {
                    yield_now().await;
                }
            }
        }
    }
}

impl Site {
    /// From now on, such calls must not begin here.
    fn forbid(&self, what: What) {
        let from = self.world.tick();
        let mut spans = self.spans.lock();
        if !spans.iter().any(|(of, _, to)| *of == what && to.is_none()) {
            spans.push((what, from, None));
        }
    }

    /// From now on, they may again.
    fn allow(&self, what: What) {
        let now = self.world.tick();
        for (of, _, to) in self.spans.lock().iter_mut() {
            if *of == what && to.is_none() {
                *to = Some(now);
            }
        }
    }

    /// Notes what must not be: the whole time in which the call can have been sent here is within
    /// a time in which it must not.
    fn judge(&self, tool: &str, number: usize) {
        let now = self.world.tick();
        // on one thread, a call is where it was sent to in the same moment
        let sent = match self.world.pace {
            Pace::Seconds => now,
            Pace::Turns => self.world.calls.lock()[number].0,
        };
        for (what, from, to) in self.spans.lock().iter() {
            let holds = *from < sent && to.is_none_or(|to| now < to);
            if holds && (tool == "wipe" || *what != What::TooLight) {
                let fault = format!("call {number} ({tool}) began at {}: {what:?}", self.id);
                self.world.faults.lock().push(fault);
            }
        }
    }
}

impl ToolServer for Site {
    fn id(&self) -> &ServerId {
        &self.id
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        let tools = TOOLS.map(|name| {
            let hints = json!({"readOnlyHint": name == "get", "destructiveHint": name == "wipe",
                "rateLimitHint": 1e9});
            let listed = json!({"name": name, "annotations": hints});
            ToolDefinition::from_json(listed.to_string()).unwrap()
        });
        Box::pin(std::future::ready(Ok(tools.into())))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let arguments: serde_json::Value = serde_json::from_slice(call.arguments()).unwrap();
        let number = usize::try_from(arguments["call"].as_u64().unwrap()).unwrap();
        self.judge(call.tool().name().as_str(), number);
        let world = self.world.clone();
        let attempt = u64::from(call.attempt().number);
        let mut rng = Rng::with_seed(number as u64 * 31 + attempt);
        Box::pin(async move {
            let fail = |kind, delivery| Err(ToolError::new(kind, delivery, "scripted"));
            let fate = rng.u32(0..100);
            if fate < 3 {
                return fail(ErrorKind::Overloaded, Delivery::NotSent);
            }
            world.pass(&mut rng).await;
            world.calls.lock()[number].1 += 1;
            match fate {
                3..5 => fail(ErrorKind::ConnectionLost, Delivery::Unknown),
                _ => Ok(ToolOutput::text(number.to_string())),
            }
        })
    }
}

/// The servers of a stack, changed at random.
struct Changes {
    stack: Stack,
    world: Arc<World>,
    rng: Rng,
    sites: BTreeMap<ServerId, Arc<Site>>,
    gone: Vec<(Weak<Site>, Draining)>,
    made: usize,
}

impl Changes {
    async fn one(&mut self) {
        let ids: Vec<ServerId> = self.sites.keys().cloned().collect();
        let Some(id) = self.rng.choice(&ids) else {
            return self.add().await;
        };
        let site = self.sites[id].clone();
        match self.rng.u32(0..10) {
            0 | 1 if ids.len() < 12 => self.add().await,
            0..3 => self.remove(id),
            3 | 4 => {
                drop(self.stack.drain(id).unwrap());
                site.forbid(What::Drained);
            }
            5 | 6 => {
                site.allow(What::Drained);
                self.stack.undrain(id).unwrap();
            }
            _ => {
                let weight = Weight::new(self.rng.u32(0..=100)).unwrap();
                site.allow(What::TooLight);
                self.stack.reweigh(id, weight).unwrap();
                if weight < Weight::PRIMARY {
                    site.forbid(What::TooLight);
                }
            }
        }
    }

    async fn add(&mut self) {
        // now and then under a name that was there before
        self.made += 1;
        let id = ServerId::new(format!("s{}", self.made % 16)).unwrap();
        if self.sites.contains_key(&id) {
            return;
        }
        let site = Arc::new(Site {
            id: id.clone(),
            world: self.world.clone(),
            spans: Mutex::default(),
        });
        let weight = self.rng.u32(0..=100);
        if weight < 50 {
            site.forbid(What::TooLight);
        }
        let server = Server::shared(site.clone())
            .in_set("set".parse().unwrap())
            .weight(weight)
            // a call that waits for a permit was sent there before
            .concurrency(ConcurrencyLimitLayer::new(1_000_000));
        self.stack.add_server(server).await.unwrap();
        self.sites.insert(id, site);
    }

    fn remove(&mut self, id: &ServerId) {
        let leaving = self.stack.remove_server(id).unwrap();
        let site = self.sites.remove(id).unwrap();
        site.forbid(What::Removed);
        self.gone.push((Arc::downgrade(&site), leaving));
    }
}

/// Plays a round; returns how many calls were answered and how many were refused for want of a
/// server.
async fn round(pace: Pace, seed: u64, at_once: usize, later: usize) -> (usize, usize) {
    let world = Arc::new(World {
        pace,
        clock: AtomicU64::new(0),
        calls: Mutex::new(vec![(0, 0); at_once + later]),
        faults: Mutex::default(),
    });
    let mut changes = Changes {
        stack: Stack::builder().build().await.unwrap(),
        world: world.clone(),
        rng: Rng::with_seed(seed),
        sites: BTreeMap::new(),
        gone: Vec::new(),
        made: 0,
    };
    for _ in 0..6 {
        changes.add().await;
    }
    let mut calls = JoinSet::new();
    for number in 0..at_once + later {
        if number >= at_once {
            match pace {
                Pace::Seconds => sleep(Duration::from_micros(800)).await,
                Pace::Turns => yield_now().await,
            }
            if number == at_once && pace == Pace::Seconds {
                let servers = changes.stack.servers();
                let running: usize = servers.iter().map(|server| server.in_flight).sum();
                assert!(running >= at_once * 9 / 10, "only {running} at once");
            }
            if number % 4 == 0 {
                changes.one().await;
            }
        }
        let (stack, world) = (changes.stack.clone(), world.clone());
        calls.spawn(async move {
            world.calls.lock()[number].0 = world.tick();
            let name = format!("set.{}", TOOLS[number % TOOLS.len()]);
            (number, stack.call(&name, json!({"call": number})).await)
        });
    }
    let reported = calls.join_all().await;
    assert_eq!(world.faults.lock().as_slice(), [] as [String; 0]);
    assert_eq!(reported.len(), at_once + later);
    let (mut answered, mut without_server) = (0, 0);
    for (number, result) in reported {
        let (_, executions) = world.calls.lock()[number];
        match judge(number, &result, executions) {
            true => without_server += 1,
            false => answered += usize::from(result.is_ok()),
        }
    }
    leave_nothing(changes).await;
    (answered, without_server)
}

/// Compares what a caller got with how often the call was executed; returns `true` if there was no
/// server for it.
fn judge(number: usize, result: &Result<ToolOutput, ToolError>, executions: u32) -> bool {
    let tool = TOOLS[number % TOOLS.len()];
    let about = format!("{tool} {number}, executed {executions} times: {result:?}");
    assert!(tool == "get" || executions <= 1, "{about}");
    let error = match result {
        Ok(output) => {
            assert_eq!(output.to_text(), number.to_string());
            assert!(executions >= 1, "{about}");
            return false;
        }
        Err(error) => error,
    };
    assert!(!error.message.is_empty(), "{about}");
    let is_unsent = error.delivery == Delivery::NotSent;
    assert!(!is_unsent || executions == 0, "{about}");
    match error.kind {
        ErrorKind::NoEligibleServer | ErrorKind::UnknownTool => true,
        ErrorKind::Overloaded
        | ErrorKind::BreakerOpen
        | ErrorKind::ConnectionLost
        | ErrorKind::OutcomeUnknown => false,
        _ => panic!("{about}"),
    }
}

/// Removed servers are dropped, and nothing is in flight.
#[expect(
    clippy::disallowed_methods,
    reason = "a bound for threads, which no test clock stops"
)]
async fn leave_nothing(mut changes: Changes) {
    for server in changes.stack.servers() {
        assert_eq!(server.in_flight, 0, "{server:?}");
    }
    while let Some(id) = changes.sites.keys().next().cloned() {
        changes.remove(&id);
    }
    for (_, leaving) in &changes.gone {
        assert_eq!(leaving.finished().await, Drained::Idle);
    }
    // what follows a server ends when it gets its turn, on a loaded machine late; the bound is for
    // a mistake
    let begun = std::time::Instant::now();
    let is_held = |(site, _): &(Weak<Site>, _)| site.strong_count() > 0;
    while changes.gone.iter().any(is_held) {
        let is_soon = begun.elapsed() < Duration::from_secs(60);
        assert!(is_soon, "a removed server is still held");
        yield_now().await;
    }
    let stack = &changes.stack;
    assert!(stack.servers().is_empty() && stack.catalogue().entries().is_empty());
    assert!(stack.breakers().is_empty() && stack.retry_budgets().is_empty());
    assert!(stack.limits().servers.is_empty() && stack.limits().rates.is_empty());
    assert!(stack.cache().tools().is_empty());
}

#[test]
fn ten_thousand_calls_in_flight_each_end_once() {
    for seed in 1..=4 {
        let round = round(Pace::Seconds, seed, 10_000, 4_000);
        let (answered, without_server) = paused().block_on(round);
        assert!(answered >= 10_000, "seed {seed}: {answered}");
        assert!(without_server > 0, "seed {seed}: no call was ever refused");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_holds_where_calls_and_changes_run_on_several_threads() {
    for seed in 1..=4 {
        let (answered, _) = round(Pace::Turns, seed, 500, 3_000).await;
        assert!(answered >= 1_000, "seed {seed}: {answered}");
    }
}
