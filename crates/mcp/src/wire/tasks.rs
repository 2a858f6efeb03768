//! The extension for tasks, and what definitions of tools say about it.

use bytes::Bytes;
use memchr::memmem;

use super::object;

/// The name of the extension, in the capabilities of both sides.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

const EXECUTION: &str = "execution";
const SUPPORT: &str = "taskSupport";

/// Returns what a definition says of tasks: the raw value of `execution.taskSupport`.
fn support(tool: &[u8]) -> Option<&[u8]> {
    // most tools say nothing, so most need not be read
    memmem::find(tool, SUPPORT.as_bytes())?;
    let execution = object::get_member(tool, EXECUTION).ok()??;
    object::get_member(execution, SUPPORT).ok()?
}

/// Returns `true` if a definition says that calls of the tool are always tasks.
pub(crate) fn are_required(tool: &[u8]) -> bool {
    support(tool) == Some(br#""required""#)
}

/// Returns a definition without what it says of tasks; `None` if it says nothing, or that there are
/// none, as is the default.
pub(crate) fn without_support(tool: &[u8]) -> Option<Bytes> {
    support(tool).filter(|said| *said != br#""forbidden""#)?;
    let execution = object::get_member(tool, EXECUTION).ok()??;
    let rest = object::remove_member(execution, SUPPORT).ok()?;
    object::set_member(tool, EXECUTION, &rest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_lose_only_what_they_say_of_tasks() {
        for (tool, requires, left) in [
            (
                r#"{"name":"a","execution":{"taskSupport":"required","x" : 1}}"#,
                true,
                Some(r#"{"name":"a","execution":{"x":1}}"#),
            ),
            (
                r#"{"execution":{"taskSupport":"optional"},"name":"a"}"#,
                false,
                Some(r#"{"execution":{},"name":"a"}"#),
            ),
            (r#"{"execution":{"taskSupport":"forbidden"}}"#, false, None),
            (r#"{"name":"taskSupport"}"#, false, None),
            ("7", false, None),
        ] {
            assert_eq!(are_required(tool.as_bytes()), requires, "{tool}");
            let without = without_support(tool.as_bytes());
            assert_eq!(without.as_deref(), left.map(str::as_bytes), "{tool}");
        }
    }
}
