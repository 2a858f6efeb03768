//! The catalogue of tools at 100, 10,000 and 100,000 tools: look-up, swap, search and memory.
//!
//! `cargo bench -p callward-registry --bench catalogue`, on Linux. Each server has a set of its own
//! with 100 tools of some 150 bytes. *Swap* is the registration of one server with one changed
//! tool,
//! from reading its list to the new snapshot. *Index* is the first search, and *index after a swap*
//! the first one after a swap. Figures are the fastest of 21 rounds, which other load disturbs
//! least. Memory is how much more resident memory the process has than before the tools. The table
//! is left in `target/bench-reports/catalogue.md`.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and its numbers are small"
)]

use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use callward_core::{Instances, ReplicaSetId, ServerId, ToolDefinition};
use callward_registry::{Query, Registry, SetOptions};

/// How many tools each server has.
const TOOLS: usize = 100;
const SIZES: [usize; 3] = [100, 10_000, 100_000];
const ROUNDS: usize = 21;

const VERBS: [&str; 10] = [
    "get", "list", "search", "create", "update", "delete", "send", "count", "archive", "export",
];
const THINGS: [&str; 10] = [
    "order", "invoice", "customer", "ticket", "branch", "file", "table", "message", "event", "user",
];

/// The searches, as parameters of a URL.
const SEARCHES: [(&str, &[(&str, &str)]); 6] = [
    ("by a part of the name", &[("name", "ticket_7")]),
    ("by three words", &[("text", "archive customer tickets")]),
    (
        "by hint and category",
        &[("readOnly", "true"), ("category", "version-control")],
    ),
    ("all, by name", &[("sort", "name")]),
    ("all, by calls", &[("sort", "calls"), ("desc", "true")]),
    ("one server", &[("server", "s7")]),
];

fn main() -> Result<(), String> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    match &args[..] {
        // in this process
        [flag, tools] if flag == "--tools" => {
            print!(
                "{}",
                measure(tools.parse().map_err(|_| "--tools: not a number")?)
            );
            return Ok(());
        }
        // `cargo test --benches` does not say so: the smallest catalogue shows that it runs
        [flag] if flag == "--bench" => {}
        _ => {
            print!("{}", measure(SIZES[0]));
            return Ok(());
        }
    }
    // a process each: memory that another one gave back is not counted
    let mut columns = Vec::new();
    for tools in SIZES {
        let mut own = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
        let output = own.args(["--tools", &tools.to_string()]).output();
        let output = output.map_err(|error| error.to_string())?;
        columns.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let mut report = format!(
        "{:<28}{:>12}{:>12}{:>12}\n",
        "tools", SIZES[0], SIZES[1], SIZES[2]
    );
    for rows in 0..columns[0].lines().count() {
        let cells = columns
            .iter()
            .filter_map(|column| column.lines().nth(rows)?.split_once(": "));
        for (at, (name, value)) in cells.enumerate() {
            let name = if at == 0 {
                format!("{name:<28}")
            } else {
                String::new()
            };
            write!(report, "{name}{value:>12}").unwrap();
        }
        report.push('\n');
    }
    print!("{report}");
    // `target/tmp`, wherever `target` is
    let reports = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("bench-reports");
    let page = reports.join("catalogue.md");
    let command = "cargo bench -p callward-registry --bench catalogue";
    let written = fs::create_dir_all(&reports)
        .and_then(|()| fs::write(&page, format!("`{command}`\n\n```text\n{report}```\n")));
    written.map_err(|error| format!("{}: {error}", page.display()))
}

fn measure(tools: usize) -> String {
    let mut report = String::new();
    let mut row = |name: &str, value: String| writeln!(report, "{name}: {value}").unwrap();
    let before = resident();
    let registry = Registry::new();
    let started = Instant::now();
    for server in 0..tools / TOOLS {
        register(&registry, server, "first");
    }
    row("register all", millis(started.elapsed()));
    assert_eq!(registry.catalogue().entries().len(), tools);
    let searched = |query: &Query| {
        let catalogue = registry.catalogue();
        let started = Instant::now();
        black_box(catalogue.search(query, |_| true, |_| true));
        started.elapsed()
    };
    let kept = resident();
    let mut first = Query::default();
    first.limit = Some(20);
    row("index", millis(searched(&first)));
    let indexed = resident();
    let name = |number: usize, mark: &str| {
        let (server, number) = (number / TOOLS % (tools / TOOLS), number % TOOLS);
        format!("s{server}{mark}{}", tool_name(number))
    };
    for (title, mark) in [("look-up by name", "__"), ("look-up by set.tool", ".")] {
        let names: Vec<_> = (0..1000).map(|number| name(number * 7919, mark)).collect();
        let catalogue = registry.catalogue();
        let looked_up = fastest(|| {
            let started = Instant::now();
            for name in &names {
                assert!(catalogue.find(black_box(name)).is_some());
            }
            started.elapsed()
        });
        row(title, format!("{} ns", looked_up.as_nanos() / 1000));
    }
    let mut swaps = 0;
    let mut after = Vec::new();
    let swap = fastest(|| {
        swaps += 1;
        let server = swaps * 31 % (tools / TOOLS);
        let started = Instant::now();
        register(&registry, server, &format!("swap {swaps}"));
        let took = started.elapsed();
        after.push(searched(&first));
        took
    });
    row("swap", millis(swap));
    after.sort_unstable();
    row("index after a swap", millis(after[0]));
    for (title, fields) in SEARCHES {
        let mut query = first.clone();
        for (field, value) in fields {
            query.set(field, value).unwrap();
        }
        searched(&query);
        row(
            &format!("search {title}"),
            millis(fastest(|| searched(&query))),
        );
    }
    row("memory", size(kept - before));
    row("memory of the index", size(indexed - kept));
    report
}

/// Registers a server of its own set, whose first tool has this description.
fn register(registry: &Registry, server: usize, description: &str) {
    let id = format!("s{server}");
    let (set, server) = (ReplicaSetId::new(&id).unwrap(), ServerId::new(&id).unwrap());
    let mut options = SetOptions::default();
    options.prefix = Some(id);
    registry.change_options(&set, options);
    let tools = (0..TOOLS).map(|number| {
        let name = tool_name(number);
        let description = match number {
            0 => description.to_owned(),
            _ => format!("{} one {}", VERBS[number / 10], THINGS[number % 10]),
        };
        let text = format!(
            r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object","properties":{{"id":{{"type":"string"}}}}}}}}"#
        );
        ToolDefinition::from_json(text.into_bytes().into_boxed_slice()).unwrap()
    });
    registry.register(&set, &server, tools.collect(), Instances::Shared);
}

fn tool_name(number: usize) -> String {
    format!(
        "{}_{}_{}",
        VERBS[number / 10],
        THINGS[number % 10],
        number / 10
    )
}

fn fastest(mut round: impl FnMut() -> Duration) -> Duration {
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort_unstable();
    rounds[0]
}

fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Returns the resident memory of this process.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}
