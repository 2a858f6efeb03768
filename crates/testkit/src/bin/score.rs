//! Measures inference: `score [--rules standard|neurolink] [--errors N] [--json] [FILE]`.
//!
//! `--errors` shows this many mistakes, the worst first; writes that would be called read-only are
//! always shown. Behind a figure stands how far it depends on which servers are in the file.
//!
//! FILE holds one tool a line, `{"server", "tool", "description", "input_schema", "declared"}`. By
//! default it is the recording that is beside the checkout, or the corpus of this crate where
//! there is none.

use std::error::Error;
use std::io::Write;

use callward_core::RuleSet;
use callward_testkit::{args::Args, score};

const USAGE: &str = "usage: score [--rules standard|neurolink] [--errors N] [--json] [FILE]";

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse(std::env::args().skip(1), &["--rules", "--errors"], USAGE)?;
    let rules = match args.value("--rules") {
        Some(name) => RuleSet::by_name(name).ok_or(USAGE)?,
        None => RuleSet::Standard,
    };
    let errors = args.number("--errors", 0)?;
    let (file, text) = args.read("data/tools-dev.jsonl", "corpus.jsonl")?;
    let cases = score::read(&text).map_err(|error| format!("{file}, {error}"))?;
    let score = score::score(&cases, rules);
    let mut out = std::io::stdout().lock();
    if args.json() {
        writeln!(out, "{}", score.to_json())?;
    } else {
        writeln!(out, "{file}, rules `{rules}`\n")?;
        let mut report = String::new();
        score.report(&mut report, errors)?;
        writeln!(out, "{report}")?;
    }
    Ok(())
}
