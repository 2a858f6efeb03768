//! Reads and writes, mixed: what a cache that knows the tools gives away, and what one that does
//! not gets wrong.

use std::collections::HashMap;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use callward_cache::{CacheConfig, CacheLayer, StateGroup};
use callward_core::{Profile, ReplicaSetId, Tool, ToolCall, ToolError, ToolOutput};
use serde::Serialize;
use tokio::time::{Instant, advance};
use tower_layer::Layer;
use tower_service::Service;

use crate::ReplayError;
use crate::made::{paused, tool};
use crate::random::{Random, Zipf};
use crate::report::share;

/// Calls of three tools over numbered values, made from a seed: `get` reads one, `put` sets it and
/// may be repeated, `add` changes it each time it runs.
///
/// ```
/// use callward_replay::Mix;
///
/// let [none, blind, ours] = Mix::new(0.1, 1).replay(2_000, 7)?;
/// assert!(blind.stale > 0 && blind.swallowed > 0);
/// assert_eq!((ours.stale, ours.swallowed), (0, 0));
/// assert!(ours.hits > none.hits);
/// # Ok::<(), callward_replay::ReplayError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    writes: f64,
    sets: u32,
}

/// What came of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MixFigures {
    /// `none`, `ttl` (blind to annotations) or `callward`.
    pub policy: &'static str,
    /// How many calls were made.
    pub calls: u64,
    /// How many of them read.
    pub reads: u64,
    /// How many reads were answered without the server.
    pub hits: u64,
    /// The share of reads that were, from 0 to 1.
    pub hit_rate: f64,
    /// How many reads were answered with a value that was not true any more.
    pub stale: u64,
    /// How many writes never reached the server, and would have changed something there.
    pub swallowed: u64,
}

/// Different values; the first are asked for most.
const VALUES: u32 = 500;
/// Between two calls.
const PAUSE: Duration = Duration::from_millis(100);

impl Mix {
    /// A mix with this share of writes, from 0 to 1, over values on so many servers (at least one)
    /// that know nothing of each other.
    #[must_use]
    pub fn new(writes: f64, sets: u32) -> Self {
        Self {
            writes,
            sets: sets.max(1),
        }
    }

    /// Makes so many calls: without a cache, through one that keeps every answer for as long as
    /// ours keeps a read and looks at no annotation, and through ours.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Cache`] if the cache cannot be built.
    pub fn replay(self, calls: usize, seed: u64) -> Result<[MixFigures; 3], ReplayError> {
        let none = |server: Server| server;
        let blind = |server| Blind {
            server,
            kept: HashMap::new(),
            ttl: Profile::standard().read_ttl,
        };
        let mut config = CacheConfig::default();
        config.key_seed = Some(1);
        for set in 0..self.sets {
            let set = ReplicaSetId::new(format!("set-{set}")).map_err(ReplayError::cache)?;
            config.scopes = config.scopes.with_state(set, StateGroup::Own);
        }
        let ours = CacheLayer::new(config);
        Ok([
            self.run("none", calls, seed, none)?,
            self.run("ttl", calls, seed, blind)?,
            self.run("callward", calls, seed, |server| ours.layer(server))?,
        ])
    }

    fn run<S>(
        self,
        policy: &'static str,
        calls: usize,
        seed: u64,
        front: impl FnOnce(Server) -> S,
    ) -> Result<MixFigures, ReplayError>
    where
        S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
    {
        let server = Server::default();
        let mut service = front(server.clone());
        let steps = self.steps(calls, seed)?;
        paused()?.block_on(async {
            let mut figures = MixFigures {
                policy,
                calls: 0,
                reads: 0,
                hits: 0,
                hit_rate: 0.0,
                stale: 0,
                swallowed: 0,
            };
            for step in steps {
                let (before, ran) = (server.value(step.value), server.ran());
                let answer = service
                    .call(step.call())
                    .await
                    .map_err(ReplayError::cache)?;
                let reached = server.ran() > ran;
                figures.calls += 1;
                if step.write == Write::None {
                    figures.reads += 1;
                    figures.hits += u64::from(!reached);
                    figures.stale += u64::from(answer != told(before));
                } else {
                    let lost = !reached && step.write.applied_to(before) != before;
                    figures.swallowed += u64::from(lost);
                }
                advance(PAUSE).await;
            }
            figures.hit_rate = share(figures.hits, figures.reads);
            Ok(figures)
        })
    }

    fn steps(self, calls: usize, seed: u64) -> Result<Vec<Step>, ReplayError> {
        let profile = Profile::standard();
        let tools: Vec<[Arc<Tool>; 3]> = (0..self.sets)
            .map(|set| {
                let set = format!("set-{set}");
                Ok([
                    tool(&set, "get", &profile, |hints| {
                        hints.read_only_hint = Some(true);
                    })?,
                    tool(&set, "put", &profile, |hints| {
                        hints.idempotent_hint = Some(true);
                        hints.destructive_hint = Some(false);
                    })?,
                    tool(&set, "add", &profile, |hints| {
                        hints.destructive_hint = Some(false);
                    })?,
                ])
            })
            .collect::<Result<_, ReplayError>>()?;
        let (values, mut random) = (Zipf::new(VALUES, 0.9), Random::new(seed));
        let step = |_| {
            let value = values.draw(&mut random);
            let set = usize::try_from(value % self.sets).ok()?;
            let [get, put, add] = tools.get(set)?;
            let (tool, write) = match (random.share() < self.writes, random.below(4)) {
                (false, _) => (get, Write::None),
                (true, 3) => (add, Write::Add),
                (true, to) => (put, Write::Put(to % 2)),
            };
            Some(Step {
                tool: tool.clone(),
                value,
                write,
            })
        };
        Ok((0..calls).filter_map(step).collect())
    }
}

/// One call to be made.
#[derive(Debug)]
struct Step {
    tool: Arc<Tool>,
    value: u32,
    write: Write,
}

/// What a call does to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    None,
    Put(u64),
    Add,
}

impl Write {
    fn applied_to(self, value: u64) -> u64 {
        match self {
            Self::None => value,
            Self::Put(to) => to,
            Self::Add => value + 1,
        }
    }
}

impl Step {
    fn call(&self) -> ToolCall {
        let value = self.value;
        let arguments = match self.write {
            Write::None | Write::Add => format!("{{\"value\":{value}}}"),
            Write::Put(to) => format!("{{\"value\":{value},\"to\":{to}}}"),
        };
        ToolCall::new(self.tool.clone(), arguments)
    }
}

/// Holds the values, and does what it is told at once.
#[derive(Debug, Clone, Default)]
struct Server {
    values: Arc<parking_lot::Mutex<HashMap<u32, u64>>>,
    ran: Arc<AtomicU64>,
}

/// What a call says.
#[derive(serde::Deserialize)]
struct Arguments {
    value: u32,
    to: Option<u64>,
}

impl Server {
    fn value(&self, value: u32) -> u64 {
        self.values.lock().get(&value).copied().unwrap_or(0)
    }

    fn ran(&self) -> u64 {
        self.ran.load(Ordering::Relaxed)
    }

    fn run(&self, call: &ToolCall) -> Option<ToolOutput> {
        let Arguments { value, to } = serde_json::from_slice(call.arguments()).ok()?;
        let write = match (call.tool().name().as_str(), to) {
            ("get", _) => Write::None,
            (_, Some(to)) => Write::Put(to),
            (_, None) => Write::Add,
        };
        let now = write.applied_to(self.value(value));
        self.values.lock().insert(value, now);
        self.ran.fetch_add(1, Ordering::Relaxed);
        Some(told(now))
    }
}

/// How the server tells a value.
fn told(value: u64) -> ToolOutput {
    ToolOutput::text(value.to_string())
}

impl Service<ToolCall> for Server {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let answer = self.run(&call);
        ready(Ok(
            answer.unwrap_or_else(|| ToolOutput::error_text("no such call"))
        ))
    }
}

/// What most caches around tools are: by name and arguments, for a time.
#[derive(Debug)]
struct Blind {
    server: Server,
    kept: HashMap<(String, Bytes), (Instant, ToolOutput)>,
    ttl: Duration,
}

impl Service<ToolCall> for Blind {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let key = (
            call.tool().name().to_string(),
            Bytes::copy_from_slice(call.arguments()),
        );
        let now = Instant::now();
        if let Some((until, output)) = self.kept.get(&key)
            && now < *until
        {
            return ready(Ok(output.clone()));
        }
        let answer = self.server.run(&call);
        if let Some(output) = &answer {
            self.kept.insert(key, (now + self.ttl, output.clone()));
        }
        ready(Ok(
            answer.unwrap_or_else(|| ToolOutput::error_text("no such call"))
        ))
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = if self.sets == 1 { "server" } else { "servers" };
        write!(
            f,
            "{:.0} % writes, {} {servers}",
            self.writes * 100.0,
            self.sets
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewer_servers_a_write_touches_the_more_stays() {
        let hits = |sets| {
            let [_, _, ours] = Mix::new(0.1, sets).replay(3000, 5).unwrap();
            assert_eq!((ours.stale, ours.swallowed), (0, 0));
            ours.hits
        };
        assert!(hits(1) < hits(4) && hits(4) < hits(16));
    }

    #[test]
    fn without_writes_the_blind_one_is_right_and_ours_no_worse() {
        let [none, blind, ours] = Mix::new(0.0, 1).replay(3000, 5).unwrap();
        assert_eq!((none.hits, none.stale), (0, 0));
        assert_eq!((blind.stale, blind.swallowed), (0, 0));
        assert_eq!(ours.hits, blind.hits);
        assert!(ours.hits > 2000, "{ours:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_figures() {
        let replay = || Mix::new(0.3, 2).replay(2000, 9).unwrap();
        assert_eq!(replay(), replay());
    }
}
