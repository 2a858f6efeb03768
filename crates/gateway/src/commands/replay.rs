//! `callward replay`: the cache on recorded traffic, beside other policies.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use callward::cache::ToolScopes;
use callward::core::{Profile, ToolDefinition, ToolName};
use callward_replay::calls::{Options, replay as replay_calls};
use callward_replay::trace::Calls;
use callward_replay::{Capacity, Comparison, KeyTrace, Policy};
use serde_json::json;

use crate::args::{Replay, ReplayCalls};
use crate::error::{AppError, Outcome};
use crate::listed::{Found, Listing};
use crate::output;
use crate::view::with_values;

pub(crate) async fn run(args: Replay) -> Outcome {
    super::on_a_thread(move || replay(&args)).await
}

fn replay(args: &Replay) -> Outcome {
    match (&args.keys, &args.recorded.calls) {
        (Some(file), _) => keys(file, args),
        (None, Some(file)) => calls(file, args),
        (None, None) => Err(AppError::Usage(
            "replay: name a file with --keys or --calls".into(),
        )),
    }
}

/// Returns the name of a file for messages.
fn named(file: &Path) -> String {
    if file.as_os_str() == "-" {
        return "standard input".into();
    }
    file.display().to_string()
}

/// Shows hit rates over capacities.
fn keys(file: &Path, args: &Replay) -> Outcome {
    let trace = KeyTrace::read(file)?;
    if trace.requests() == 0 {
        output::note(format_args!("note: {} has no keys", named(file)));
    }
    let capacities = capacities(&args.capacity, &trace)?;
    let policies = policies(&args.policy, &capacities)?;
    let found = Comparison::of(&trace, &capacities, &policies)?;
    if args.json {
        for figures in &found.figures {
            output::json(figures);
        }
        // without the gaps that there are not
        let summary = with_values(json!({
            "keys": file.display().to_string(),
            "requests": found.requests,
            "distinct": found.distinct,
            "to_lru": found.gap(Policy::Lru),
            "to_belady": found.gap(Policy::Belady),
        }));
        output::json(&json!({ "summary": summary }));
    } else {
        tell(&found, &args.policy);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the capacities that were asked for, from the least up, or a series that fits.
fn capacities(given: &[Capacity], trace: &KeyTrace) -> Result<Vec<Capacity>, AppError> {
    if given.is_empty() {
        return Ok(trace.capacities());
    }
    let mut capacities = given.to_vec();
    capacities.sort_unstable();
    capacities.dedup();
    let in_bytes = |capacity: &Capacity| matches!(capacity, Capacity::Bytes(_));
    if capacities.iter().any(in_bytes) && !capacities.iter().all(in_bytes) {
        return Err(AppError::Usage(
            "--capacity: either all in entries or all in bytes, or they cannot be compared".into(),
        ));
    }
    Ok(capacities)
}

/// Returns the policies that were asked for, or all that mean something.
fn policies(given: &[Policy], capacities: &[Capacity]) -> Result<Vec<Policy>, AppError> {
    let applies = |policy: &Policy| capacities.iter().all(|capacity| policy.applies(*capacity));
    if let Some(policy) = given.iter().find(|policy| !applies(policy)) {
        return Err(AppError::Usage(format!(
            "--policy {policy}: there is no optimum to find when entries have sizes; give a \
             capacity in entries"
        )));
    }
    let all = Policy::ALL.iter().copied();
    Ok(all
        .filter(|policy| given.contains(policy) || (given.is_empty() && applies(policy)))
        .collect())
}

fn tell(found: &Comparison, asked: &[Policy]) {
    output::heading(&format!(
        "{} requests for {} keys: hit rate in per cent",
        found.requests, found.distinct
    ));
    output::line(found.grid().to_string().trim_end());
    for (policy, against) in [
        (Policy::Lru, "against lru"),
        (Policy::Belady, "against belady"),
    ] {
        if let Some(gap) = found.gap(policy) {
            output::line(format_args!("{against}: {gap}"));
        }
    }
    let in_bytes = |capacity: &Capacity| matches!(capacity, Capacity::Bytes(_));
    if asked.is_empty() && found.capacities().iter().any(in_bytes) {
        output::line("belady is left out: there is no optimum to find when entries have sizes");
    }
}

/// How many bad lines are reported one by one.
const TELL_BAD: u64 = 20;

/// Shows recorded calls through the cache and other policies.
fn calls(file: &Path, args: &Replay) -> Outcome {
    let options = options(&args.recorded)?;
    let recorded = Calls::open(file)?;
    let mut reported = 0;
    let replayed = replay_calls(recorded, &options, &mut |bad| {
        reported += 1;
        if reported <= TELL_BAD {
            output::error(bad);
        }
    })?;
    if replayed.left_out > TELL_BAD {
        output::error(&format_args!("and {} more", replayed.left_out - TELL_BAD));
    }
    if args.json {
        output::json(&replayed);
    } else {
        let (name, calls, sessions) = (named(file), replayed.calls, replayed.sessions);
        output::heading(&format!("{name}: {calls} calls, {sessions} sessions"));
        if calls == 0 {
            output::note(format_args!("note: {name} has no calls"));
        }
        output::line(replayed.grid().to_string().trim_end());
    }
    Ok(ExitCode::from(u8::from(replayed.left_out > 0)))
}

fn options(args: &ReplayCalls) -> Result<Options, AppError> {
    let mut options = Options::default();
    options.infer = args.hints == "inferred";
    options.share_sessions = args.share_sessions;
    if let Some(file) = &args.tools {
        options.tools = definitions(file)?;
    }
    if let Some(file) = &args.scopes {
        options.scopes = scopes(file)?;
    }
    options.profile = Profile::standard();
    options.profile.read_ttl = args.ttl;
    options.ttl = args.ttl;
    options.capacity = Capacity::Bytes(args.max_bytes.as_u64());
    options.assumed_duration = args.assume_duration;
    options.gap = args.gap;
    Ok(options)
}

/// Reads listed tools; one that cannot be used is an error here: its plan would be guessed.
fn definitions(file: &Path) -> Result<Vec<ToolDefinition>, AppError> {
    let listing = Listing::of_file(file)?;
    let definition = |found: &Found| {
        let wrong =
            |why: &dyn std::fmt::Display| AppError::Usage(format!("{}: {why}", found.place));
        let tool = found.tool.as_ref().map_err(|fault| wrong(fault))?;
        ToolDefinition::from_json(tool.text.clone()).map_err(|error| wrong(&error))
    };
    listing.found.iter().map(definition).collect()
}

/// Reads which state each tool reads and writes.
fn scopes(file: &Path) -> Result<Vec<(ToolName, ToolScopes)>, AppError> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(AppError::io(format!("{name} cannot be read")))?;
    let tools: BTreeMap<ToolName, ToolScopes> =
        toml::from_str(&text).map_err(|error| AppError::Usage(format!("{name}: {error}")))?;
    Ok(tools.into_iter().collect())
}
