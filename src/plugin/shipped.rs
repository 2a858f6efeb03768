//! Plugins for common changes.

use std::collections::{HashMap, HashSet};
use std::future::ready;

use callward_core::{
    BoxFuture, ReplicaSetId, ServerId, ToolDefinition, ToolGlob, ToolName, ToolOverlay, words_of,
};

use super::{BoxError, Plugin, ToolPlugin};

type Change = dyn Fn(&ReplicaSetId, &ToolDefinition, &mut ToolOverlay) + Send + Sync;

/// A plugin that decides at once.
struct FromFn(&'static str, Box<Change>);

impl ToolPlugin for FromFn {
    fn name(&self) -> &str {
        self.0
    }

    fn transform_tool<'a>(
        &'a self,
        set: &'a ReplicaSetId,
        _: &'a ServerId,
        tool: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<ToolOverlay, BoxError>> {
        let mut overlay = ToolOverlay::default();
        (self.1)(set, tool, &mut overlay);
        Box::pin(ready(Ok(overlay)))
    }
}

/// Plugins that are ready to use. Who may call a tool is left to rules: `Rule::role_access` of the
/// crate `callward-auth` makes rules that keep tools to roles.
///
/// ```
/// use callward::Stack;
/// use callward::core::ToolGlob;
/// use callward::plugin::Plugin;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let builder = Stack::builder()
///     .plugin(Plugin::rename([("search_issues".parse()?, "find_issue".into())].into()))
///     .plugin(Plugin::hide(vec![ToolGlob::new("*.debug_*")?]))
///     .plugin(Plugin::keywords([("invoice", "billing"), ("pull request", "review")]))
///     .plugin(Plugin::from_fn("careful", |_, tool, overlay| {
///         overlay.hints.audit_required = Some(tool.name.as_str().ends_with("_prod"));
///     }));
/// # Ok(())
/// # }
/// ```
impl Plugin {
    /// Makes a plugin of a function that changes the overlay of each tool at once.
    pub fn from_fn(
        name: &'static str,
        change: impl Fn(&ReplicaSetId, &ToolDefinition, &mut ToolOverlay) + Send + Sync + 'static,
    ) -> Self {
        Self::new(FromFn(name, Box::new(change)))
    }

    /// Gives tools, by the names that servers list, other names. If another tool has the new name,
    /// the usual rule of names decides: the tool gets its own, with that of its set in front.
    pub fn rename(names: HashMap<ToolName, String>) -> Self {
        Self::from_fn("rename", move |_, tool, overlay| {
            overlay.name = names.get(&tool.name).cloned();
        })
    }

    /// Hides tools: clients neither see nor call them.
    pub fn hide(tools: Vec<ToolGlob>) -> Self {
        Self::from_fn("hide", move |set, tool, overlay| {
            overlay.hidden = tools.iter().any(|glob| glob.fits_name(set, &tool.name));
        })
    }

    /// Tags tools by words of their names and descriptions, as pairs of keyword and tag. A keyword
    /// of several words needs all of them; plural and case do not count.
    pub fn keywords<'a>(tags: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let tags = tags.into_iter();
        let tags = tags.map(|(keyword, tag)| (words_of(keyword).collect(), tag.to_owned()));
        let tags: Vec<(Vec<_>, _)> = tags.collect();
        Self::from_fn("keywords", move |_, tool, overlay| {
            let texts = [Some(tool.name.as_str()), tool.description.as_deref()];
            let words: HashSet<_> = texts.into_iter().flatten().flat_map(words_of).collect();
            for (keyword, tag) in &tags {
                if !keyword.is_empty() && keyword.iter().all(|word| words.contains(word)) {
                    overlay.hints.tags.get_or_insert_default().push(tag.clone());
                }
            }
        })
    }
}
