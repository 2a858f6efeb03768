//! What a plugin of discovery changes of a tool.

use crate::Annotations;

/// What a plugin of discovery changes of a tool. The definition stays as the server lists it:
/// inference, reviews, rules, caches and logs read that one.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOverlay {
    /// The name that clients see; no prefix is added. Default: no change.
    pub name: Option<String>,
    /// The description that clients see. Default: no change.
    pub description: Option<String>,
    /// Whether clients neither see nor call the tool. Default: no.
    pub hidden: bool,
    /// Hints. Those that are stricter than what the server's and the observed ones result in count,
    /// and tags are added to the tool's; all others have no effect. Default: none.
    pub hints: Annotations,
    /// Why the tool is not offered. Default: it is offered.
    pub refused: Option<String>,
}
