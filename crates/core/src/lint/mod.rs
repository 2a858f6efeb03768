//! Lints: what an author should look at before clients rely on the hints.
//!
//! [`check`] reads tools as their server lists them. It finds hints that are missing, meaningless
//! or misspelled, hints that contradict each other or the tool's description, and misleading names.
//! Each [`Finding`] has a stable [`Code`], a [`Severity`], the wrong value and a remedy.
//!
//! **Rule.** An *error* is wrong in any case. A *warning* will probably make a client or runtime
//! misread the author; it contradicts a declared hint only on the strong evidence that
//! [`resolve`](crate::resolve) demands too. Everything else is *info*. An author may know better,
//! so callers can silence any code.
//!
//! ```
//! use callward_core::Subject;
//! use callward_core::lint::{Candidate, Code, check};
//!
//! let listed = serde_json::from_str(
//!     r#"{"name": "delete_user", "description": "Deletes a user for good.",
//!         "annotations": {"readOnlyHint": true}}"#,
//! )?;
//! let subject = Subject::new("delete_user");
//! let findings = check(&[Candidate { subject, definition: Some(listed) }]);
//! assert_eq!(findings[0].code, Code::ReadOnlyDestroys);
//! assert_eq!(findings[0].message, "true, but the name leads with `delete`");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod across;
mod candidate;
mod code;
mod evidence;
mod naming;
mod spelling;
mod stated;
mod stateful;
mod suspicious;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

pub use candidate::Candidate;
pub use code::{Code, Severity};
pub use stateful::looks_stateful;
pub use suspicious::suspicions;

use candidate::Case;

static FINDINGS: &str = include_str!("findings.txt");

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// How much it matters: that of its code.
    pub severity: Severity,
    /// The server, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The tool's place among those that were looked at, from 0.
    pub index: usize,
    /// The member to look at: a hint, or `name`, `description`, `inputSchema`.
    pub field: Cow<'static, str>,
    /// What is wrong, with the value.
    pub message: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} [{}] {}: {}: {}; {}",
            self.severity, self.code, self.tool, self.field, self.message, self.advice
        )
    }
}

/// Looks at the tools of one server, or of several: those of one server are compared with each
/// other.
///
/// Findings come in the order of the tools, and for each tool the worst first.
pub fn check(tools: &[Candidate<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let case = Case::read(tool);
        let mut notes = Notes::new(tool, index, &mut findings);
        spelling::check(&case, &mut notes);
        stated::check(&case, &mut notes);
        evidence::check(&case, &mut notes);
        naming::check(&case, &mut notes);
        suspicious::check(tool, &mut notes);
    }
    across::check(tools, &mut findings);
    across::look_alikes(tools, &mut findings);
    stateful::check(tools, &mut findings);
    findings.sort_by_key(|finding| (finding.index, finding.code));
    findings
}

/// Collects the findings about one tool.
struct Notes<'r> {
    tool: &'r Candidate<'r>,
    index: usize,
    findings: &'r mut Vec<Finding>,
}

impl<'r> Notes<'r> {
    const fn new(tool: &'r Candidate<'_>, index: usize, findings: &'r mut Vec<Finding>) -> Self {
        Self {
            tool,
            index,
            findings,
        }
    }

    /// Adds what `findings.txt` says of a code, with what was found in place of `{}`.
    fn add(&mut self, code: Code, found: impl fmt::Display) {
        let of_code = |row: &'static str| row.strip_prefix(code.as_str())?.strip_prefix(": ");
        let row = FINDINGS.lines().find_map(of_code).unwrap_or_default();
        if let [field, message, advice] = row.split(" | ").collect::<Vec<_>>()[..] {
            self.add_at(
                code,
                field,
                message.replace("{}", &found.to_string()),
                advice,
            );
        }
    }

    fn add_at(
        &mut self,
        code: Code,
        field: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.findings.push(Finding {
            code,
            severity: code.severity(),
            server: self.tool.subject.server.map(str::to_owned),
            tool: self.tool.subject.name.to_owned(),
            index: self.index,
            field: field.into(),
            message: message.into(),
            advice: advice.into(),
        });
    }
}
