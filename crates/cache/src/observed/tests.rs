//! What is concluded from executions in a world with others who write.

use std::time::Duration;

use callward_core::{Field, Tool, ToolError, ToolOutput};
use fastrand::Rng;
use tokio::time::{Instant, advance};

use super::*;

/// Reads of one set, and what each answered last.
struct World {
    observer: Arc<SetObserver>,
    observers: Observers,
    tools: Vec<Arc<Tool>>,
    state: u64,
    last: HashMap<u128, (Instant, u64, Option<u64>)>,
}

impl World {
    fn new(tools: &[&str]) -> Self {
        let observers = Observers::default();
        let tools = tools.iter().map(|name| Tool::read_only(name).unwrap());
        Self {
            observer: observers.of(&ReplicaSetId::new("local").unwrap()),
            observers,
            tools: tools.collect(),
            state: 0,
            last: HashMap::new(),
        }
    }

    /// Executes a read with one of four arguments; with `writes` it changes the state.
    fn read(&mut self, tool: usize, argument: u128, writes: bool, clock: bool) {
        let running = self.observer.begin(&self.tools[tool], true);
        self.state += u64::from(writes);
        let (now, place) = (Instant::now(), running.end());
        let call = tool as u128 * 4 + argument;
        let answer = match clock {
            true => self.state ^ (self.last.len() as u64) << 32 ^ fastrand::u64(..),
            false => self.state,
        };
        let number = place.as_ref().map(|at| at.number);
        let last = self.last.insert(call, (now, answer, number));
        if let (Some((then, before, Some(number))), Some(at)) = (last, place) {
            let changed = before != answer;
            self.observer.repeat(call, now - then, changed, number, &at);
        }
    }

    fn observed(&self) -> Vec<String> {
        let all = self.observers.all().into_iter();
        all.map(|seen| format!("{} {}", seen.tool, seen.observation.field))
            .collect()
    }
}

/// Runs 10,000 calls of four tools, of which the first is a clock. Others write at random with this
/// mean time in between, in bursts if so; the tool of this number writes.
async fn run(seed: u64, others: Option<(f64, bool)>, writer: Option<usize>) -> World {
    let mut world = World::new(&["clock", "get_a", "get_b", "list"]);
    let mut rng = Rng::with_seed(seed);
    let mut busy = true;
    for call in 0..10_000 {
        let seconds = -(1.0 - rng.f64()).ln() * 3.0;
        advance(Duration::from_secs_f64(seconds)).await;
        if let Some((mean, in_bursts)) = others {
            busy = busy != (in_bursts && call % 200 == 0);
            let written = rng.f64() < 1.0 - (-seconds / mean).exp();
            world.state += u64::from(written && busy);
        }
        // sessions that repeat a call more often than not
        let tool = if rng.bool() {
            call / 7 % 4
        } else {
            rng.usize(..4)
        };
        let argument = u128::from(rng.bool());
        world.read(tool, argument, writer == Some(tool), tool == 0);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn honest_tools_are_never_blamed_for_a_clock_or_others_who_write() {
    for (seed, others) in [
        (1, None),
        (2, Some((1.0, false))),
        (3, Some((10.0, false))),
        (4, Some((10.0, true))),
        (5, Some((100.0, true))),
    ] {
        let world = run(seed, others, None).await;
        assert_eq!(world.observed(), [""; 0], "{seed}");
        let is_compared = others.is_some() != world.observers.saved().is_empty();
        assert!(
            is_compared,
            "{seed}: pairs with others who write, and none without"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_read_that_writes_is_blamed_and_no_other_one() {
    for (seed, others) in [
        (1, None),
        (2, Some((100.0, false))),
        (3, Some((30.0, true))),
    ] {
        let world = run(seed, others, Some(2)).await;
        assert_eq!(world.observed(), ["get_b readOnlyHint"], "{seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_ran_at_the_same_time_or_together_says_nothing() {
    let mut world = World::new(&["get_a", "peek", "other"]);
    for round in 0..1_000 {
        advance(Duration::from_secs(1 + round % 3)).await;
        world.read(0, u128::from(round % 5), false, false);
        if round % 2 == 0 {
            world.read(1, 0, true, false);
            world.read(2, 0, false, false);
        }
        world.read(0, u128::from(round % 5), false, false);
        let held = world.observer.begin(&world.tools[1], true);
        world.read(0, u128::from(round % 5), true, false);
        drop(held);
    }
    assert_eq!(world.observed(), [""; 0]);
}

#[test]
fn a_repeated_write_that_fails_twice_is_not_idempotent() {
    let observers = Observers::default();
    let set = observers.of(&ReplicaSetId::new("local").unwrap());
    let tool = Tool::idempotent("create_user").unwrap();
    let write = |call, result: Result<ToolOutput, ToolError>| set.wrote(&tool, call, &result);
    let ok = || Ok(ToolOutput::text("made"));
    let exists = || Ok(ToolOutput::error_text("user already exists"));
    // the first was not seen to succeed, or it fails for another reason
    write(1, exists());
    write(2, ok());
    write(2, Ok(ToolOutput::error_text("no such group")));
    write(2, exists());
    write(2, exists());
    write(3, ok());
    assert_eq!(observers.all(), []);
    write(3, exists());
    let seen = observers.all();
    assert_eq!(seen[0].observation.field, Field::Idempotent);
    assert_eq!((seen.len(), seen[0].definition), (1, tool.digest()));
}

#[test]
fn another_definition_starts_again_and_a_restart_does_not() {
    let observers = Observers::default();
    let mut conduct = Conduct::of(7);
    for pair in 0..36 {
        conduct.add_pair(pair % 3, true);
    }
    let name = ToolName::new("peek").unwrap();
    let set = ReplicaSetId::new("local").unwrap();
    observers.restore(vec![(set.clone(), name.clone(), conduct)]);
    assert_eq!(observers.all().len(), 1);
    let text = serde_json::to_string(&observers.saved()).unwrap();
    let again = Observers::default();
    again.restore(serde_json::from_str(&text).unwrap());
    assert_eq!(again.all(), observers.all());
    again.of(&set).inner.lock().conduct(&name, 8).unwrap();
    assert_eq!(again.all(), []);
}
