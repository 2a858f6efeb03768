//! `docs/replay.md` says what the program does: its tables are complete, its output is real.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::golden::cases;
use crate::support::{ends, file, text};

const PAGE: &str = include_str!("../../../../docs/replay.md");
/// Where the format is defined, with the table that the page repeats.
const FORMAT: &str = include_str!("../../../replay/src/trace.rs");
/// The recording that the page replays.
const RECORDING: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/examples/orders.jsonl"
);

/// Returns what stands between fences with this word.
fn blocks(word: &str) -> Vec<&'static str> {
    let start = format!("```{word}\n");
    let after = PAGE.split(start.as_str()).skip(1);
    after.filter_map(|rest| rest.split("```").next()).collect()
}

/// Returns the first cells of the rows under these headings.
fn column(headings: &str) -> BTreeSet<String> {
    let (_, table) = PAGE.split_once(headings).unwrap();
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_page_lists_the_members_of_a_recorded_call() {
    let (_, fields) = FORMAT.split_once("pub struct RecordedCall {").unwrap();
    let (fields, _) = fields.split_once("\n}").unwrap();
    let fields = fields
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub "));
    let names: BTreeSet<_> = fields
        .filter_map(|field| Some(field.split_once(':')?.0.to_owned()))
        .collect();
    let heading = "One JSON object a line, in the order of the calls of each session.\n\n";
    assert_eq!(column(heading), names);
}

/// The page itself is run, beside the files that it names. How many bytes are kept hangs on how
/// large pointers are.
#[test]
fn the_examples_print_what_the_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("replay.in");
    std::fs::create_dir(&files).unwrap();
    std::fs::copy(RECORDING, files.join("orders.jsonl")).unwrap();
    let scopes = blocks("toml")
        .into_iter()
        .find(|block| !block.contains("[servers"));
    std::fs::write(files.join("scopes.toml"), scopes.unwrap()).unwrap();
    let mut keys = String::new();
    let mut x = 1_u64;
    for _ in 0..10_000 {
        x = x * 16_807 % 2_147_483_647;
        let octave = 1 << (x % 11);
        writeln!(keys, "{}", octave + x / 11 % octave).unwrap();
    }
    std::fs::write(files.join("requests.keys"), keys).unwrap();
    let lines = PAGE.lines().map(|line| match line.rsplit_once("  ") {
        Some((rest, bytes)) if bytes.ends_with('B') => format!("{rest}  [..]\n"),
        _ => format!("{line}\n"),
    });
    let page = folder.path().join("replay.md");
    std::fs::write(&page, lines.collect::<String>()).unwrap();
    cases(folder.path()).case(&page).run();
}

#[tokio::test]
async fn the_config_of_the_example_is_accepted() {
    let config = file(blocks("toml")[0]);
    let config = config.path().to_str().unwrap();
    let done = ends(&["serve", "--check", "--config", config]).await;
    // 1 is a program that is not installed here
    assert_ne!(done.status.code(), Some(2), "{}", text(&done.stderr));
}

#[tokio::test]
async fn each_policy_for_calls_stands_on_the_page() {
    let done = ends(&["replay", "--json", "--calls", RECORDING]).await;
    let replayed: Value = serde_json::from_str(text(&done.stdout)).unwrap();
    let policies = replayed["policies"].as_array().unwrap();
    let names = policies
        .iter()
        .filter_map(|figures| figures["policy"].as_str());
    let names: BTreeSet<_> = names.map(str::to_owned).collect();
    assert_eq!(column("## Calls: the policies\n\n"), names);
}

#[test]
fn each_policy_for_keys_stands_on_the_page() {
    let printed = PAGE.lines().find(|line| line.starts_with("capacity  "));
    let headings = printed.unwrap().split_whitespace();
    let names = headings.skip(1).take_while(|heading| *heading != "to");
    let names: BTreeSet<_> = names.map(str::to_owned).collect();
    assert_eq!(column("`--policy` picks some.\n\n"), names);
}
