//! The rows as tables, and as lines for machines.

use std::fs;
use std::path::Path;

use callward_replay::report::Grid;
use serde_json::json;

use crate::rows::{DISTINCT, Part, Row, SIZES, TOOLS};

/// The row that stands for no stack at all.
pub(crate) const SERVICE: &str = "the service alone";

/// At most this many times the floor for a cached call.
const GOAL_CACHED: f64 = 1.6;
/// At most this many nanoseconds for it where the floor is 300.
const GOAL_AT_300: f64 = 500.0;
/// At most this many nanoseconds more than the service alone for one that passes the cache.
const GOAL_UNCACHED: f64 = 1500.0;
/// At most so much of the throughput may be lost by having many tools, in per cent.
const GOAL_TOOLS: f64 = 5.0;

/// Prints all tables, and leaves them where the page of all benchmarks is made from.
pub(crate) fn tables(rows: &[Row], measured: bool) -> Result<(), String> {
    let reported = text(rows);
    println!("{reported}");
    if !measured {
        return Ok(());
    }
    // `target/tmp`, wherever `target` is
    let reports = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("bench-reports");
    let page = reports.join("stack_cost.md");
    let written = fs::create_dir_all(&reports).and_then(|()| {
        let command = "cargo bench --features otlp --bench stack_cost";
        fs::write(&page, format!("`{command}`\n\n```text\n{reported}```\n"))
    });
    written.map_err(|fault| format!("{}: {fault}", page.display()))
}

fn text(rows: &[Row]) -> String {
    let mut reported = format!("{}\n\n{}\n", machine(), whole(rows));
    for (part, last, title) in [
        (
            Part::Hit,
            "cached call, prepared, 1024 distinct",
            "a cached call, by layers",
        ),
        (
            Part::Passed,
            "write, prepared",
            "an uncached call, by layers",
        ),
    ] {
        if let Some(shares) = shares(rows, part, last, title) {
            reported += &format!("{shares}\n");
        }
    }
    for verdict in verdicts(rows) {
        reported += &verdict;
        reported.push('\n');
    }
    reported
}

/// Whole calls.
fn whole(rows: &[Row]) -> Grid {
    let headings = [
        "ns a call",
        "1 thread",
        "±",
        "times the floor",
        "over the service",
        "2 threads",
        "allocations",
        "bytes",
    ];
    let mut grid = Grid::new(&headings);
    let alone = find(rows, Part::Service).map_or(f64::NAN, |row| row.subject.nanos());
    for row in rows {
        if matches!(row.part, Part::Hit | Part::Passed) {
            continue;
        }
        let Some((nanos, spread)) = row.subject.median(1) else {
            continue;
        };
        let times = floor(rows, row).map(|floor| nanos / floor);
        let over = match row.part {
            Part::Uncached | Part::Watched => Some(nanos - alone),
            _ => None,
        };
        let two = row.subject.median(2).map(|(nanos, _)| nanos);
        grid.rows.push(vec![
            row.name.to_string(),
            number(Some(nanos)),
            number(Some(spread)),
            match row.part {
                Part::Cached(_) => goal(times, GOAL_CACHED, 2),
                _ => times.map_or_else(String::new, |times| format!("{times:.2}")),
            },
            match row.part {
                Part::Watched => number(over),
                _ => goal(over, GOAL_UNCACHED, 0),
            },
            number(two),
            format!("{:.2}", row.subject.allocations),
            format!("{:.0}", row.subject.bytes),
        ]);
    }
    grid
}

/// What each layer takes of a call: what its row takes longer than the one before.
fn shares(rows: &[Row], part: Part, last: &str, title: &'static str) -> Option<Grid> {
    let mut steps: Vec<(&str, f64)> = Vec::new();
    if part == Part::Hit {
        let of = |part| Some(find(rows, part)?.subject.nanos());
        let (hash, get) = (of(Part::Hash(DISTINCT))?, of(Part::Get(DISTINCT))?);
        steps.extend([("bare keyed hash", hash), ("bare moka get", hash + get)]);
    }
    let layers = rows.iter().filter(|row| row.part == part);
    steps.extend(layers.map(|row| (row.name.as_str(), row.subject.nanos())));
    let whole = rows.iter().find(|row| row.name == last)?.subject.nanos();
    steps.push(("the stack around its layers", whole));
    let mut grid = Grid::new(&[title, "ns up to here", "ns of its own", "share"]);
    let mut before = 0.0;
    for (name, nanos) in steps {
        let own = nanos - before;
        before = nanos;
        grid.rows.push(vec![
            name.to_string(),
            number(Some(nanos)),
            number(Some(own)),
            format!("{:.0} %", 100.0 * own / whole),
        ]);
    }
    Some(grid)
}

/// Says of each promise whether this run keeps it.
fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut verdicts = Vec::new();
    for distinct in SIZES {
        for row in rows.iter().filter(|row| row.part == Part::Cached(distinct)) {
            let Some(floor) = floor(rows, row) else {
                continue;
            };
            let (name, nanos) = (&row.name, row.subject.nanos());
            let times = nanos / floor;
            verdicts.push(format!(
                "{name}: {nanos:.0} ns, {times:.2} times the floor of {floor:.0}; \
                 {:.0} ns where that is 300: {}",
                300.0 * times,
                kept(times <= GOAL_CACHED && 300.0 * times <= GOAL_AT_300),
            ));
        }
    }
    let alone = find(rows, Part::Service).map_or(f64::NAN, |row| row.subject.nanos());
    for row in rows.iter().filter(|row| row.part == Part::Uncached) {
        let over = row.subject.nanos() - alone;
        let kept = kept(over <= GOAL_UNCACHED);
        verdicts.push(format!(
            "{}: {over:.0} ns over the service: {kept}",
            row.name
        ));
    }
    let kinds: [fn(usize) -> Part; 2] = [Part::HitsAmong, Part::WritesAmong];
    for kind in kinds {
        let [few, many] = TOOLS.map(|tools| find(rows, kind(tools)));
        let (Some(few), Some(many)) = (few, many) else {
            continue;
        };
        // round by round: what disturbs one disturbs the other
        let mut lost: Vec<f64> = few
            .subject
            .rounds()
            .zip(many.subject.rounds())
            .map(|(few, many)| 100.0 * (1.0 - few / many))
            .collect();
        lost.sort_by(f64::total_cmp);
        let Some(median) = lost.get(lost.len() / 2) else {
            continue;
        };
        verdicts.push(format!(
            "{}: {median:.1} % of the throughput lost: {}",
            many.name,
            kept(*median <= GOAL_TOOLS)
        ));
    }
    verdicts
}

/// Prints a line for each row.
pub(crate) fn json(rows: &[Row]) {
    for row in rows {
        let (one, two) = (row.subject.median(1), row.subject.median(2));
        let line = json!({
            "name": row.name,
            "part": format!("{:?}", row.part),
            "ns": one.map(|found| found.0),
            "ns_spread": one.map(|found| found.1),
            "ns_two_threads": two.map(|found| found.0),
            "ns_floor": floor(rows, row),
            "allocations": row.subject.allocations,
            "bytes": row.subject.bytes,
            "machine": machine(),
        });
        println!("{line}");
    }
}

fn find(rows: &[Row], part: Part) -> Option<&Row> {
    rows.iter().find(|row| row.part == part)
}

/// The least that a row takes: for a cached call a hash and a look-up, for one that is kept what a
/// call past the cache takes besides, and an entry put.
fn floor(rows: &[Row], row: &Row) -> Option<f64> {
    let of = |part| Some(find(rows, part)?.subject.nanos());
    let looked_up = |distinct| Some(of(Part::Hash(distinct))? + of(Part::Get(distinct))?);
    match row.part {
        Part::Cached(distinct) => looked_up(distinct),
        Part::Kept => Some(looked_up(DISTINCT)? + of(Part::Uncached)? + of(Part::Put)?),
        _ => None,
    }
}

const fn kept(is_kept: bool) -> &'static str {
    if is_kept { "kept" } else { "not kept" }
}

fn number(figure: Option<f64>) -> String {
    figure.map_or_else(String::new, |figure| format!("{figure:.0}"))
}

fn goal(figure: Option<f64>, most: f64, digits: usize) -> String {
    match figure {
        Some(figure) if figure <= most => format!("{figure:.digits$}"),
        Some(figure) => format!("{figure:.digits$} !"),
        None => String::new(),
    }
}

fn machine() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{processors} processors, load {load}")
}
