//! One peer, taken through everything; each scenario with a new process, so that none inherits open
//! breakers or full caches.

use std::time::Duration;

use futures_util::future::join_all;

use crate::Outcome;
use crate::figures::{Changed, Memory, PeerFigures, Recovery, Stampede};
use crate::peer::{Peer, Places, Running};
use crate::run::{Clock, intended, reads, rounds};
use crate::scenario::speed::Effort;
use crate::scenario::{
    Remote, changed, hints, lost, memory, neighbours, recovery, speed, stampede,
};
use crate::upstream::Upstream;
use crate::version;

pub(crate) struct Session<'a> {
    peer: &'static Peer,
    places: &'a Places,
    quick: bool,
    clock: Clock,
    /// Whether it was installed.
    there: bool,
    pub(crate) figures: PeerFigures,
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

impl<'a> Session<'a> {
    pub(crate) fn new(peer: &'static Peer, places: &'a Places, quick: bool, clock: Clock) -> Self {
        let mut session = Self {
            peer,
            places,
            quick,
            clock,
            there: true,
            figures: PeerFigures {
                name: peer.name.to_owned(),
                version: version::of(peer.package, places).unwrap_or_default(),
                configuration: peer.configuration.name().to_owned(),
                setup: peer.setup.to_owned(),
                ..PeerFigures::default()
            },
        };
        if let Some(reason) = peer.refused(places) {
            session.say("not installed");
            session.there = false;
            let reason = format!("not installed: {}", reason.trim());
            session.figures.failures.push(reason);
        }
        session
    }

    pub(crate) fn package(&self) -> &'static str {
        self.peer.package
    }

    /// What is counted, and no time: other peers may be at work meanwhile. Only how early failures
    /// in a row open a breaker is chance, beside others as well as alone.
    pub(crate) async fn counted(&mut self) -> Outcome<()> {
        if !self.there {
            return Ok(());
        }
        self.lost().await;
        let upstream = self.upstream().await?;
        self.say("stale reads, swallowed writes");
        let found = self.memory(&upstream).await;
        self.figures.memory = self.note("stale reads", found);
        self.say("state changed by others");
        let found = self.changed(&upstream).await;
        self.note("state changed by others", found);
        self.neighbours().await;
        Ok(())
    }

    /// What takes time, and needs the machine for itself.
    pub(crate) async fn timed(&mut self) -> Outcome<()> {
        if !self.there {
            return Ok(());
        }
        let mut upstream = self.upstream().await?;
        self.say("stampede, hints");
        let found = self.stampede(&upstream).await;
        self.figures.stampede = self.note("stampede", found);
        self.say("recovery");
        let found = self.recovery(&mut upstream).await;
        self.figures.recovery = self.note("recovery", found);
        let found = self.speed(&upstream).await;
        self.note("speed", found);
        Ok(())
    }

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
        let endpoint = upstream.endpoint.clone();
        self.peer.start(self.places, &[endpoint]).await
    }

    async fn upstream(&self) -> Outcome<Upstream> {
        Upstream::start(&self.places.programs.join("upstream")).await
    }

    async fn bed(&self) -> Outcome<Bed> {
        let upstream = self.upstream().await?;
        let running = self.start(&upstream).await?;
        Ok(Bed { upstream, running })
    }

    /// All ways at once.
    async fn lost(&mut self) {
        self.say("lost replies");
        let intended = intended(self.quick);
        let ways = lost::WAYS
            .iter()
            .map(async |way| lost::run(&self.bed().await?.subject(), *way, intended).await);
        let found = join_all(ways).await;
        for (found, way) in found.into_iter().zip(lost::WAYS) {
            let found = self.note(&format!("lost replies, {}", way.1), found);
            self.figures.lost.extend(found.unwrap_or_default());
        }
    }

    /// All ways at once.
    async fn neighbours(&mut self) {
        self.say("a tool that fails beside one that does not");
        let ways = neighbours::WAYS
            .iter()
            .map(async |way| neighbours::run(&self.bed().await?.subject(), *way).await);
        let found = join_all(ways).await;
        for (found, way) in found.into_iter().zip(neighbours::WAYS) {
            let found = self.note(&format!("healthy tools, {}", way.1), found);
            self.figures.neighbours.extend(found);
        }
    }

    async fn memory(&mut self, upstream: &Upstream) -> Outcome<Memory> {
        upstream.reset().await?;
        let running = self.start(upstream).await?;
        let endpoint = running.endpoint.clone();
        memory::run(&Remote { endpoint, upstream }, rounds(self.quick)).await
    }

    /// What others change is read through one process before two servers, what is kept per client
    /// through another before the server with sessions.
    async fn changed(&mut self, upstream: &Upstream) -> Outcome<()> {
        upstream.reset().await?;
        let reads = reads(self.quick);
        let both = [upstream.endpoint.clone(), upstream.other()];
        match self.peer.start(self.places, &both).await {
            Ok(running) => {
                let remote = |endpoint| Remote { endpoint, upstream };
                let reader = remote(running.endpoint.clone());
                let writer = if self.peer.is_direct() {
                    remote(upstream.other())
                } else {
                    remote(running.endpoint.clone())
                };
                let found = changed::through_other_server(&reader, &writer, reads).await;
                self.push("through another server", found);
                let found = changed::by_person(&reader, reads).await;
                self.push("changed by a person", found);
                let found = changed::by_time(&reader, reads).await;
                self.push("changed by time", found);
            }
            Err(error) => self.push("before two servers", Err(error)),
        }
        for way in changed::PER_CLIENT {
            let running = self.peer.start(self.places, &[upstream.sessions()]).await?;
            // each pair of clients makes six calls
            let found = changed::per_client(&running.endpoint, *way, reads.div_ceil(6)).await;
            self.push(way.0, found);
        }
        Ok(())
    }

    fn push(&mut self, what: &str, found: Outcome<Changed>) {
        let found = self.note(what, found);
        self.figures.changed.extend(found);
    }

    async fn stampede(&mut self, upstream: &Upstream) -> Outcome<Stampede> {
        upstream.reset().await?;
        let running = self.start(upstream).await?;
        let heard = hints::run(&upstream.endpoint, &running.endpoint).await;
        self.figures.hints = self.note("hints", heard);
        let endpoint = running.endpoint.clone();
        stampede::run(&Remote { endpoint, upstream }).await
    }

    async fn recovery(&mut self, upstream: &mut Upstream) -> Outcome<Recovery> {
        upstream.reset().await?;
        let running = self.start(upstream).await?;
        let wait = Duration::from_secs(8);
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
            if cached && self.peer.is_direct() {
                continue;
            }
            if cached && self.peer.caches {
                self.say("filling the cache");
                let filled = speed::fill(&running, effort).await;
                self.note("filling the cache", filled);
            }
            for callers in [1, 32] {
                let what = if cached { "repeated" } else { "uncached" };
                self.say(&format!("{what}, {callers} callers"));
                let found = speed::run(upstream, &running, callers, cached, effort).await;
                let found = self.note(&format!("{what}, {callers} callers"), found);
                self.figures.speed.extend(found);
            }
        }
        Ok(())
    }
}
