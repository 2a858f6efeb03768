//! Measures inference. Writes that would be called read-only are always shown. Behind a figure
//! stands how far it depends on which servers are in the file.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

use callward_core::RuleSet;
use callward_testkit::{recorded, score};
use clap::Parser;

/// Measures inference on tools whose authors declared what they are
#[derive(Parser)]
struct Args {
    /// `standard` or `neurolink`
    #[arg(long, default_value = "standard", value_parser = rules)]
    rules: RuleSet,
    /// How many mistakes to show, the worst first
    #[arg(long, default_value_t = 0)]
    errors: usize,
    #[arg(long)]
    json: bool,
    /// Score each server without the verbs that only its tools have in their names
    #[arg(long)]
    without_own: bool,
    /// A tool a line, `{"server", "tool", "description", "input_schema", "declared"}`. Default: the
    /// recording that is beside the checkout, or the corpus of this crate where there is none
    file: Option<PathBuf>,
}

fn rules(name: &str) -> Result<RuleSet, &'static str> {
    RuleSet::by_name(name).ok_or("expected standard or neurolink")
}

fn main() -> Result<(), Box<dyn Error>> {
    let Args {
        rules,
        errors,
        json,
        without_own,
        file,
    } = Args::parse();
    let (file, text) = recorded::read(file, "data/tools-dev.jsonl", "corpus.jsonl")?;
    let cases = score::read(&text).map_err(|error| format!("{file}, {error}"))?;
    let score = match without_own {
        true => score::score_without_own(&cases, rules),
        false => score::score(&cases, rules),
    };
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", score.to_json())?;
    } else {
        writeln!(out, "{file}, rules `{rules}`\n")?;
        let mut report = String::new();
        score.report(&mut report, errors)?;
        writeln!(out, "{report}")?;
    }
    Ok(())
}
