//! The catalogue of tools: which server offers which tool, and the plan of each.
//!
//! A [`Registry`] takes what each server lists, weighs the hints, derives a plan for each tool and
//! each rule over its arguments, and publishes a [`Catalogue`]: an immutable snapshot with a
//! generation number that is read without locks and replaced as a whole.
//!
//! **Rule.** Tools belong to a replica set. Servers of one set that list the same name offer the
//! same tool: the definition of the first server counts. A tool that cannot be used (contradictory
//! hints, a taken name) is refused visibly, and never hides the others. A tool that may write is
//! paired with a tool of its set that only reads, to check with after an unknown outcome: by
//! [`SetOptions::verify_with`], else by name.
//!
//! **Names.** Clients see `set__tool`, or `tool` where the set has no prefix. A name stays with its
//! tool. See [`Catalogue::find`] for the other forms that a call may use.
//!
//! ```
//! use callward_core::{ReplicaSetId, ServerId, ToolDefinition};
//! use callward_registry::{Registry, SetOptions};
//!
//! let registry = Registry::new();
//! let set = ReplicaSetId::new("orders")?;
//! let tool = ToolDefinition::from_json(r#"{"name":"get","annotations":{"readOnlyHint":true}}"#)?;
//! registry.set_options(set.clone(), SetOptions::default().with_prefix("orders"));
//! registry.register(&set, &ServerId::new("orders-1")?, vec![tool]);
//!
//! let catalogue = registry.catalogue();
//! assert_eq!(catalogue.find("orders.get").unwrap().client_name(), "orders__get");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod catalogue;
mod listing;
mod names;
mod options;
mod registry;
mod rename;
mod set;
mod verify;

pub use catalogue::{Catalogue, Entry, Refusal};
pub use names::KeptName;
pub use options::SetOptions;
pub use registry::{Changes, Registry};
pub use rename::rename;
