//! `callward replay --keys`: hit rates over capacities.

use std::path::Path;
use std::process::ExitCode;

use callward_replay::{Capacity, Comparison, KeyTrace, Policy};
use serde_json::{Value, json};

use crate::args::Replay;
use crate::commands::replay::named;
use crate::error::{AppError, Outcome};
use crate::output;
use crate::view::with_values;

pub(crate) fn run(file: &Path, args: &Replay) -> Outcome {
    let trace = KeyTrace::read(file)?;
    if trace.requests() == 0 {
        output::note(format_args!("note: {} has no keys", named(file)));
    }
    let capacities = capacities(&args.capacity, &trace)?;
    let policies = policies(&args.policy, &capacities)?;
    let found = Comparison::of(&trace, &capacities, &policies)?;
    let name = file.display().to_string();
    if args.json {
        for figures in &found.figures {
            output::json(figures);
        }
        output::json(&json!({ "summary": sum(&name, &found) }));
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

/// The sum at the end, without the gaps that there are not.
fn sum(keys: &str, found: &Comparison) -> Value {
    with_values(json!({
        "keys": keys,
        "requests": found.requests,
        "distinct": found.distinct,
        "to_lru": found.gap(Policy::Lru),
        "to_belady": found.gap(Policy::Belady),
    }))
}
