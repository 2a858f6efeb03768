//! Clients who call whether or not earlier calls were answered, and who do not wait for ever.

use std::sync::Arc;
use std::time::Duration;

use callward::{Caller, Principal, SessionId, ToolCall};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::figures::Tally;
use crate::policies::{Policy, Runtime};
use crate::world::{Outage, Size, World};

/// One client: who it is, and how long it waits.
struct Client {
    caller: Arc<Caller>,
    patience: Duration,
    /// Half of the clients say until when they wait. The others are gone at some time.
    tells: bool,
}

/// One run, come to its end.
pub(crate) struct Run {
    pub(crate) size: Size,
    pub(crate) outage: Option<Outage>,
    pub(crate) policy: Policy,
    pub(crate) seed: u64,
    pub(crate) tally: Arc<Tally>,
    /// How long until the last breaker lets a probe through, as of the end of the outage.
    pub(crate) open: Option<Duration>,
}

impl Run {
    /// Runs all of it on a paused clock. `progress` gets the share that is done.
    pub(crate) fn new(
        size: &Size,
        outage: Option<Outage>,
        policy: Policy,
        seed: u64,
        progress: &mut dyn FnMut(f64),
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        // what draws by chance without a generator of its own, as the router does
        fastrand::seed(seed);
        runtime.block_on(async {
            let world = World::new(size, outage, seed);
            let runtime = Runtime::new(policy, &world, seed).await;
            let open = drive(&world, &runtime, seed, progress).await;
            Self {
                size: size.clone(),
                outage,
                policy,
                seed,
                tally: world.tally.clone(),
                open,
            }
        })
    }
}

async fn drive(
    world: &World,
    runtime: &Runtime,
    seed: u64,
    progress: &mut dyn FnMut(f64),
) -> Option<Duration> {
    let size = &world.size;
    let mut chance = fastrand::Rng::with_seed(seed);
    let clients: Vec<_> = (0..size.clients).map(|n| client(n, &mut chance)).collect();
    let mut calls = JoinSet::new();
    let (mut at, mut id) = (0.0, 0_u64);
    let mut open = None;
    loop {
        at += -(1.0 - chance.f64()).ln() / size.offered();
        let due = Duration::from_secs_f64(at);
        if due >= size.length() {
            break;
        }
        sleep_until(world.epoch + due).await;
        if due >= size.window().end && open.is_none() {
            open = Some(runtime.longest_open());
        }
        let client = &clients[chance.usize(..clients.len())];
        let set = chance.usize(..size.sets);
        id += 1;
        let call = ToolCall::new(runtime.tools[set].clone(), format!(r#"{{"id":{id}}}"#))
            .with_caller(client.caller.clone());
        let until = world.epoch.elapsed() + client.patience;
        let call = if client.tells {
            call.with_deadline((world.epoch + until).into_std())
        } else {
            call
        };
        calls.spawn(one(world, runtime.clone(), call, set, client.patience));
        while calls.try_join_next().is_some() {}
        if id.is_multiple_of(1000) {
            progress(at / size.length().as_secs_f64());
        }
    }
    while calls.join_next().await.is_some() {}
    open.flatten()
}

/// One call, given up when its client's patience ends.
fn one(
    world: &World,
    runtime: Runtime,
    call: ToolCall,
    set: usize,
    patience: Duration,
) -> impl Future<Output = ()> + Send + use<> {
    let (epoch, tally) = (world.epoch, world.tally.clone());
    let issued = epoch.elapsed();
    tally.offered(set, issued);
    async move {
        let answer = timeout(patience, runtime.call(call)).await;
        let answered = matches!(&answer, Ok(Ok(output)) if !output.is_error());
        tally.done(set, issued, epoch.elapsed(), answered);
    }
}

fn client(number: usize, chance: &mut fastrand::Rng) -> Client {
    let session = SessionId::new(format!("session-{number}"));
    let caller = Caller::new(Principal::new(format!("client-{number}"))).with_session(session);
    Client {
        caller: Arc::new(caller),
        patience: PATIENCE.0 + (PATIENCE.1 - PATIENCE.0).mul_f64(chance.f64()),
        tells: chance.bool(),
    }
}

/// The least and the most that a client waits.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(20));
