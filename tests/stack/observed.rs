//! Six servers, five of which do what their tools' hints do not say.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use callward::cache::CacheConfig;
use callward::core::{Field, FreshnessMode, Limits, Source};
use callward::{Annotations, Effect, Server, Stack, Tool, ToolSpec, Tools};
use fastrand::Rng;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// The servers, each with the tool that is looked at, and its share of the calls.
const SERVERS: [(&str, &str, usize); 6] = [
    ("clock", "read_sensor", 1),
    ("cursor", "fetch_items", 1),
    ("fails", "set_user", 1),
    ("honest", "get_order", 20),
    ("slow", "get_report", 1),
    ("writes", "get_status", 6),
];
/// The honest server gets 10,000 of them.
const CALLS: usize = 15_000;

/// What a server keeps: changed by its tools, and by others.
#[derive(Debug, Default)]
struct State {
    value: AtomicU64,
    calls: AtomicU64,
    made: parking_lot::Mutex<Vec<Value>>,
}

async fn answer(tool: &'static str, state: Arc<State>, arguments: Value) -> Result<String, String> {
    let value = state.value.load(Relaxed);
    Ok(match tool {
        "read_sensor" => format!("{:?}", Instant::now()),
        "fetch_items" => state.calls.fetch_add(1, Relaxed).to_string(),
        "get_status" => state.value.fetch_add(1, Relaxed).to_string(),
        "get_report" => {
            sleep(Duration::from_secs(4)).await;
            value.to_string()
        }
        "set_user" if state.made.lock().contains(&arguments) => {
            return Err("the user already exists".into());
        }
        "set_user" => {
            state.made.lock().push(arguments);
            "made".into()
        }
        _ => value.to_string(),
    })
}

fn server(id: &str, tool: &'static str, description: &str, state: &Arc<State>) -> Server {
    let mut tools = Tools::new(id).unwrap();
    for name in [tool, "get_a", "get_b", "get_c"] {
        let hints = match name {
            "set_user" => Annotations::default()
                .with_destructive(false)
                .with_idempotent(true),
            _ => Annotations::default().with_read_only(true),
        };
        let spec = ToolSpec::new(name)
            .description(description)
            .annotations(hints);
        let state = state.clone();
        let run = move |arguments| answer(name, state.clone(), arguments);
        tools = tools.tool(spec, run).unwrap();
    }
    Server::new(tools)
}

/// Starts all servers, with evidence in this file.
async fn start(file: &Path, description: &str, states: &[Arc<State>]) -> Stack {
    let mut cache = CacheConfig::default();
    cache.evidence_file = Some(file.to_owned());
    let builder = Stack::builder().freshness(FreshnessMode::Learned);
    let mut builder = builder.cache(cache).loop_guard(None);
    for ((id, tool, _), state) in SERVERS.into_iter().zip(states) {
        builder = builder.server(server(id, tool, description, state));
    }
    builder.build().await.unwrap()
}

/// What is observed of each server's tools, with the reasons.
fn observed(stack: &Stack) -> Vec<(String, Field, String)> {
    let mut seen = Vec::new();
    for entry in stack.catalogue().entries() {
        let tool = entry.tool();
        for from in &tool.resolved.provenance {
            if from.source == Source::Observed {
                let name = format!("{}.{}", tool.set(), tool.name());
                seen.push((name, from.field, from.reason.to_string()));
            }
        }
    }
    seen.sort();
    seen
}

fn expected() -> Vec<(String, Field)> {
    vec![
        ("fails.set_user".into(), Field::Idempotent),
        ("writes.get_status".into(), Field::ReadOnly),
    ]
}

fn names(seen: &[(String, Field, String)]) -> Vec<(String, Field)> {
    let names = seen.iter().map(|(tool, field, _)| (tool.clone(), *field));
    names.collect()
}

/// Prints where the sources ended, as a table of `docs/annotations.md`.
#[expect(clippy::print_stdout, reason = "a table to read")]
fn print(stack: &Stack) {
    let lifetimes = stack.learned_lifetimes();
    println!("| tool | effect | source | repeated reads that differ | first backoff |");
    for (id, tool, _) in SERVERS {
        let of = find(stack, &format!("{id}.{tool}"));
        let field = match tool {
            "set_user" => Field::Idempotent,
            _ => Field::ReadOnly,
        };
        let learned = lifetimes.get(&(of.set().clone(), of.name().clone()));
        let differ = learned.map_or_else(String::new, |it| {
            format!("{} of {}", it.different, it.repeats)
        });
        println!(
            "| `{id}`: `{tool}` | {} | {} | {differ} | {:?} |",
            of.plan().effect,
            of.resolved.why(field),
            first_backoff(&of)
        );
    }
}

fn find(stack: &Stack, name: &str) -> Arc<Tool> {
    let catalogue = stack.catalogue();
    catalogue.find_any(name).unwrap().tool().clone()
}

/// The first pause before a retry: the plan's, or what is learned.
fn first_backoff(tool: &Tool) -> Duration {
    let usual = tool.attempts().and_then(|attempts| attempts.usual());
    let learned = usual.map(Limits::backoff_for).unwrap_or_default();
    learned.max(tool.plan().limits.first_backoff)
}

#[tokio::test(start_paused = true)]
async fn each_server_that_lies_gets_the_plan_of_what_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evidence");
    let states: Vec<Arc<State>> = SERVERS.iter().map(|_| Arc::default()).collect();
    let stack = start(&file, "", &states).await;
    let mut rng = Rng::with_seed(7);
    let shares = SERVERS.iter().enumerate();
    let shares: Vec<usize> = shares
        .flat_map(|(of, (.., share))| vec![of; *share])
        .collect();
    for call in 0..CALLS {
        let of = shares[call * 7 % shares.len()];
        let (id, tool, _) = SERVERS[of];
        sleep(Duration::from_secs_f64(rng.f64().powi(3))).await;
        // others write to the honest server, and more rarely to those that lie
        let often = if id == "honest" { 10 } else { 200 };
        states[of]
            .value
            .fetch_add(u64::from(rng.u64(..often) == 0), Relaxed);
        let tool = [tool, "get_a", "get_b", "get_c"][rng.usize(..4)];
        let arguments = json!({ "id": if tool == "set_user" { call / 1_500 } else { 1 } });
        let _fails_if_made_before = stack
            .call(&format!("{id}.{tool}"), arguments)
            .await
            .unwrap();
    }
    print(&stack);
    let seen = observed(&stack);
    assert_eq!(names(&seen), expected());
    let effect = |stack: &Stack, name: &str| find(stack, name).plan().effect;
    let backoff = |name: &str| first_backoff(&find(&stack, name)).as_millis();
    assert_eq!(backoff("slow.get_report"), 2_000);
    assert_eq!(backoff("honest.get_order"), 100);
    assert_eq!(effect(&stack, "writes.get_status"), Effect::Mutating);
    assert_eq!(effect(&stack, "honest.get_order"), Effect::ReadOnly);
    assert_eq!(effect(&stack, "fails.set_user"), Effect::Mutating);
    let explained = stack.explain("writes.get_status").unwrap().to_string();
    assert!(explained.contains(&seen[1].2), "{explained}");
    let lifetimes = stack.learned_lifetimes();
    for (set, tool, _) in &SERVERS[..2] {
        let learned = &lifetimes[&(set.parse().unwrap(), tool.parse().unwrap())];
        assert!(
            learned.different > 20 && learned.served.is_zero(),
            "{set}: {learned}"
        );
    }

    assert!(stack.cache().save_evidence().unwrap());
    stack.shutdown().await;
    drop(stack);
    let again = start(&file, "", &states).await;
    assert_eq!(observed(&again), seen);
    again.shutdown().await;
    drop(again);
    let changed = start(&file, "another description", &states).await;
    assert_eq!(observed(&changed), []);
}
