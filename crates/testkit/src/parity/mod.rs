//! NeuroLink's recorded answers beside ours.
//!
//! A case is one line, `{"fn", "input", "output"}`: a function of NeuroLink, what it was given and
//! what it answered. Ours is the function of `neurolink` with its name; what it routes, our router
//! routes. What has no counterpart is skipped and counted.
//!
//! Some deviations are meant, and pass: see [`Deviation`]. Each is counted.

mod answer;
mod deviation;
mod hints;
mod neurolink;
mod route;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use answer::{Answer, answer};
pub use deviation::Deviation;

/// A value, or what is wrong with a case.
type Fallible<T> = Result<T, Box<dyn Error>>;

/// One recorded call.
#[derive(Deserialize)]
struct Case {
    #[serde(rename = "fn")]
    function: String,
    input: Value,
    output: Value,
}

/// A case where we answer otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The line of the case, from one.
    pub line: usize,
    /// The function's name.
    pub function: String,
    /// What it was given.
    pub input: Value,
    /// NeuroLink's answer, or nothing where the line is not a case.
    pub theirs: Value,
    /// Ours, or what is wrong with the case.
    pub ours: Value,
}

/// What came of all cases.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Parity {
    /// Passed cases, by function.
    pub passed: BTreeMap<String, usize>,
    /// Skipped cases, by function.
    pub skipped: BTreeMap<String, usize>,
    /// In how many of the passed cases we answer otherwise and mean it, by reason.
    pub deviations: BTreeMap<Deviation, usize>,
    /// Failed cases.
    pub failed: Vec<Difference>,
}

impl Parity {
    /// Runs all cases of a text, one a line. A line that is not a case is a failed one.
    pub fn run(cases: &str) -> Self {
        let mut parity = Self::default();
        for (at, line) in cases.lines().enumerate() {
            if !line.trim().is_empty() {
                parity.case(at + 1, line);
            }
        }
        parity
    }

    fn case(&mut self, line: usize, text: &str) {
        let Case {
            function,
            input,
            output,
        } = match serde_json::from_str(text) {
            Ok(case) => case,
            Err(error) => {
                self.failed.push(Difference {
                    line,
                    function: "?".into(),
                    input: text.into(),
                    theirs: Value::Null,
                    ours: error.to_string().into(),
                });
                return;
            }
        };
        let theirs = hints::plain(output);
        let ours = match answer(&function, &input, &theirs) {
            Ok(Answer::Skipped) => {
                *self.skipped.entry(function).or_default() += 1;
                return;
            }
            Ok(Answer::Otherwise(reasons)) => {
                for reason in reasons {
                    *self.deviations.entry(reason).or_default() += 1;
                }
                *self.passed.entry(function).or_default() += 1;
                return;
            }
            Ok(Answer::Is(ours)) => hints::plain(ours),
            Err(error) => json!({ "error": error.to_string() }),
        };
        if ours == theirs {
            *self.passed.entry(function).or_default() += 1;
        } else {
            self.failed.push(Difference {
                line,
                function,
                input,
                theirs,
                ours,
            });
        }
    }

    /// Returns how many cases passed.
    pub fn count_passed(&self) -> usize {
        self.passed.values().sum()
    }
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Difference {
            line,
            function,
            input,
            theirs,
            ours,
        } in &self.failed
        {
            writeln!(f, "line {line}: {function} of {input}")?;
            writeln!(f, "  theirs: {theirs}\n  ours:   {ours}")?;
        }
        for (function, count) in &self.passed {
            writeln!(f, "{function}: {count} passed")?;
        }
        for (function, count) in &self.skipped {
            writeln!(f, "{function}: {count} skipped")?;
        }
        for (deviation, count) in &self.deviations {
            let meaning = deviation.meaning();
            writeln!(f, "{count} of the passed with a deviation: {meaning}")?;
        }
        let passed = self.count_passed();
        write!(f, "{passed} passed, {} failed", self.failed.len())
    }
}
