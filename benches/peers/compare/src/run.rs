//! All peers, one after the other; each scenario with a new process, so that none inherits open breakers
//! or full caches.

use std::fs;
use std::time::Duration;

use futures_util::future::join_all;
use peers_upstream::Fault;
use tokio::time::Instant;

use crate::figures::{Figures, PeerFigures};
use crate::layers::Layers;
use crate::peer::{PEERS, Peer, Places, Running};
use crate::scenario::speed::Effort;
use crate::scenario::{Remote, hints, lost, memory, neighbours, recovery, speed, stampede};
use crate::upstream::Upstream;
use crate::{Options, Outcome, machine, version};

pub(crate) async fn run(options: &Options) -> Outcome<()> {
    let begun = Instant::now();
    let clock = Clock {
        begun,
        elapsed: options.elapsed,
    };
    let places = Places {
        programs: options.programs.clone(),
        tollgate: options.tollgate.clone(),
        home: options.home.clone(),
        sources: options.sources.clone(),
    };
    let mut figures = Figures {
        machine: machine::describe(),
        quick: options.quick,
        before_seconds: options.elapsed,
        ..Figures::default()
    };
    for peer in PEERS {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == peer.name) {
            continue;
        }
        let mut session = Session {
            peer,
            places: &places,
            quick: options.quick,
            clock,
            figures: PeerFigures {
                name: peer.name.to_owned(),
                version: version::of(peer.package, &places).unwrap_or_default(),
                setup: peer.setup.to_owned(),
                ..PeerFigures::default()
            },
        };
        session.whole().await?;
        figures.peers.push(session.figures);
        figures.seconds = begun.elapsed().as_secs_f64();
        // after each peer, so that a run that is cut short leaves something
        fs::write(&options.out, serde_json::to_string_pretty(&figures)? + "\n")?;
    }
    if options.only.is_empty() || options.only.iter().any(|only| only == LAYERS) {
        clock.say(LAYERS, "all but speed");
        figures
            .peers
            .push(in_process(&places, options.quick).await?);
        figures.seconds = begun.elapsed().as_secs_f64();
        fs::write(&options.out, serde_json::to_string_pretty(&figures)? + "\n")?;
    }
    Ok(())
}

const LAYERS: &str = "tower-resilience";

/// Layers in this process: there is no hop, so there are no hints to keep and no speed to compare.
async fn in_process(places: &Places, quick: bool) -> Outcome<PeerFigures> {
    let mut figures = PeerFigures {
        name: LAYERS.to_owned(),
        version: version::of("tower-resilience-cache", places).unwrap_or_default(),
        setup: "layers in process: cache (1 h), coalescing, retry (4 attempts from 50 ms), breaker (defaults)"
            .to_owned(),
        ..PeerFigures::default()
    };
    for way in lost::WAYS {
        let found = lost::run(&Layers::new()?, *way, intended(quick)).await?;
        figures.lost.extend(found);
    }
    figures.memory = Some(memory::run(&Layers::new()?, rounds(quick)).await?);
    figures.stampede = Some(stampede::run(&Layers::new()?).await?);
    for way in neighbours::WAYS {
        let found = neighbours::run(&Layers::new()?, *way).await?;
        figures.neighbours.push(found);
    }
    Ok(figures)
}

/// Intended calls of each tool for each way to lose a reply.
fn intended(quick: bool) -> usize {
    if quick { 20 } else { 50 }
}

/// Rounds of writes and reads.
fn rounds(quick: bool) -> usize {
    if quick { 3 } else { 8 }
}

/// What has passed since the whole run began.
#[derive(Debug, Clone, Copy)]
struct Clock {
    begun: Instant,
    /// In seconds, before there was this clock.
    elapsed: u64,
}

impl Clock {
    fn say(self, who: &str, what: &str) {
        let seconds = self.elapsed + self.begun.elapsed().as_secs();
        eprintln!("{:>3}:{:02} {who}: {what}", seconds / 60, seconds % 60);
    }
}

struct Session<'a> {
    peer: &'static Peer,
    places: &'a Places,
    quick: bool,
    clock: Clock,
    figures: PeerFigures,
}

/// A new process of the peer before an upstream of its own.
struct Bed {
    upstream: Upstream,
    running: Running,
}

impl Bed {
    fn subject(&self) -> Remote<'_> {
        Remote {
            endpoint: self.running.endpoint.clone(),
            upstream: &self.upstream,
        }
    }
}

impl Session<'_> {
    fn say(&self, what: &str) {
        self.clock.say(self.peer.name, what);
    }

    /// What failed is written down, and the rest is measured all the same.
    fn note<T>(&mut self, what: &str, outcome: Outcome<T>) -> Option<T> {
        outcome
            .map_err(|error| {
                let failure = format!("{what}: {error}");
                self.say(&failure);
                self.figures.failures.push(failure);
            })
            .ok()
    }

    async fn start(&self, upstream: &Upstream) -> Outcome<Running> {
        self.peer.start(self.places, &upstream.endpoint).await
    }

    async fn whole(&mut self) -> Outcome<()> {
        if let Some(reason) = self.peer.refused(self.places) {
            self.say("not installed");
            let reason = format!("not installed: {}", reason.trim());
            self.figures.failures.push(reason);
            return Ok(());
        }
        self.lost().await;
        let mut upstream = self.upstream().await?;
        self.say("stale reads, swallowed writes");
        let found = self.memory(&upstream).await;
        self.figures.memory = self.note("stale reads", found);
        self.say("stampede, hints");
        let found = self.stampede(&upstream).await;
        self.figures.stampede = self.note("stampede", found);
        self.neighbours().await;
        self.say("recovery");
        let found = self.recovery(&mut upstream).await;
        self.figures.recovery = self.note("recovery", found);
        let found = self.speed(&upstream).await;
        self.note("speed", found);
        Ok(())
    }

    async fn upstream(&self) -> Outcome<Upstream> {
        Upstream::start(&self.places.programs.join("upstream")).await
    }

    /// So many beds, made one after the other, that no two find the same port free.
    async fn beds(&self, count: usize) -> Vec<Outcome<Bed>> {
        let mut beds = Vec::with_capacity(count);
        for _ in 0..count {
            beds.push(self.bed().await);
        }
        beds
    }

    async fn bed(&self) -> Outcome<Bed> {
        let upstream = self.upstream().await?;
        let running = self.start(&upstream).await?;
        Ok(Bed { upstream, running })
    }

    /// All ways at once: most of the time, peers pause before they repeat, or wait for their breakers.
    async fn lost(&mut self) {
        self.say("lost replies");
        let intended = intended(self.quick);
        let measure = async |(bed, way): (Outcome<Bed>, &(Fault, &str))| {
            lost::run(&bed?.subject(), *way, intended).await
        };
        let beds = self.beds(lost::WAYS.len()).await;
        let found = join_all(beds.into_iter().zip(lost::WAYS).map(measure)).await;
        for (found, way) in found.into_iter().zip(lost::WAYS) {
            let found = self.note(&format!("lost replies, {}", way.1), found);
            self.figures.lost.extend(found.unwrap_or_default());
        }
    }

    /// All ways at once: no figure of it is a time.
    async fn neighbours(&mut self) {
        self.say("a tool that fails beside one that does not");
        let measure = async |(bed, way): (Outcome<Bed>, &(Fault, &str))| {
            neighbours::run(&bed?.subject(), *way).await
        };
        let beds = self.beds(neighbours::WAYS.len()).await;
        let found = join_all(beds.into_iter().zip(neighbours::WAYS).map(measure)).await;
        for (found, way) in found.into_iter().zip(neighbours::WAYS) {
            let found = self.note(&format!("healthy tools, {}", way.1), found);
            self.figures.neighbours.extend(found);
        }
    }

    async fn memory(&mut self, upstream: &Upstream) -> Outcome<crate::figures::Memory> {
        upstream.reset().await?;
        let running = self.start(upstream).await?;
        let endpoint = running.endpoint.clone();
        memory::run(&Remote { endpoint, upstream }, rounds(self.quick)).await
    }

    async fn stampede(&mut self, upstream: &Upstream) -> Outcome<crate::figures::Stampede> {
        upstream.reset().await?;
        let running = self.start(upstream).await?;
        let heard = hints::run(&upstream.endpoint, &running.endpoint).await;
        self.figures.hints = self.note("hints", heard);
        let endpoint = running.endpoint.clone();
        stampede::run(&Remote { endpoint, upstream }).await
    }

    async fn recovery(&mut self, upstream: &mut Upstream) -> Outcome<crate::figures::Recovery> {
        upstream.reset().await?;
        let running = self.start(upstream).await?;
        let wait = Duration::from_secs(if self.quick { 8 } else { 10 });
        recovery::run(upstream, &running.endpoint, wait).await
    }

    async fn speed(&mut self, upstream: &Upstream) -> Outcome<()> {
        let effort = Effort {
            rounds: if self.quick { 2 } else { 3 },
            round: Duration::from_millis(if self.quick { 500 } else { 800 }),
            warm_up: Duration::from_secs(if self.quick { 3 } else { 8 }),
        };
        upstream.reset().await?;
        let running = self.start(upstream).await?;
        if !self.peer.is_direct() {
            self.figures.start_seconds = Some(running.start_seconds);
        }
        for cached in [false, true] {
            if cached && !self.peer.caches {
                continue;
            }
            if cached {
                self.say("filling the cache");
                let filled = speed::fill(&running, effort).await;
                self.note("filling the cache", filled);
            }
            for callers in [1, 32] {
                let what = if cached { "cached" } else { "uncached" };
                self.say(&format!("{what}, {callers} callers"));
                let found = speed::run(upstream, &running, callers, cached, effort).await;
                let found = self.note(&format!("{what}, {callers} callers"), found);
                self.figures.speed.extend(found);
            }
        }
        Ok(())
    }
}
