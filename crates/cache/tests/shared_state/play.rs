//! Plays one script.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::{Cache, Partition};
use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use callward_testkit::MockService;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt};

use crate::judge::Rule;
use crate::script::{Ask, Script, Setting, Step};
use crate::world::World;

/// Plays a script on a paused clock. Returns what happened.
pub(crate) fn play(script: &Script, setting: &Setting) -> World {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut play = Play::new(script, setting);
        for step in &script.steps {
            play.step(step).await;
        }
        play.finish().await
    })
}

struct Play<'a> {
    partition: Partition,
    world: Arc<Mutex<World>>,
    cache: Cache<MockService>,
    setting: &'a Setting,
    clients: Vec<(usize, JoinHandle<()>)>,
}

impl<'a> Play<'a> {
    fn new(script: &Script, setting: &'a Setting) -> Self {
        let world = Arc::new(Mutex::new(World::new(script.partition)));
        let inside = world.clone();
        let server = MockService::new(move |call, _| {
            let id = call.id.as_deref().and_then(|id| id.parse().ok()).unwrap();
            serve(inside.clone(), id)
        });
        Self {
            partition: script.partition,
            world,
            cache: setting.layer(script.partition).layer(server),
            setting,
            clients: Vec::new(),
        }
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Call(ask) => self.call(*ask),
            Step::Change { group, cell } => self.world.lock().change(*group, *cell),
            Step::Cancel(which) => {
                self.clients.retain(|(_, running)| !running.is_finished());
                if !self.clients.is_empty() {
                    let (id, running) = self.clients.remove(which.index(self.clients.len()));
                    self.world.lock().cancel(id);
                    running.abort();
                }
            }
            // the clock stops at each timer on the way
            Step::Pass(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
        }
        // lets all tasks run as far as they can
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
    }

    fn call(&mut self, ask: Ask) {
        let (world, cache) = (self.world.clone(), self.cache.clone());
        let id = world.lock().make(ask);
        let call = ask.call(id, &self.setting.tools);
        let running = tokio::spawn(async move {
            let answer = cache.oneshot(call).await;
            world.lock().answer(id, answer);
        });
        self.clients.push((id, running));
    }

    /// Waits until everything that runs has ended.
    async fn finish(self) -> World {
        tokio::time::sleep(Duration::from_secs(600)).await;
        let mut world = self.world.lock();
        for (id, running) in &self.clients {
            if !running.is_finished() {
                world.violate(Rule::Unanswered, *id, "is not answered");
            }
        }
        std::mem::replace(&mut world, World::new(self.partition))
    }
}

/// Executes a call. It goes on when its caller goes away, as on a server.
async fn serve(world: Arc<Mutex<World>>, id: usize) -> Result<ToolOutput, ToolError> {
    let (execution, ask) = world.lock().arrive(id);
    let running = tokio::spawn(async move {
        wait(ask.before).await;
        world.lock().land(execution);
        wait(ask.after).await;
    });
    if ask.fails {
        let (kind, delivery) = (ErrorKind::ConnectionLost, Delivery::Unknown);
        return Err(ToolError::new(kind, delivery, "as the script says"));
    }
    running.await.unwrap();
    Ok(ToolOutput::text(execution.to_string()))
}

async fn wait(millis: u64) {
    if millis > 0 {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}
