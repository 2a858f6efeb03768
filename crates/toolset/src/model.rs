//! A toolset, as its file has it.

use callward_core::Caller;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ToolsetError;
use crate::refer::ToolRef;
use crate::text::{Line, Name};

/// The most tools of a toolset, and the most with notes.
const MAX_TOOLS: usize = 256;
/// The most notes of a tool in one toolset.
const MAX_NOTES: usize = 20;

/// A note about the use of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Note {
    /// Which note of the tool it is.
    pub name: Name,
    /// What it says.
    pub note: Line,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Note {
    /// Makes a note.
    #[must_use]
    pub fn new(name: Name, note: Line) -> Self {
        let rest = Map::new();
        Self { name, note, rest }
    }

    /// Returns the note without members that are not known.
    #[must_use]
    pub fn only_known(self) -> Self {
        Self::new(self.name, self.note)
    }
}

/// The notes about one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolNotes {
    /// The tool.
    #[serde(rename = "toolRef")]
    pub tool_ref: ToolRef,
    /// In the order in which they were added.
    pub notes: Vec<Note>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A selection of tools, with notes about them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Toolset {
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Line>,
    /// The tools.
    pub tools: Vec<ToolRef>,
    /// The notes, by tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_notes: Vec<ToolNotes>,
    /// Who sees it unless they choose another one: principals, and roles as `role:NAME`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_for: Vec<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Toolset {
    /// Makes a toolset without notes.
    ///
    /// # Errors
    ///
    /// [`ToolsetError::TooMany`] if there are too many tools.
    pub fn new(description: Option<Line>, tools: Vec<ToolRef>) -> Result<Self, ToolsetError> {
        fits("the tools of the toolset", tools.len(), MAX_TOOLS)?;
        Ok(Self {
            description,
            tools,
            ..Self::default()
        })
    }

    /// Returns `true` if this caller sees it by default.
    #[must_use]
    pub fn is_default_for(&self, caller: &Caller) -> bool {
        let (principal, roles) = (caller.principal.as_str(), &caller.credential.roles);
        self.default_for
            .iter()
            .any(|whom| match whom.strip_prefix("role:") {
                Some(role) => roles.contains(role),
                None => whom == principal,
            })
    }

    /// Returns the notes of a tool, each name once. A note counts if it is about the tool's name or
    /// about its hash.
    #[must_use]
    pub fn notes_of(&self, tool: &ToolRef) -> Vec<&Note> {
        let of_tool = self.tool_notes.iter().filter(|it| it.tool_ref.meets(tool));
        let mut notes: Vec<&Note> = Vec::new();
        for note in of_tool.flat_map(|it| &it.notes) {
            if notes.iter().all(|known| known.name != note.name) {
                notes.push(note);
            }
        }
        notes
    }

    /// Adds notes, and returns those that were added: a note whose name the tool has already is
    /// left out. `stored` is the reference that is kept of a tool without notes, and `tool` all
    /// that is known of it.
    ///
    /// # Errors
    ///
    /// [`ToolsetError::TooMany`] if the tool would have too many; then none is added.
    pub fn add_notes(
        &mut self,
        stored: &ToolRef,
        tool: &ToolRef,
        notes: Vec<Note>,
    ) -> Result<Vec<Note>, ToolsetError> {
        let known = self.notes_of(tool);
        let before = known.len();
        let mut added: Vec<Note> = Vec::new();
        for note in notes {
            let mut names = known.iter().copied().chain(&added);
            if names.all(|it| it.name != note.name) {
                added.push(note);
            }
        }
        fits("the notes of the tool", before + added.len(), MAX_NOTES)?;
        if added.is_empty() {
            return Ok(added);
        }
        let mut entries = self.tool_notes.iter_mut();
        match entries.find(|it| it.tool_ref.meets(stored)) {
            Some(entry) => entry.notes.extend(added.iter().cloned()),
            None => {
                fits("the tools with notes", self.tool_notes.len() + 1, MAX_TOOLS)?;
                self.tool_notes.push(ToolNotes {
                    tool_ref: stored.clone(),
                    notes: added.clone(),
                    rest: Map::new(),
                });
            }
        }
        Ok(added)
    }

    /// Adds a note, in place of the one with its name.
    ///
    /// # Errors
    ///
    /// [`ToolsetError::TooMany`] if the tool would have too many.
    pub fn set_note(&mut self, tool: &ToolRef, note: Note) -> Result<(), ToolsetError> {
        self.remove_notes(tool, Some(&note.name));
        self.add_notes(tool, tool, vec![note]).map(drop)
    }

    /// Removes the note of this name, or all notes of a tool, and returns how many there were.
    pub fn remove_notes(&mut self, tool: &ToolRef, name: Option<&Name>) -> usize {
        let mut removed = 0;
        for entry in &mut self.tool_notes {
            if entry.tool_ref.meets(tool) {
                let before = entry.notes.len();
                let is_kept = |note: &Note| name.is_some_and(|name| *name != note.name);
                entry.notes.retain(is_kept);
                removed += before - entry.notes.len();
            }
        }
        self.tool_notes.retain(|entry| !entry.notes.is_empty());
        removed
    }
}

/// Refuses more than there may be.
pub(crate) fn fits(what: &'static str, count: usize, max: usize) -> Result<(), ToolsetError> {
    match count <= max {
        true => Ok(()),
        false => Err(ToolsetError::TooMany { what, max }),
    }
}
