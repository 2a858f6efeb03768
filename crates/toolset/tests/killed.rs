//! A process that is killed while it writes notes loses none that it has acknowledged.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::env;
use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::path::Path;
use std::process::{Command, Stdio};

use callward_toolset::{Note, Store, ToolRef, Toolset};

const FILE: &str = "CALLWARD_TEST_TOOLSETS";
/// In each of four files: the time of a write grows with its file.
const NOTES: usize = 250;
const FILES: usize = 4;
/// How many notes a process writes before it is killed, less four.
const MOST: u64 = 40;
/// Twenty notes fit a tool.
const OF_TOOL: usize = 20;

fn add(store: &Store, toolset: &str, number: usize) {
    let note = Note::new(
        format!("n{number}").parse().unwrap(),
        format!("what is known of {number}").parse().unwrap(),
    );
    let tool = ToolRef::named(format!("server.tool{}", number / OF_TOOL));
    let name = toolset.parse().unwrap();
    let added = store.change(|all| {
        if !all.toolsets.contains_key(toolset) {
            all.add(toolset.parse()?, Toolset::default())?;
        }
        all.get_mut(&name)?.add_notes(&tool, &tool, vec![note])
    });
    assert_eq!(added.unwrap().len(), 1, "{toolset} {number}");
}

fn count(path: &Path, toolset: &str) -> usize {
    let store = Store::open(path).unwrap();
    let all = store.toolsets();
    let found = all.file.toolsets.get(toolset);
    let notes = found.iter().flat_map(|found| &found.tool_notes);
    notes.map(|of_tool| of_tool.notes.len()).sum()
}

#[test]
#[ignore = "the process that the other test kills"]
fn writes_until_it_is_killed() {
    let Some(path) = env::var_os(FILE) else {
        return;
    };
    let first = count(Path::new(&path), "killed");
    let store = Store::open(path).unwrap();
    // a note for each line that it gets
    for (number, _) in (first..NOTES).zip(stdin().lines()) {
        add(&store, "killed", number);
        println!("wrote {number}");
    }
}

#[test]
fn no_acknowledged_note_is_lost_by_kill_at_any_point() {
    let folder = tempfile::tempdir().unwrap();
    // a generator of its own, so that a run can be repeated
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for file in 0..FILES {
        kill_until_all_is_written(&folder.path().join(format!("{file}.json")), &mut random);
    }
}

fn kill_until_all_is_written(path: &Path, random: &mut impl FnMut(u64) -> u64) {
    let (store, mut ours, mut rounds) = (Store::open(path).unwrap(), 0, 0);
    let mut acknowledged = 0;
    while acknowledged < NOTES {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "writes_until_it_is_killed",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env(FILE, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let most = random(MOST) + 4;
        let mut asks = child.stdin.take().unwrap();
        asks.write_all(&b"\n".repeat(most as usize)).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        for _ in 0..random(most) {
            lines.read_line(&mut said).unwrap();
        }
        // another writer at the same time
        add(&store, "ours", ours);
        ours += 1;
        for _ in 0..random(20_000) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines.read_to_string(&mut said).unwrap();
        rounds += 1;

        let wrote = |line: &str| Some(line.rsplit_once("wrote ")?.1.parse::<usize>().ok()? + 1);
        acknowledged = said.lines().filter_map(wrote).max().unwrap_or(acknowledged);
        let found = count(path, "killed");
        // at most the one that was being written is there without an acknowledgement
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{found} of {acknowledged}"
        );
        assert_eq!(count(path, "ours"), ours);
        acknowledged = found;
    }
    assert!(rounds >= NOTES / (MOST as usize + 4), "{rounds} rounds");
}
