//! `--record`, `callward replay --calls` of what it wrote, and `docs/replay.md`: its tables are
//! complete, its output is real.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use flate2::read::MultiGzDecoder;
use futures_util::future::join_all;
use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::cli::cases;
use crate::support::{CALLWARD, Gateway, Pipe, SERVE, call, callward, ends, file, text};

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn count(lines: &[Value], status: &str) -> u64 {
    lines.iter().filter(|line| line["cache"] == status).count() as u64
}

async fn replayed(file: &str) -> Value {
    let output = ends(&["replay", "--json", "--calls", file]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_str(text(&output.stdout)).unwrap()
}

#[tokio::test]
async fn what_a_gateway_records_replays_as_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let path = path.to_str().unwrap();
    let command = callward(&[&SERVE[..], &["--record", path]].concat());
    let gateway = Gateway::started(command, None, None).await;

    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    for _ in 0..2 {
        call(&legacy, "orders__get_order", json!({"order_id": 1})).await;
    }
    for _ in 0..3 {
        gateway.order(2).await;
    }
    let set = json!({"order_id": 2, "status": "shipped"});
    let note = json!({"order_id": 2, "text": "a secret of the customer"});
    for (tool, arguments) in [("orders__set_status", set), ("orders__add_note", note)] {
        for _ in 0..2 {
            gateway.mcp(tool, arguments.clone()).await;
        }
    }
    let slow = json!({"region": "north", "delay_ms": 700});
    join_all((0..6).map(|_| gateway.mcp("orders__sales_report", slow.clone()))).await;
    for expected in ["miss", "hit"] {
        assert_eq!(gateway.call_order(2).await["cache"], expected);
    }
    gateway.order(99).await;
    drop(legacy);
    let said = gateway.stopped().await;
    assert!(said.contains("recorded 18 calls in "), "{said}");

    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    let recorded = std::fs::read_to_string(path).unwrap();
    assert!(!recorded.contains("secret"), "{recorded}");
    let recorded = lines(&recorded);
    assert_eq!(recorded.len(), 18);
    let (hits, joined) = (count(&recorded, "hit"), count(&recorded, "joined"));
    assert_eq!((hits, joined), (5, 5), "{recorded:#?}");

    let replayed = replayed(path).await;
    assert_eq!(replayed["calls"], 18);
    let ours = &replayed["policies"][0];
    for (figure, expected) in [
        ("hits", hits),
        ("joined", joined),
        ("stale", 0),
        ("writes_swallowed", 0),
        ("repeats_answered", 1),
    ] {
        assert_eq!(ours[figure], expected, "{figure}: {ours}");
    }
    let blind = &replayed["policies"][3];
    assert_eq!(blind["policy"], "blind, TTL");
    assert_eq!(blind["writes_swallowed"], 1, "{blind}");
}

#[tokio::test]
async fn a_wrapped_server_is_recorded_with_its_arguments_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl.gz");
    let path = path.to_str().unwrap();
    let run = ["run", "--ttl", "5m", "--record", path, "--record-arguments"];
    for _ in 0..2 {
        let mut pipe = Pipe::open(&[&run[..], &["--", CALLWARD, "sample"]].concat()).await;
        for id in [1, 1, 2] {
            pipe.call("get_order", json!({"order_id": id})).await;
        }
        assert!(pipe.close().await);
    }
    let mut recorded = String::new();
    MultiGzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut recorded)
        .unwrap();
    let recorded = lines(&recorded);
    let asked = recorded
        .iter()
        .map(|line| line["args"]["order_id"].as_u64().unwrap());
    assert!(asked.eq([1, 1, 2, 1, 1, 2]), "{recorded:?}");
    assert_eq!(recorded[0]["tool"], "get_order");
    assert_eq!(recorded[0]["effect"], "read_only");
    assert_ne!(recorded[0]["trace"], recorded[3]["trace"]);
    // each run of the gateway began with nothing
    assert_eq!(count(&recorded, "hit"), 2);
    assert_eq!(replayed(path).await["policies"][0]["hits"], 2);
}

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

#[tokio::test]
async fn the_page_lists_all_members_and_policies_and_its_config_is_right() {
    let (_, fields) = FORMAT.split_once("pub struct RecordedCall {").unwrap();
    let (fields, _) = fields.split_once("\n}").unwrap();
    let fields = fields.lines().filter_map(|line| {
        let field = line.trim().strip_prefix("pub ")?;
        Some(field.split_once(':')?.0.to_owned())
    });
    let heading = "One JSON object a line, in the order of the calls of each session.\n\n";
    assert_eq!(column(heading), fields.collect());

    let replayed = replayed(RECORDING).await;
    let policies = replayed["policies"].as_array().unwrap().iter();
    let names = policies.map(|figures| figures["policy"].as_str().unwrap().to_owned());
    assert_eq!(column("## Calls: the policies\n\n"), names.collect());

    let printed = PAGE.lines().find(|line| line.starts_with("capacity  "));
    let headings = printed.unwrap().split_whitespace();
    let names = headings.skip(1).take_while(|heading| *heading != "to");
    let names = names.map(str::to_owned);
    assert_eq!(column("`--policy` picks some.\n\n"), names.collect());

    let config = file(blocks("toml")[0]);
    let config = config.path().to_str().unwrap();
    let done = ends(&["serve", "--check", "--config", config]).await;
    // 1 is a program that is not installed here
    assert_ne!(done.status.code(), Some(2), "{}", text(&done.stderr));
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
