//! Toolsets: named selections of tools, with notes about their use.
//!
//! A [`Toolset`] refers to tools ([`ToolRef`]) and has [notes](Note) for some. Over a
//! [`Catalogue`](callward_registry::Catalogue) it becomes a [`View`]: the tools that are there,
//! with notes behind their descriptions. All toolsets are in one JSON file, a [`Store`].
//!
//! **Rule.** Notes change what is listed, and nothing that judges a tool. A change is durable once
//! it has returned: the file is replaced as a whole, under its lock. A file with an error is
//! refused with the place of the error, and never overwritten. Members that are not known are kept.
//!
//! ```
//! use callward_toolset::{Note, ToolRef, Toolset, hydrate};
//!
//! let (tool, mut toolset) = (ToolRef::named("linear.create_issue"), Toolset::default());
//! let note: Note = serde_json::from_str(r#"{"name": "team", "note": "Ask for the team"}"#)?;
//! toolset.add_notes(&tool, &tool, vec![note.clone()]).unwrap();
//! // notes are added, never replaced
//! assert!(toolset.add_notes(&tool, &tool, vec![note]).unwrap().is_empty());
//! assert_eq!(
//!     hydrate(Some("Creates an issue"), &toolset.notes_of(&tool)),
//!     "Creates an issue\n\n### Additional Tool Notes\n\n• **team**: Ask for the team"
//! );
//! # Ok::<(), serde_json::Error>(())
//! ```

mod error;
mod file;
mod model;
mod notes;
mod refer;
mod store;
mod text;
mod view;

pub use error::ToolsetError;
pub use file::Toolsets;
pub use model::{Note, ToolNotes, Toolset};
pub use notes::{TOKEN_BUDGET, hydrate, tokens};
pub use refer::{ToolRef, ref_id};
pub use store::{Snapshot, Store};
pub use text::{InvalidText, Line, Name};
pub use view::{Resolver, View};
