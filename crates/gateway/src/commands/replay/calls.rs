//! `callward replay --calls`: recorded calls through the cache and other policies.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use callward::cache::ToolScopes;
use callward::core::{Profile, ToolDefinition, ToolName};
use callward_replay::Capacity;
use callward_replay::calls::{self, Options};
use callward_replay::trace::Calls;

use super::named;
use crate::args::{Hints, Replay, ReplayCalls};
use crate::error::{AppError, Outcome};
use crate::listed::Listing;
use crate::output;

/// How many bad lines are reported one by one.
const TELL_BAD: u64 = 20;

pub(super) fn run(file: &Path, args: &Replay) -> Outcome {
    let options = options(&args.recorded)?;
    let recorded = Calls::open(file)?;
    let mut reported = 0;
    let replayed = calls::replay(recorded, &options, &mut |bad| {
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
        output::heading(&format!(
            "{}: {} calls, {} sessions",
            named(file),
            replayed.calls,
            replayed.sessions
        ));
        if replayed.calls == 0 {
            output::note(format_args!("note: {} has no calls", named(file)));
        }
        output::line(replayed.grid().to_string().trim_end());
    }
    Ok(ExitCode::from(u8::from(replayed.left_out > 0)))
}

fn options(args: &ReplayCalls) -> Result<Options, AppError> {
    let mut options = Options::default();
    options.infer = matches!(args.hints, Hints::Inferred);
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
    let definition = |found: &crate::listed::Found| {
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
