//! What a verdict costs: from a tool's name, description and schema to its plan.
//!
//! `cargo bench --bench inference [-- FILE]`. One thread. FILE holds tools in the format of
//! `crates/testkit/data/corpus.jsonl`, which is measured first; the variable `CALLWARD_BENCH_TOOLS`
//! names one too. Nothing is declared, so that everything has to be concluded.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and may panic"
)]

use std::collections::BTreeMap;
use std::hint::black_box;

use callward_core::infer::{self, Inference};
use callward_core::resolve::{Hints, resolve};
use callward_core::{
    Annotations, CallPlan, Inferred, Profile, Resolved, RuleSet, ServerId, Subject, ToolDefinition,
    Trust,
};
use callward_testkit::score::{self, Case};
use serde_json::json;
use tokio::time::Instant;

const MANY: usize = 100_000;
const ROUNDS: usize = 15;
const RULES: [RuleSet; 2] = [RuleSet::Standard, RuleSet::Neurolink];

/// A tool as its server lists it, before and after reading.
struct Listed {
    server: ServerId,
    json: String,
    tool: ToolDefinition,
}

impl Listed {
    /// `place`, if given, makes the name one of its own.
    fn new(case: &Case, place: Option<usize>) -> Self {
        let name = place.map_or_else(
            || case.tool.clone(),
            |place| format!("{}_{place}", case.tool),
        );
        let json = json!({
            "name": name,
            "title": case.title,
            "description": case.description,
            "inputSchema": case.input_schema,
        })
        .to_string();
        Self {
            server: ServerId::new(&case.server).unwrap(),
            tool: ToolDefinition::from_json(json.clone()).unwrap(),
            json,
        }
    }

    fn infer(&self, rules: RuleSet) -> Inferred {
        rules.infer(&Subject::of(&self.tool, Some(&self.server)))
    }

    fn resolve(&self, rules: RuleSet) -> Resolved {
        let nothing = Annotations::default();
        resolve(&Hints::new(&self.infer(rules), &nothing, Trust::Standard))
    }

    fn plan(&self, rules: RuleSet) -> CallPlan {
        CallPlan::derive(&self.resolve(rules), &Profile::standard())
    }

    /// The whole way of a listing: read, check, conclude, weigh, plan.
    fn read_and_plan(&self, rules: RuleSet) -> (ToolDefinition, CallPlan) {
        let tool = ToolDefinition::from_json(self.json.clone()).unwrap();
        black_box(tool.annotations().validate());
        let nothing = Annotations::default();
        let inferred = rules.infer(&Subject::of(&tool, Some(&self.server)));
        let resolved = resolve(&Hints::new(&inferred, &nothing, Trust::Standard));
        (tool, CallPlan::derive(&resolved, &Profile::standard()))
    }
}

fn main() {
    let own = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/crates/testkit/data/corpus.jsonl"
    );
    // cargo itself passes `--bench`.
    let given = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"));
    let named = std::env::var("CALLWARD_BENCH_TOOLS").ok();
    for file in [own.to_owned()].into_iter().chain(given).chain(named) {
        let text = std::fs::read_to_string(&file).unwrap();
        let cases = score::read(&text).unwrap();
        println!("{} tools of {file}\n", cases.len());
        table(&cases);
        println!();
    }
}

fn table(cases: &[Case]) {
    let tools: Vec<Listed> = cases.iter().map(|case| Listed::new(case, None)).collect();
    let many: Vec<Listed> = (cases.iter().cycle().enumerate().take(MANY))
        .map(|(place, case)| Listed::new(case, Some(place)))
        .collect();
    println!("{:44} {:>10} {:>10}", "", RULES[0], RULES[1]);
    let each = |one: &dyn Fn(&Listed, RuleSet)| {
        RULES.map(|rules| nanos(|| tools.iter().for_each(|tool| one(tool, rules))) / count(&tools))
    };
    row(
        "infer, ns per tool",
        each(&|tool, rules| drop(black_box(tool.infer(rules)))),
    );
    let servers = by_server(&tools);
    row(
        "infer a server's tools together, ns per tool",
        RULES.map(|rules| {
            let all = || servers.iter().map(|tools| infer_together(tools, rules));
            nanos(|| all().collect::<Vec<_>>()) / count(&tools)
        }),
    );
    row(
        "infer and resolve, ns per tool",
        each(&|tool, rules| drop(black_box(tool.resolve(rules)))),
    );
    row(
        "infer, resolve and plan, ns per tool",
        each(&|tool, rules| drop(black_box(tool.plan(rules)))),
    );
    row(
        "read JSON, check, infer, resolve, plan, ns",
        each(&|tool, rules| drop(black_box(tool.read_and_plan(rules)))),
    );
    // One tool is a typical one: the one in the middle. The mean hangs on a few with long schemas.
    let sorted = RULES.map(|rules| {
        let mut nanos: Vec<f64> = tools
            .iter()
            .map(|tool| nanos(|| tool.infer(rules)))
            .collect();
        nanos.sort_by(f64::total_cmp);
        nanos
    });
    row(
        "infer, the tool in the middle, ns",
        [0, 1].map(|at| sorted[at].get(sorted[at].len() / 2).copied().unwrap_or(0.0)),
    );
    row(
        "infer, the costliest tool, ns",
        [0, 1].map(|at| sorted[at].last().copied().unwrap_or(0.0)),
    );
    row(
        "annotate and plan 100,000 tools, ms",
        RULES.map(|rules| {
            nanos(|| many.iter().map(|tool| tool.plan(rules)).collect::<Vec<_>>()) / 1e6
        }),
    );
    row(
        "the same, from the listed JSON, ms",
        RULES.map(|rules| {
            let all = || many.iter().map(|tool| tool.read_and_plan(rules));
            nanos(|| all().collect::<Vec<_>>()) / 1e6
        }),
    );
}

/// The tools of each server, as they are listed together.
fn by_server(tools: &[Listed]) -> Vec<Vec<&Listed>> {
    let mut servers: BTreeMap<&ServerId, Vec<&Listed>> = BTreeMap::new();
    for tool in tools {
        servers.entry(&tool.server).or_default().push(tool);
    }
    servers.into_values().collect()
}

fn infer_together(tools: &[&Listed], rules: RuleSet) -> Vec<Inferred> {
    let nothing = Annotations::default();
    let listed: Vec<infer::Listed<'_>> = (tools.iter())
        .map(|one| infer::Listed::new(Subject::of(&one.tool, Some(&one.server)), &nothing))
        .collect();
    Inference::new(rules).infer_all(&listed)
}

fn row(question: &str, [ours, theirs]: [f64; 2]) {
    println!("{question:44} {ours:>10.0} {theirs:>10.0}");
}

fn count(tools: &[Listed]) -> f64 {
    f64::from(u32::try_from(tools.len()).unwrap())
}

/// Nanoseconds of one run: the best of several rounds, for the others were disturbed. What is too
/// short for the clock is run many times a round.
fn nanos<T>(mut work: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    drop(black_box(work()));
    let once = start.elapsed().as_nanos().max(1);
    let times = u32::try_from(2_000_000 / once).unwrap().clamp(1, 10_000);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..times {
            drop(black_box(work()));
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(times));
    }
    best
}
