//! `docs/replay.md` says what the program does: its tables are complete, its output is real.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

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

/// Holds the lines after a command on the page, to `...` if there is one, against what was printed.
/// Of a replay of calls, the heading names a path, and the last column hangs on how large pointers
/// are.
fn shows(command: &str, printed: &str) {
    let shown = blocks("console")
        .into_iter()
        .find_map(|block| block.strip_prefix(command)?.strip_prefix('\n'))
        .unwrap_or_else(|| panic!("no `{command}` on the page"));
    let of_calls = command.contains("--calls");
    let is_told = |line: &&str| !line.contains(" calls, ");
    let without_bytes = |line| match str::rsplit_once(line, "  ") {
        Some((rest, _)) if of_calls => rest,
        _ => line,
    };
    let reported = |text| str::lines(text).filter(is_told).map(without_bytes);
    let (shown, mut printed) = (reported(shown), reported(printed));
    for line in shown {
        if line == "..." {
            return;
        }
        assert_eq!(Some(line), printed.next(), "{command}");
    }
    assert_eq!(printed.next(), None, "{command}");
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

#[tokio::test]
async fn the_example_of_calls_prints_what_the_page_says() {
    let done = ends(&["replay", "--calls", RECORDING]).await;
    shows("$ callward replay --calls orders.jsonl", text(&done.stdout));

    let scopes = blocks("toml")
        .into_iter()
        .find(|block| !block.contains("[servers"));
    let scopes = file(scopes.unwrap());
    let scopes = scopes.path().to_str().unwrap();
    let done = ends(&["replay", "--calls", RECORDING, "--scopes", scopes]).await;
    let command = "$ callward replay --calls orders.jsonl --scopes scopes.toml";
    shows(command, text(&done.stdout));
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

#[tokio::test]
async fn the_example_of_keys_prints_what_the_page_says() {
    let mut keys = String::new();
    let mut x = 1_u64;
    for _ in 0..10_000 {
        x = x * 16_807 % 2_147_483_647;
        let octave = 1 << (x % 11);
        writeln!(keys, "{}", octave + x / 11 % octave).unwrap();
    }
    let keys = file(&keys);
    let keys = keys.path().to_str().unwrap();
    let args = ["replay", "--keys", keys, "--capacity", "50,200,800"];
    let done = ends(&args).await;
    let printed = text(&done.stdout);
    let command = "$ callward replay --keys requests.keys --capacity 50,200,800";
    shows(command, printed);

    let headings = printed.lines().nth(1).unwrap().split_whitespace();
    let names = headings.skip(1).take_while(|heading| *heading != "to");
    let names: BTreeSet<_> = names.map(str::to_owned).collect();
    assert_eq!(column("`--policy` picks some.\n\n"), names);
}
