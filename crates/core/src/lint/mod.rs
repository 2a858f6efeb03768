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
mod finding;
mod gaps;
mod naming;
mod spelling;
mod stated;
mod stateful;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use candidate::Candidate;
pub use code::{Code, Severity};
pub use finding::Finding;
pub use stateful::looks_stateful;

use candidate::Case;

/// Looks at the tools of one server, or of several: those of one server are compared with each
/// other.
///
/// Findings come in the order of the tools, and for each tool the worst first.
pub fn check(tools: &[Candidate<'_>]) -> Vec<Finding> {
    let mut report = Report::default();
    for (index, tool) in tools.iter().enumerate() {
        let case = Case::read(tool);
        let mut notes = report.about(tool, index);
        spelling::check(&case, &mut notes);
        stated::check(&case, &mut notes);
        evidence::check(&case, &mut notes);
        gaps::check(&case, &mut notes);
        naming::check(&case, &mut notes);
    }
    across::check(tools, &mut report);
    stateful::check(tools, &mut report);
    let mut findings = report.findings;
    findings.sort_by_key(|finding| (finding.index, finding.code));
    findings
}

#[derive(Default)]
struct Report {
    findings: Vec<Finding>,
}

impl Report {
    fn about<'r, 'a>(&'r mut self, tool: &'r Candidate<'a>, index: usize) -> Notes<'r, 'a> {
        Notes {
            tool,
            index,
            report: self,
        }
    }
}

/// Collects the findings about one tool.
struct Notes<'r, 'a> {
    tool: &'r Candidate<'a>,
    index: usize,
    report: &'r mut Report,
}

impl Notes<'_, '_> {
    fn add(
        &mut self,
        code: Code,
        field: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.report.findings.push(Finding {
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
