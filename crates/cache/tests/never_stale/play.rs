//! Plays one script.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::{Cache, CacheHandle};
use callward_core::{CacheRule, Delivery, Principal};
use callward_testkit::MockService;
use parking_lot::Mutex;
use proptest::sample::Index;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::judge::Rule;
use crate::script::{Action, Ask, CLIENTS, Ending, RATES, Script, Step, Tools};
use crate::world::{World, failure};

/// Plays a script on a paused clock. Returns what happened.
pub(crate) fn play(script: &Script, tools: &Arc<Tools>) -> World {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut play = Play::new(script, tools);
        for step in &script.steps {
            play.step(step).await;
        }
        play.finish().await
    })
}

/// A call on its way.
struct Client {
    id: usize,
    deadline: Option<Instant>,
    running: JoinHandle<()>,
}

struct Play {
    world: Arc<Mutex<World>>,
    tools: Arc<Tools>,
    cache: Cache<MockService>,
    handle: CacheHandle,
    scope_of_rates: &'static str,
    clients: Vec<Client>,
}

impl Play {
    fn new(script: &Script, tools: &Arc<Tools>) -> Self {
        let world = Arc::new(Mutex::new(World::new(tools.clone(), script.setting)));
        let inside = world.clone();
        let server = MockService::new(move |call, _| {
            let id = call.id.as_deref().and_then(|id| id.parse().ok()).unwrap();
            let answer = inside.lock().arrive(id);
            async move {
                let answer = answer.await;
                answer.unwrap_or_else(|_| Err(failure(Delivery::Unknown)))
            }
        });
        let layer = tools.layer(script.setting);
        Self {
            world,
            tools: tools.clone(),
            handle: layer.handle(),
            cache: layer.layer(server),
            scope_of_rates: script.setting.scope_of_rates(),
            clients: Vec::new(),
        }
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Start(ask) => self.start(*ask),
            Step::Apply(which) => self.with_inside(*which, World::apply),
            Step::Answer(which, ending) => {
                self.with_inside(*which, |world, which| world.answer(which, *ending));
            }
            Step::Land(which) => {
                let mut world = self.world.lock();
                if world.ghosts() > 0 {
                    let which = which.index(world.ghosts());
                    world.land(which, Instant::now());
                }
            }
            Step::Leave(which) => self.leave(*which).await,
            Step::Pass(millis) => self.pass(Duration::from_millis(*millis)).await,
            // a lifetime begins with the answer: what is still on its way outlasts any lapse
            Step::Drift(_, Some("lapse")) if self.waits_for_a_rate() => {}
            Step::Drift(cell, by) => {
                self.world.lock().drift(*cell, by.is_some());
                if let Some(by) = by {
                    self.purge(cell - RATES, by).await;
                }
            }
            Step::Purge(by) => self.purge(0, by).await,
        }
        self.let_run().await;
    }

    fn waits_for_a_rate(&self) -> bool {
        let world = self.world.lock();
        let mut waiting = self.clients.iter();
        waiting.any(|client| world.calls[client.id].ask.action == Action::Rate)
    }

    /// Lets time pass; the clock stops at each timer on the way.
    async fn pass(&self, time: Duration) {
        self.world.lock().land_until(Instant::now() + time);
        tokio::time::sleep(time).await;
    }

    fn start(&mut self, ask: Ask) {
        let (world, cache) = (self.world.clone(), self.cache.clone());
        let id = world.lock().make(ask);
        let call = ask.call(id, &self.tools);
        let running = tokio::spawn(async move {
            let answer = cache.oneshot(call).await;
            world.lock().receive(id, answer);
        });
        self.clients.push(Client {
            id,
            deadline: ask.deadline(),
            running,
        });
    }

    fn with_inside(&self, which: Index, act: impl FnOnce(&mut World, usize)) {
        let mut world = self.world.lock();
        if world.inside() > 0 {
            let which = which.index(world.inside());
            act(&mut world, which);
        }
    }

    async fn leave(&mut self, which: Index) {
        if !self.clients.is_empty() {
            let gone = self.clients.remove(which.index(self.clients.len()));
            self.world
                .lock()
                .event(&format!("the client of call {} leaves", gone.id));
            gone.running.abort();
            let _aborted = gone.running.await;
        }
    }

    async fn purge(&self, client: usize, by: &str) {
        self.world.lock().event(&format!("a purge: {by}"));
        let rate = self.tools.rate();
        match by {
            "all" => self.handle.purge_all(),
            "set" => self.handle.purge_set(rate.set()),
            "tool" => self.handle.purge_tool(rate.set(), rate.name()),
            "tag" => self.handle.purge_tag("rates"),
            "scope" => self.handle.purge_tag(self.scope_of_rates),
            "principal" => {
                let principal = Principal::new(CLIENTS[client].0);
                self.handle.purge_principal(&principal);
            }
            _lapse => {
                if let CacheRule::Store { ttl, .. } = rate.plan().cache {
                    self.pass(ttl).await;
                }
            }
        }
    }

    /// Lets all tasks run as far as they can.
    async fn let_run(&mut self) {
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        let mut world = self.world.lock();
        world.sweep();
        self.clients.retain(|client| !client.running.is_finished());
        for Client { id, deadline, .. } in &self.clients {
            // what was sent is the server's to answer
            let is_over = deadline.is_some_and(|end| end <= Instant::now());
            if is_over && !world.has_arrived(*id) {
                world.violate(
                    Rule::Unanswered,
                    format!("call {id} waits beyond its deadline"),
                );
            }
        }
    }

    /// Answers all calls in flight; then no call may be waiting, and the counts add up.
    async fn finish(mut self) -> World {
        while self.world.lock().inside() > 0 {
            self.world.lock().answer(0, Ending::Well);
            self.let_run().await;
        }
        let stats = self.handle.stats();
        let mut world = self.world.lock();
        for Client { id, .. } in &self.clients {
            world.violate(Rule::Unanswered, format!("call {id} is left waiting"));
        }
        let sent = stats.misses + stats.invalidations + stats.bypassed;
        if (sent, stats.hits + stats.stale + stats.joined) != world.counts() {
            let why = format!("(sent, answered) are {:?}: {stats:?}", world.counts());
            world.violate(Rule::Counted, why);
        }
        let (tools, setting) = (world.tools.clone(), world.setting);
        std::mem::replace(&mut world, World::new(tools, setting))
    }
}
