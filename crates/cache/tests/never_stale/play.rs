//! Plays one script.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use callward_cache::{Cache, CacheHandle};
use callward_core::{
    CacheRule, Caller, Delivery, ErrorKind, Principal, ToolCall, ToolError, ToolOutput,
};
use callward_testkit::{MockService, call};
use parking_lot::Mutex;
use proptest::prelude::*;
use proptest::sample::Index;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::script::{Action, Ask, Ending, Purge, Script, Setting, Step};
use crate::world::{World, failure};

/// What a call came to.
type Answer = Result<ToolOutput, ToolError>;

/// A call on its way, and what was so when it began.
struct Client {
    id: usize,
    began: (usize, Instant),
    idle: bool,
    deadline: Option<Instant>,
    running: JoinHandle<Answer>,
}

/// One script on its way.
pub(crate) struct Play {
    setting: Setting,
    world: Arc<Mutex<World>>,
    cache: Cache<MockService>,
    handle: CacheHandle,
    clients: Vec<Client>,
    /// Calls of which the cache decided nothing: their clients left first.
    undecided: usize,
    answered: usize,
    /// What happened, to be read by people.
    log: String,
}

impl Play {
    pub(crate) fn new(setting: Setting) -> Self {
        let world = Arc::new(Mutex::new(World::new(setting)));
        let inside = world.clone();
        let server = MockService::new(move |call, _| {
            let id = call.id.as_deref().and_then(|id| id.parse().ok());
            let answer = inside.lock().arrive(id.unwrap());
            async move {
                answer
                    .await
                    .unwrap_or_else(|_| Err(failure(Delivery::Unknown)))
            }
        });
        let layer = setting.layer();
        Self {
            setting,
            world,
            handle: layer.handle(),
            cache: layer.layer(server),
            clients: Vec::new(),
            undecided: 0,
            answered: 0,
            log: format!("{setting:?}\n"),
        }
    }

    pub(crate) async fn play(mut self, script: Script) -> Result<(), TestCaseError> {
        for step in script.steps {
            self.step(step).await?;
        }
        self.finish().await
    }

    async fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        self.world.lock().step += 1;
        match step {
            Step::Start(ask) => self.start(ask),
            Step::Apply(which) => self.with_inside(which, "lands, not answered", World::apply),
            Step::Answer(which, ending) => self.answer(which, ending),
            Step::Land(which) => {
                let mut world = self.world.lock();
                if !world.ghosts.is_empty() {
                    let lands = which.index(world.ghosts.len());
                    let id = world.land(lands, Instant::now());
                    drop(world);
                    self.say(format_args!("call {id} lands late"));
                }
            }
            Step::Leave(which) => self.leave(which).await,
            Step::Advance(secs) => {
                self.say(format_args!("{secs} s pass"));
                self.advance(Duration::from_secs(secs)).await;
            }
            // a lifetime begins with the answer: what is still on its way outlasts any lapse
            Step::Drift(_, Purge::Lapse) if self.waits_for(Action::Rate) => {}
            Step::Drift(who, by) => {
                self.world.lock().drift(who);
                self.say(format_args!(
                    "the rate of p{who} changes, and a purge: {by:?}"
                ));
                self.purge(who, by).await;
            }
            Step::Purge(by) => {
                self.say(format_args!("a purge: {by:?}"));
                self.purge(0, by).await;
            }
        }
        self.let_run().await
    }

    fn waits_for(&self, action: Action) -> bool {
        let world = self.world.lock();
        let mut waiting = self.clients.iter();
        waiting.any(|client| world.asks[client.id].action == action)
    }

    async fn advance(&self, by: Duration) {
        self.world.lock().land_until(Instant::now() + by);
        tokio::time::advance(by).await;
    }

    fn start(&mut self, ask: Ask) {
        let (id, began, idle) = {
            let mut world = self.world.lock();
            let began = (world.step, Instant::now());
            (world.note(ask), began, world.is_idle(ask.action))
        };
        self.say(format_args!("call {id}: {ask:?}"));
        let caller = Caller::new(Principal::new(format!("p{}", ask.who)));
        let mut call: ToolCall =
            call(ask.action.tool(), ask.action.arguments(ask.form)).with_caller(Arc::new(caller));
        let deadline = ask
            .patience
            .map(|secs| Instant::now() + Duration::from_secs(secs));
        call.context_mut().id = Some(id.to_string().into());
        call.context_mut().deadline = deadline.map(Instant::into_std);
        self.clients.push(Client {
            id,
            began,
            idle,
            deadline,
            running: tokio::spawn(self.cache.clone().oneshot(call)),
        });
    }

    fn answer(&mut self, which: Index, ending: Ending) {
        let what = match ending {
            Ending::Well => "is answered".into(),
            Ending::ToolFailed => "is answered with an error".into(),
            Ending::Failed(delivery) => format!("fails, {delivery:?}"),
        };
        self.with_inside(which, &what, |world, which| world.answer(which, ending));
    }

    fn with_inside(&mut self, which: Index, what: &str, act: impl FnOnce(&mut World, usize)) {
        let mut world = self.world.lock();
        if world.inside.is_empty() {
            return;
        }
        let which = which.index(world.inside.len());
        let id = world.inside[which].id;
        act(&mut world, which);
        drop(world);
        self.say(format_args!("call {id} {what}"));
    }

    async fn leave(&mut self, which: Index) {
        if self.clients.is_empty() {
            return;
        }
        let gone = self.clients.remove(which.index(self.clients.len()));
        gone.running.abort();
        let _aborted = gone.running.await;
        self.say(format_args!("the client of call {} leaves", gone.id));
        self.undecided += usize::from(self.world.lock().arrived[gone.id] == 0);
    }

    async fn purge(&self, who: usize, by: Purge) {
        let rate = Action::Rate.tool();
        match by {
            Purge::All => self.handle.purge_all(),
            Purge::Set => self.handle.purge_set(rate.set()),
            Purge::Tool => self.handle.purge_tool(rate.set(), rate.name()),
            Purge::Tag => self.handle.purge_tag("rates"),
            Purge::Scope => {
                let said = self.setting.says(Action::Rate);
                self.handle.purge_tag(if said { "fx" } else { "rates" });
            }
            Purge::Principal => {
                let principal = Principal::new(format!("p{who}"));
                self.handle.purge_principal(&principal);
            }
            Purge::Lapse => {
                if let CacheRule::Store { ttl, .. } = rate.plan().cache {
                    self.advance(ttl).await;
                }
            }
        }
    }

    async fn let_run(&mut self) -> Result<(), TestCaseError> {
        // lets all tasks run as far as they can
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        self.world.lock().sweep();
        self.check_ended().await
    }

    async fn check_ended(&mut self) -> Result<(), TestCaseError> {
        let (ended, running) = std::mem::take(&mut self.clients)
            .into_iter()
            .partition::<Vec<_>, _>(|client| client.running.is_finished());
        self.clients = running;
        for client in &self.clients {
            // what was sent is the server's to answer
            let held = self.world.lock().arrived[client.id] == 0
                && client.deadline.is_some_and(|end| end <= Instant::now());
            let id = client.id;
            self.check(!held, format_args!("call {id} waits beyond its deadline"))?;
        }
        for client in ended {
            let id = client.id;
            let answer = client.running.await.unwrap();
            let arrived = self.world.lock().arrived[id];
            self.check(
                arrived <= 1,
                format_args!("call {id} was sent {arrived} times"),
            )?;
            match answer {
                Ok(output) => {
                    self.answered += usize::from(arrived == 0);
                    if output.is_error() {
                        let own = arrived == 1;
                        self.check(own, format_args!("call {id} gets another's error"))?;
                    } else {
                        let text = output.to_text();
                        self.say(format_args!("    call {id} answers {text}"));
                        let (sound, what) =
                            self.world
                                .lock()
                                .judge(id, client.began, client.idle, &output);
                        self.check(sound, format_args!("call {id} {what}: {text}"))?;
                    }
                }
                Err(error) if arrived == 0 => {
                    let late = error.kind() == ErrorKind::DeadlineExceeded;
                    self.check(
                        late,
                        format_args!("call {id} failed before it was sent: {error}"),
                    )?;
                    self.undecided += 1;
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Answers all calls in flight; then no call may be waiting, and the counts add up.
    async fn finish(&mut self) -> Result<(), TestCaseError> {
        while !self.world.lock().inside.is_empty() {
            self.world.lock().step += 1;
            self.world.lock().answer(0, Ending::Well);
            self.let_run().await?;
        }
        let waiting: Vec<usize> = self.clients.iter().map(|client| client.id).collect();
        self.check(
            waiting.is_empty(),
            format_args!("{waiting:?} are left waiting"),
        )?;
        let stats = self.handle.stats();
        let (all, sent) = {
            let world = self.world.lock();
            (world.asks.len(), world.arrived.iter().sum::<usize>())
        };
        let counted_sent = stats.misses + stats.invalidations + stats.bypassed;
        let counted = stats.hits + stats.stale + stats.joined;
        let adds_up = counted_sent == sent as u64
            && counted == self.answered as u64
            && sent + self.answered + self.undecided == all;
        let why = format_args!(
            "{all} calls, {sent} sent, {} answered without, {} undecided: {stats:?}",
            self.answered, self.undecided
        );
        self.check(adds_up, why)
    }

    fn say(&mut self, what: std::fmt::Arguments<'_>) {
        let step = self.world.lock().step;
        let _never_fails = writeln!(self.log, "{step:>3}  {what}");
    }

    fn check(&self, holds: bool, why: std::fmt::Arguments<'_>) -> Result<(), TestCaseError> {
        if holds {
            return Ok(());
        }
        Err(TestCaseError::fail(format!("{why}\n{}", self.log)))
    }
}
