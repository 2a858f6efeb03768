//! The catalogue of tools: which server offers which tool, and the plan of each.
//!
//! A [`Registry`] takes what each server lists, weighs the hints, derives a plan for each tool and
//! each rule over its arguments, and publishes a [`Catalogue`]: an immutable snapshot that is read
//! without locks and replaced as a whole.
//!
//! **Rule.** Servers of one replica set that list the same name offer the same tool: the definition
//! of the first server counts. A tool that cannot be used (contradictory hints, a taken name) is
//! refused visibly, and never hides the others. Clients see `set__tool`, or `tool` if the set has
//! no prefix, and a name stays with its tool; see [`Catalogue::find`] for other forms.
//!
//! **Review.** Later changes of a tool may wait for approval ([`Hold`], [`Registry::approve`]).
//!
//! ```
//! use callward_core::{Instances, ReplicaSetId, ServerId, ToolDefinition};
//! use callward_registry::Registry;
//!
//! let registry = Registry::new();
//! let set = ReplicaSetId::new("orders")?;
//! let tool = ToolDefinition::from_json(r#"{"name":"get","annotations":{"readOnlyHint":true}}"#)?;
//! let server = ServerId::new("orders-1")?;
//! registry.register(&set, &server, vec![tool], Instances::Shared);
//! assert_eq!(registry.catalogue().find("get").unwrap().client_name(), "get");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod catalogue;
mod diff;
mod index;
mod listing;
mod names;
mod options;
mod part;
mod pins;
mod query;
mod registry;
mod rewrite;
#[cfg(feature = "schema")]
mod schema;
mod search;
mod set;
mod shown;
mod state;
mod suggest;
pub mod uri;
mod verify;

pub use catalogue::{Catalogue, Entry, Refusal};
pub use diff::FieldChange;
pub use names::KeptName;
pub use options::SetOptions;
pub use pins::{ApproveError, Hold, PinStore, Pins, ReviewOptions, ToolChange};
pub use query::{Query, Sort};
pub use registry::{Changes, Registry};
pub use rewrite::{Path, rewrite};
pub use search::{CatalogueStats, Found};
pub use shown::Shown;
pub use suggest::{AcceptError, Suggestion};
