//! All peers: first what is counted, several of them at a time; then what takes time, each alone.

use std::collections::BTreeMap;
use std::fs;

use futures_util::future::try_join_all;
use tokio::time::Instant;

use crate::figures::{Figures, PeerFigures};
use crate::layers::Layers;
use crate::peer::{Configuration, PEERS, Places};
use crate::scenario::{changed, lost, memory, neighbours, stampede};
use crate::session::Session;
use crate::{Options, Outcome, machine, version};

pub(crate) async fn run(options: &Options) -> Outcome<()> {
    let begun = Instant::now();
    let clock = Clock {
        begun,
        elapsed: options.elapsed,
    };
    let places = Places {
        programs: options.programs.clone(),
        callward: options.callward.clone(),
        home: options.home.clone(),
        sources: options.sources.clone(),
    };
    let mut figures = Figures {
        machine: machine::describe(),
        quick: options.quick,
        before_seconds: options.elapsed,
        ..Figures::default()
    };
    let wanted = |name| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let mut sessions: Vec<_> = PEERS
        .iter()
        .filter(|peer| wanted(peer.name))
        .map(|peer| Session::new(peer, &places, options.quick, clock))
        .collect();
    let mut layers = wanted(LAYERS).then(|| in_process(&places));
    // after each peer, so that a run that is cut short leaves something
    let mut save = |sessions: &[Session<'_>], layers: &Option<PeerFigures>| {
        figures.peers = sessions
            .iter()
            .map(|session| session.figures.clone())
            .chain(layers.clone())
            .collect();
        figures.seconds = begun.elapsed().as_secs_f64();
        let text = serde_json::to_string_pretty(&figures)? + "\n";
        Outcome::Ok(fs::write(&options.out, text)?)
    };
    let (remote, local) = tokio::join!(
        counted(&mut sessions),
        count_layers(layers.as_mut(), options.quick, clock)
    );
    remote.and(local)?;
    save(&sessions, &layers)?;
    for place in 0..sessions.len() {
        sessions[place].timed().await?;
        save(&sessions, &layers)?;
    }
    if let Some(layers) = &mut layers {
        layers.stampede = Some(stampede::run(&Layers::new()?).await?);
    }
    save(&sessions, &layers)
}

/// Peers of one package take turns; packages do not wait for each other: most of what a peer does
/// here is to pause before it repeats, or to wait for its breakers.
async fn counted(sessions: &mut [Session<'_>]) -> Outcome<()> {
    let mut packages: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for session in sessions {
        packages.entry(session.package()).or_default().push(session);
    }
    let turns = packages.into_values().map(async |sessions| {
        for session in sessions {
            session.counted().await?;
        }
        Outcome::Ok(())
    });
    try_join_all(turns).await?;
    Ok(())
}

const LAYERS: &str = "tower-resilience";

/// Layers in this process: there is no hop, so there are no hints to keep and no speed to compare.
fn in_process(places: &Places) -> PeerFigures {
    PeerFigures {
        name: LAYERS.to_owned(),
        version: version::of("tower-resilience-cache", places).unwrap_or_default(),
        configuration: Configuration::Cached.name().to_owned(),
        setup: "layers in process: cache (1 h), coalescing, retry (4 attempts from 50 ms), breaker (defaults)"
            .to_owned(),
        ..PeerFigures::default()
    }
}

async fn count_layers(figures: Option<&mut PeerFigures>, quick: bool, clock: Clock) -> Outcome<()> {
    let Some(figures) = figures else {
        return Ok(());
    };
    clock.say(LAYERS, "all but one");
    for way in lost::WAYS {
        let found = lost::run(&Layers::new()?, *way, intended(quick)).await?;
        figures.lost.extend(found);
    }
    figures.memory = Some(memory::run(&Layers::new()?, rounds(quick)).await?);
    let (layers, reads) = (Layers::new()?, reads(quick));
    figures.changed = vec![
        changed::through_other_server(&layers, &layers, reads).await?,
        changed::by_person(&layers, reads).await?,
        changed::by_time(&layers, reads).await?,
    ];
    figures.changed.extend(changed::inapplicable());
    for way in neighbours::WAYS {
        let found = neighbours::run(&Layers::new()?, *way).await?;
        figures.neighbours.push(found);
    }
    Ok(())
}

/// Intended calls of each tool for each way to lose a reply.
pub(crate) fn intended(quick: bool) -> usize {
    if quick { 20 } else { 50 }
}

/// Rounds of writes and reads.
pub(crate) fn rounds(quick: bool) -> usize {
    if quick { 3 } else { 8 }
}

/// Reads of what another client changed, in each way.
pub(crate) fn reads(quick: bool) -> usize {
    if quick { 20 } else { 100 }
}

/// What has passed since the whole run began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    begun: Instant,
    /// In seconds, before there was this clock.
    elapsed: u64,
}

impl Clock {
    pub(crate) fn say(self, who: &str, what: &str) {
        let seconds = self.elapsed + self.begun.elapsed().as_secs();
        eprintln!("{:>3}:{:02} {who}: {what}", seconds / 60, seconds % 60);
    }
}
