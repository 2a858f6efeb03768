//! Recordings of real agents, where they exist beside the repository.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use callward_cache::ToolScopes;
use callward_core::ToolName;
use callward_replay::calls::{self, Options};
use callward_replay::trace::Calls;
use flate2::read::MultiGzDecoder;

use super::model;

fn recordings() -> Vec<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/traces");
    let Ok(files) = std::fs::read_dir(beside) else {
        return Vec::new();
    };
    let mut found: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".jsonl.gz"))
        .collect();
    found.sort();
    found
}

/// Gives all tools of a recording a scope for each of their arguments.
fn by_values(path: &Path) -> Options {
    let tools: BTreeSet<ToolName> = Calls::open(path)
        .unwrap()
        .map(|call| call.unwrap().tool)
        .collect();
    let mut scopes = ToolScopes::reading(["{*}"]).unwrap();
    scopes.writes.clone_from(&scopes.reads);
    let mut options = Options::default();
    options.scopes = tools
        .into_iter()
        .map(|tool| (tool, scopes.clone()))
        .collect();
    options
}

#[test]
fn scopes_by_argument_give_more_hits() {
    for path in recordings() {
        let name = path.display().to_string();
        let replay = |options: &Options| {
            let calls = Calls::open(&path).unwrap();
            let replayed = calls::replay(calls, options, &mut |_| ()).unwrap();
            replayed.ours().clone()
        };
        let (plain, scoped) = (replay(&Options::default()), replay(&by_values(&path)));
        println!("{name}: {} hits, {} with scopes", plain.hits, scoped.hits);
        assert!(scoped.hits >= plain.hits, "{name}: {plain:?}, {scoped:?}");
        assert_eq!(scoped.stale, plain.stale, "{name}: {scoped:?}");
        assert_eq!(scoped.writes_swallowed, 0, "{name}");
        if name.contains("tau-") {
            assert!(scoped.hits > plain.hits, "{name}: {plain:?}, {scoped:?}");
        }
    }
}

#[test]
fn recorded_agents_get_no_stale_answer_and_no_swallowed_write() {
    for path in recordings() {
        let name = path.display().to_string();
        let lines =
            BufReader::new(MultiGzDecoder::new(std::fs::File::open(&path).unwrap())).lines();
        let flush = model::flush(lines.map(Result::unwrap));
        let calls = Calls::open(&path).unwrap();
        let replayed = calls::replay(calls, &Options::default(), &mut |_| ()).unwrap();
        println!("{name}: {flush:?}\n{}", replayed.grid());
        let ours = replayed.ours();
        assert_eq!(replayed.left_out, 0, "{name}");
        assert_eq!(ours.writes_swallowed, 0, "{name}");
        // a failed write may still take effect, so ours stores nothing; without recorded times
        // the clock is paused
        assert!(
            ours.hits + ours.joined >= flush.hits_without_failed_write,
            "{name}: {flush:?}, {ours:?}"
        );
        let theirs = replayed.policy("flush on any write").unwrap();
        assert_eq!(theirs.hits, flush.hits, "{name}");
        if flush.has_results {
            assert_eq!((ours.stale, ours.not_compared), (Some(0), 0), "{name}");
            assert_eq!(theirs.stale, Some(flush.stale), "{name}");
        }
    }
}
