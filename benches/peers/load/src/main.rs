//! `load --direct URL [--peer URL --pid PID] …`: what a peer costs, as JSON.

use std::error::Error;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use peers_load::{Endpoint, Era, Extent, Keys, Load, drive, paired};

const USAGE: &str = "\
load --direct URL [--peer URL] [options]

  --direct URL      the upstream itself; rounds go there and to the peer in turn
  --peer URL        what is measured; without it, rounds go to the upstream alone
  --pid PID         the peer's process: CPU and memory, its children's too
  --tool NAME       noop_get; through a peer, the tool whose name ends so
  --callers N       32
  --seconds S       of each round: 2
  --calls N         instead of seconds: calls of each round
  --rounds N        5, and one before them that does not count
  --keys KIND       of the peer's calls: distinct, zipf or one; direct calls are always distinct
  --modern          protocol 2026-07-28; otherwise 2025-11-25
  --seed N          another one each time; equal seeds make equal keys
  --raw             every round, not only the medians";

struct Options {
    direct: Endpoint,
    peer: Option<Endpoint>,
    pid: Option<u32>,
    load: Load,
    rounds: usize,
    raw: bool,
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, Box<dyn Error>> {
    let (mut direct, mut peer, mut pid, mut rounds, mut raw) = (None, None, None, 5, false);
    let mut load = Load {
        tool: "noop_get".to_owned(),
        era: Era::Legacy,
        callers: 32,
        extent: Extent::For(Duration::from_secs(2)),
        keys: Keys::Distinct,
        // distinct keys stay so when the same gateway is measured twice
        seed: RandomState::new().build_hasher().finish() >> 1,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let endpoint = |url: String| Endpoint::new(&url).ok_or(format!("{url} is not an address"));
        match word.as_str() {
            "--direct" => direct = Some(endpoint(value()?)?),
            "--peer" => peer = Some(endpoint(value()?)?),
            "--pid" => pid = Some(value()?.parse()?),
            "--tool" => load.tool = value()?,
            "--callers" => load.callers = value()?.parse()?,
            "--seconds" => {
                load.extent = Extent::For(Duration::try_from_secs_f64(value()?.parse()?)?);
            }
            "--calls" => load.extent = Extent::Calls(value()?.parse()?),
            "--rounds" => rounds = value()?.parse()?,
            "--keys" => load.keys = value()?.parse()?,
            "--seed" => load.seed = value()?.parse()?,
            "--modern" => load.era = Era::Modern,
            "--raw" => raw = true,
            other => return Err(format!("unknown option {other}\n\n{USAGE}").into()),
        }
    }
    Ok(Options {
        direct: direct.ok_or(USAGE)?,
        peer,
        pid,
        load,
        rounds,
        raw,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options(std::env::args().skip(1))?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(run(options))
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let Some(peer) = &options.peer else {
        for _ in 0..options.rounds {
            let round = drive(&options.direct, &options.load, options.pid).await?;
            println!("{}", serde_json::to_string(&round)?);
        }
        return Ok(());
    };
    let straight = Load {
        keys: Keys::Distinct,
        ..options.load.clone()
    };
    let found = paired(
        (&options.direct, &straight),
        (peer, &options.load, options.pid),
        options.rounds,
    )
    .await?;
    if options.raw {
        println!("{}", serde_json::to_string_pretty(&found)?);
    }
    println!("{}", serde_json::to_string_pretty(&found.summary())?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, Box<dyn Error>> {
        options(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_have_defaults() {
        let options = read("--direct http://127.0.0.1:1/mcp").unwrap();
        assert!(options.peer.is_none() && options.pid.is_none() && !options.raw);
        assert_eq!((options.rounds, options.load.callers), (5, 32));
        assert_eq!(options.load.keys, Keys::Distinct);
    }

    #[test]
    fn invalid_options_are_errors() {
        for line in [
            "",
            "--direct",
            "--direct h:1",
            "--direct http://h:1/ --keys few",
            "--direct http://h:1/ --fast",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
