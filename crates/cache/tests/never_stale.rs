//! A client behind the cache cannot tell it is there: random clients against a simulated server.
//!
//! Clients read, set (idempotent) and bump (mutating) two keys; the server takes each call's effect
//! and answers it when the script says so, in any order, fails some calls, loses the answers of
//! others and lets those land late; clients go away; time passes. Then:
//!
//! - every read answers a value the server held at some moment between the read's start and end;
//! - every write that was answered well ran, or repeats the very last write, which stands, with no
//!   other write in flight;
//! - nobody is left waiting.
//!
//! The test finds broken rules. Checked by breaking them one at a time; each of these fails within
//! the 1,024 cases: no epoch raised by writes; a write in flight not making the scope unquiet; no
//! settling after an unknown outcome; a dropped write taken for one whose outcome is known; an
//! idempotent write kept although another one overlapped; flights without the epoch in their key;
//! one key for two principals. It does not tell whether the epoch is raised twice or once, because
//! either raise suffices while nothing is looked up beside a write; the tests in `scope.rs` do.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tollgate_cache::{Cache, CacheLayer};
use tollgate_core::{
    Caller, Delivery, ErrorKind, Principal, ToolCall, ToolError, ToolOutput, TraceContext,
};
use tollgate_testkit::{MockService, call, tool};
use tower::{Layer, ServiceExt};

const KEYS: usize = 2;
/// The attempt timeout of a tool without hints, and so the settling time of its writes.
const SETTLING: Duration = Duration::from_secs(60);

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Read { key: usize },
    Set { key: usize, value: u64, who: u8 },
    Bump { key: usize },
}

impl Action {
    fn is_write(self) -> bool {
        !matches!(self, Self::Read { .. })
    }

    fn to_call(self) -> ToolCall {
        match self {
            Self::Read { key } => call(&tool("get").read_only().build(), json!({"key": key})),
            Self::Set { key, value, who } => {
                let caller = Caller::new(Principal::new(who.to_string()));
                let arguments = json!({"key": key, "value": value});
                call(&tool("set").idempotent().build(), arguments).with_caller(Arc::new(caller))
            }
            Self::Bump { key } => call(&tool("bump").build(), json!({"key": key})),
        }
    }
}

/// One line of the script.
#[derive(Debug, Clone)]
enum Step {
    Start(Action),
    /// A call inside the server takes its effect, and is not answered yet.
    Apply(Index),
    Answer(Index, Ending),
    /// A write whose answer was lost lands.
    Land(Index),
    /// A client goes away.
    Leave(Index),
    Advance(u64),
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Well,
    ToolFailed,
    Failed(Delivery),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS;
    let action = prop_oneof![
        5 => key.clone().prop_map(|key| Action::Read { key }),
        3 => (key.clone(), 0..2_u64, 0..5_u8)
            .prop_map(|(key, value, who)| Action::Set { key, value, who: who / 4 }),
        1 => key.prop_map(|key| Action::Bump { key }),
    ];
    let ending = prop_oneof![
        8 => Just(Ending::Well),
        1 => Just(Ending::ToolFailed),
        1 => Just(Ending::Failed(Delivery::Answered)),
        1 => Just(Ending::Failed(Delivery::NotSent)),
        2 => Just(Ending::Failed(Delivery::Unknown)),
    ];
    prop_oneof![
        8 => action.prop_map(Step::Start),
        2 => any::<Index>().prop_map(Step::Apply),
        8 => (any::<Index>(), ending).prop_map(|(which, how)| Step::Answer(which, how)),
        1 => any::<Index>().prop_map(Step::Land),
        1 => any::<Index>().prop_map(Step::Leave),
        1 => prop::sample::select(vec![1, 5, 59, 60, 300]).prop_map(Step::Advance),
    ]
}

/// The server, and everything that ever happened to it.
#[derive(Debug, Default)]
struct World {
    step: usize,
    actions: Vec<Action>,
    /// For each key, since which step it held which value.
    history: [Vec<(usize, u64)>; KEYS],
    bumps: u64,
    last_write: Option<Action>,
    ran: HashSet<usize>,
    inside: Vec<Inside>,
    ghosts: Vec<Ghost>,
}

/// A call that arrived and is not answered.
#[derive(Debug)]
struct Inside {
    id: usize,
    effect: Option<ToolOutput>,
    reply: oneshot::Sender<Result<ToolOutput, ToolError>>,
}

/// A write nobody waits for any more, and until when it may land.
#[derive(Debug)]
struct Ghost {
    id: usize,
    until: Instant,
}

impl World {
    fn value(&self, key: usize) -> u64 {
        self.history[key].last().map_or(0, |(_, value)| *value)
    }

    /// Lets a call take its effect; returns its answer.
    fn run(&mut self, id: usize) -> ToolOutput {
        let action = self.actions[id];
        let (key, value) = match action {
            Action::Read { key } => return ToolOutput::text(self.value(key).to_string()),
            Action::Set { key, value, .. } => (key, value),
            Action::Bump { key } => {
                self.bumps += 1;
                (key, 100 + self.bumps)
            }
        };
        self.ran.insert(id);
        self.history[key].push((self.step, value));
        self.last_write = Some(action);
        ToolOutput::text("done")
    }

    fn apply(&mut self, which: usize) {
        if self.inside[which].effect.is_none() {
            self.inside[which].effect = Some(self.run(self.inside[which].id));
        }
    }

    fn answer(&mut self, which: usize, ending: Ending) {
        if matches!(ending, Ending::Well) {
            self.apply(which);
        }
        let Inside { id, effect, reply } = self.inside.remove(which);
        let applied = effect.is_some();
        let answer = match (ending, effect) {
            (Ending::Well, Some(output)) => Ok(output),
            (Ending::Well | Ending::ToolFailed, _) => Ok(ToolOutput::error_text("no")),
            // what took effect was sent
            (Ending::Failed(Delivery::NotSent), Some(_)) => Err(failure(Delivery::Answered)),
            (Ending::Failed(delivery), _) => Err(failure(delivery)),
        };
        if !applied && matches!(&answer, Err(error) if error.delivery() == Delivery::Unknown) {
            self.haunt(id);
        }
        // the client may have left in the meantime
        let _answered = reply.send(answer);
    }

    fn haunt(&mut self, id: usize) {
        if self.actions[id].is_write() {
            let until = Instant::now() + SETTLING;
            self.ghosts.push(Ghost { id, until });
        }
    }

    /// Turns calls whose clients left into ghosts.
    fn sweep(&mut self) {
        let (left, inside) = std::mem::take(&mut self.inside)
            .into_iter()
            .partition::<Vec<_>, _>(|inside| inside.reply.is_closed());
        self.inside = inside;
        for gone in left {
            if gone.effect.is_none() {
                self.haunt(gone.id);
            }
        }
    }

    /// Lets what may land land at the last moment before `now`.
    fn land_until(&mut self, now: Instant) {
        while let Some(due) = self.ghosts.iter().position(|ghost| ghost.until <= now) {
            let id = self.ghosts.remove(due).id;
            self.run(id);
        }
    }

    /// Says whether a write would change nothing, and nothing else is on its way.
    fn stands(&self, action: Action) -> bool {
        let writing = |inside: &Inside| self.actions[inside.id].is_write();
        self.last_write == Some(action)
            && self.ghosts.is_empty()
            && !self.inside.iter().any(writing)
    }

    fn held(&self, key: usize, value: u64, from: usize, to: usize) -> bool {
        let all: Vec<(usize, u64)> = std::iter::once((0, 0))
            .chain(self.history[key].iter().copied())
            .collect();
        all.iter().enumerate().any(|(i, (since, held))| {
            let ended = all.get(i + 1).map_or(usize::MAX, |(next, _)| *next);
            *held == value && *since <= to && ended >= from
        })
    }
}

/// A call on its way, and what was so when it began.
struct Client {
    id: usize,
    began: usize,
    stood: bool,
    running: JoinHandle<Result<ToolOutput, ToolError>>,
}

/// Runs one script.
struct Play {
    world: Arc<Mutex<World>>,
    cache: Cache<MockService>,
    clients: Vec<Client>,
}

impl Play {
    fn new() -> Self {
        let world = Arc::new(Mutex::new(World::default()));
        let inside = world.clone();
        let mock = MockService::new(move |call, _| {
            let (reply, answer) = oneshot::channel();
            let id = call.trace().and_then(|trace| trace.parent.parse().ok());
            inside.lock().inside.push(Inside {
                id: id.unwrap_or(usize::MAX),
                effect: None,
                reply,
            });
            async move {
                answer
                    .await
                    .unwrap_or_else(|_| Err(failure(Delivery::Unknown)))
            }
        });
        Self {
            world,
            cache: CacheLayer::default().layer(mock),
            clients: Vec::new(),
        }
    }

    async fn play(&mut self, step: Step) -> Result<(), TestCaseError> {
        self.world.lock().step += 1;
        match step {
            Step::Start(action) => self.start(action),
            Step::Apply(which) => self.with_inside(which, World::apply),
            Step::Answer(which, ending) => {
                self.with_inside(which, |world, which| world.answer(which, ending));
            }
            Step::Land(which) => {
                let mut world = self.world.lock();
                if !world.ghosts.is_empty() {
                    let lands = which.index(world.ghosts.len());
                    let id = world.ghosts.remove(lands).id;
                    world.run(id);
                }
            }
            Step::Leave(which) => {
                if !self.clients.is_empty() {
                    let gone = self.clients.remove(which.index(self.clients.len()));
                    gone.running.abort();
                }
            }
            Step::Advance(secs) => {
                let by = Duration::from_secs(secs);
                self.world.lock().land_until(Instant::now() + by);
                tokio::time::advance(by).await;
            }
        }
        self.let_run().await
    }

    async fn let_run(&mut self) -> Result<(), TestCaseError> {
        // lets all tasks run as far as they can
        for _ in 0..32 {
            tokio::task::yield_now().await;
        }
        self.world.lock().sweep();
        self.check_ended().await
    }

    fn start(&mut self, action: Action) {
        let mut world = self.world.lock();
        let id = world.actions.len();
        world.actions.push(action);
        let trace = Arc::new(TraceContext::new(id.to_string(), None));
        let call = action.to_call().with_trace(trace);
        self.clients.push(Client {
            id,
            began: world.step,
            stood: world.stands(action),
            running: tokio::spawn(self.cache.clone().oneshot(call)),
        });
    }

    fn with_inside(&self, which: Index, act: impl FnOnce(&mut World, usize)) {
        let mut world = self.world.lock();
        if !world.inside.is_empty() {
            let which = which.index(world.inside.len());
            act(&mut world, which);
        }
    }

    async fn check_ended(&mut self) -> Result<(), TestCaseError> {
        let (ended, running) = std::mem::take(&mut self.clients)
            .into_iter()
            .partition::<Vec<_>, _>(|client| client.running.is_finished());
        self.clients = running;
        for client in ended {
            let output = match client.running.await {
                Ok(Ok(output)) if !output.is_error() => output,
                _ => continue,
            };
            let world = self.world.lock();
            let action = world.actions[client.id];
            if let Action::Read { key } = action {
                let value = output.to_text();
                let held = value
                    .parse()
                    .is_ok_and(|value| world.held(key, value, client.began, world.step));
                prop_assert!(held, "call {} read {value}: {world:?}", client.id);
            } else {
                let sound = world.ran.contains(&client.id) || client.stood;
                prop_assert!(sound, "write {} was skipped: {world:?}", client.id);
            }
        }
        Ok(())
    }

    /// Answers everything that is still there; then nobody may be waiting.
    async fn finish(&mut self) -> Result<(), TestCaseError> {
        while !self.world.lock().inside.is_empty() {
            self.world.lock().step += 1;
            self.world.lock().answer(0, Ending::Well);
            self.let_run().await?;
        }
        prop_assert!(self.clients.is_empty(), "somebody is left waiting");
        Ok(())
    }
}

fn failure(delivery: Delivery) -> ToolError {
    ToolError::new(ErrorKind::ServerFault, delivery, "as the script says")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_client_cannot_tell_the_cache_is_there(script in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut play = Play::new();
            for step in script {
                play.play(step).await?;
            }
            play.finish().await
        })?;
    }
}
